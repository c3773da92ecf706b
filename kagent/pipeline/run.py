"""The pipeline as a service: started, kept running with back-off, stopped cleanly; nothing of it decides anything."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from kagent.errors import KafkaError, KagentError, SettingsError
from kagent.events import Beat, encode
from kagent.kafka.admin import Admin
from kagent.kafka.clients import confluent, spark
from kagent.kafka.topics import ensure
from kagent.pipeline.build import Target
from kagent.pipeline.place import claim
from kagent.pipeline.progress import Ends, Heart
from kagent.pipeline.session import session
from kagent.pipeline.stream import SOURCE, read_stream, to_messages
from kagent.settings import Cluster, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

log = logging.getLogger("kagent.pipeline")
LONGEST_BACKOFF = 30.0


@dataclass(slots=True)
class Pipeline:
    """One run of the pipeline for one cluster. ``available_now``: catch up and end. ``replay``: from the log's start,
    once, with a place of its own, to fill a gap."""

    settings: Settings
    name: str
    cluster: Cluster
    master: str | None = None
    checkpoint: str | None = None
    trigger: float | None = None
    available_now: bool = False
    replay: bool = False
    on_batch: Callable[[Any], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def once(self) -> bool:
        return self.available_now or self.replay

    def run(self) -> None:
        """Run until ``stop`` is set, or until caught up. Raises KagentError for what trying again cannot mend."""
        admin = Admin(self.cluster, deadline=10)
        self._wait_for_source(admin)
        ensure(Admin(self.settings.home_cluster(self.name)), self.settings.topics)
        with tempfile.TemporaryDirectory(prefix="kagent-replay-") as own:
            place = own if self.replay else self.checkpoint or self.settings.pipeline.checkpoint
            running = session(self.settings.pipeline, self.master)
            try:
                topic = admin.topics([SOURCE])[SOURCE]
                claim(running, f"{place}/{self.name}", self._identified(admin), topic.id)
                self._keep(running, admin, f"{place}/{self.name}")
            finally:
                running.stop()

    def _identified(self, admin: Admin) -> str:
        found = admin.cluster_id()
        if self.cluster.cluster_id and found != self.cluster.cluster_id:
            raise SettingsError(
                f"The cluster at {self.cluster.bootstrap} is {found}, but the settings say that {self.name} is "
                f"{self.cluster.cluster_id}."
            )
        return found

    def _wait_for_source(self, admin: Admin) -> None:
        """Until the cluster answers and its offsets topic exists (a new cluster makes it with its first group)."""
        failures, said = 0, False
        while not self.stop.is_set():
            try:
                if admin.topic_names().get(SOURCE):
                    return
            except KafkaError as error:
                if "refuses" in str(error) or self.once:
                    raise
                failures += 1
                log.warning("%s Trying again in %.0f s.", error, _backoff(failures))
                self.stop.wait(_backoff(failures))
                continue
            if self.once:
                raise KafkaError(
                    f"{SOURCE} does not exist yet, or may not be read: no group has ever committed here."
                )
            if not said:
                log.warning(
                    "%s does not exist yet (no group has ever committed) or may not be seen; waiting for it.",
                    SOURCE,
                )
                said = True
            self.stop.wait(2)

    def _keep(self, running: SparkSession, admin: Admin, place: str) -> None:
        """Run the query; where it fails, start it again from its place."""
        from pyspark.errors import PySparkException

        failures = 0
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                self._query(running, admin, place)
                if self.once:
                    return
            except (PySparkException, KagentError) as error:
                sentence = _sentence(error)
                if self.once or _hopeless(sentence):
                    raise KafkaError(sentence) from error
                failures = 1 if time.monotonic() - began > 60 else failures + 1
                log.warning("the stream stopped: %s Starting again in %.0f s.", sentence, _backoff(failures))
                self.stop.wait(_backoff(failures))

    def _query(self, running: SparkSession, admin: Admin, place: str) -> None:
        heart = self._heart(admin)
        running.streams.addListener(heart)
        query = self._start(running, place)
        heart.start()
        log.info("the pipeline reads %s of cluster %s (run %s)", SOURCE, self.name, heart.run_id)
        try:
            self._await(query)
            if self.once:
                self._last_beat(query, heart)
        finally:
            heart.stop()
            running.streams.removeListener(heart)
            if query.isActive:
                query.stop()

    def _await(self, query: StreamingQuery) -> None:
        """Until the query ends or fails (raises), or we are asked to stop."""
        while not self.stop.is_set():
            if query.awaitTermination(1):
                return

    def _last_beat(self, query: StreamingQuery, heart: Heart) -> None:
        """Spark tells of the last batch a moment after the query has ended."""
        done = len([p for p in query.recentProgress if p["numInputRows"]])
        until = time.monotonic() + 10
        while heart.batches < done and time.monotonic() < until:
            time.sleep(0.05)

    def _start(self, running: SparkSession, place: str) -> StreamingQuery:
        settings = self.settings.pipeline
        cores = running.sparkContext.defaultParallelism
        topics = self.settings.topics
        target = Target(self.name, topics.events, topics.dead_letters, topics.prefix.rstrip("-"))
        records = read_stream(running, spark(self.cluster), target.own, settings.max_offsets_per_trigger)
        writer = to_messages(records, target, cores).writeStream.format("kafka").queryName("kagent-events")
        writer = writer.options(**spark(self.settings.home_cluster(self.name)))
        writer = writer.option("kafka.compression.type", "zstd").option(
            "kafka.max.request.size", str(8 << 20)
        )
        writer = writer.option("checkpointLocation", place)
        if self.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(self._trigger * 1000)} milliseconds").start()

    @property
    def _trigger(self) -> float:
        return self.trigger or self.settings.pipeline.trigger

    def _heart(self, admin: Admin) -> Heart:
        topics = self.settings.topics
        home = self.settings.home_cluster(self.name)
        producer = Producer(confluent(home, **{"linger.ms": 5, "compression.type": "zstd", "log_level": 0}))

        def ends() -> Ends:
            partitions = [(SOURCE, p) for p in range(admin.topic_names().get(SOURCE, 0))]
            log_end, stable = admin.log_end(partitions), admin.log_end(partitions, committed_only=True)
            return {
                p: (log_end.found[t, p], stable.found[t, p]) for t, p in partitions if (t, p) in stable.found
            }

        def send(beat: Beat) -> None:
            value = encode(beat)
            try:
                for partition in range(topics.partitions):
                    producer.produce(topics.events, value, key=self.name, partition=partition)
                producer.flush(10)
            except (KafkaException, BufferError) as error:
                log.warning("progress could not be sent: %s", error)

        return Heart(self.name, self._trigger, ends, send, self.replay, self.on_batch)


def _backoff(failures: int) -> float:
    return float(min(LONGEST_BACKOFF, 2 ** max(0, failures - 1)))


def _sentence(error: Exception) -> str:
    """The first line that says something; Spark's own are long."""
    text = str(error)
    for sign, sentence in SIGNS.items():
        if sign in text:
            return sentence
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)[:300]


SIGNS = {
    "TopicAuthorizationException": f"The user may not read {SOURCE} or write the events: `kagent acls` prints what is needed.",
    "GroupAuthorizationException": "The user may not use Spark's consumer groups: `kagent acls` prints what is needed.",
    "SaslAuthenticationException": "The cluster refuses the login: check security in the settings.",
    "No space left on device": "The disk of the checkpoint is full: free some space; the stream has kept its place.",
    "TimeoutException": "The cluster does not answer.",
}


def _hopeless(sentence: str) -> bool:
    """What trying again will not mend."""
    return any(sentence == SIGNS[sign] for sign in SIGNS if "Authori" in sign or "Sasl" in sign)
