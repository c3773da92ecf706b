"""The history as a service: the query that feeds ``kagent.history.delta_writer``, kept running like the events' own."""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kagent.errors import KafkaError, SettingsError, SetupError, mendable
from kagent.history.delta_writer import Ends, Writer, create, known_topics
from kagent.history.past_range import History
from kagent.kafka.admin import Admin
from kagent.kafka.clients import spark as spark_options
from kagent.kafka.descriptions import TopicDescription
from kagent.kafka.topics import make_sure, wanted
from kagent.pipeline.checkpoint import Checkpoint, writable
from kagent.pipeline.restarts import awaited, between_batches, ending, kept, stopped
from kagent.pipeline.source import OffsetsSource
from kagent.pipeline.spark_session import session
from kagent.pipeline.wall_clock import WallClock
from kagent.settings import Cluster, Settings, Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("kagent.history")
# Bounds a batch after a long stop: one that is cut short is done again as a whole.
MAX_MESSAGES = 200_000


def check(settings: Settings, name: str, patient: bool) -> None:
    """Raises KafkaError for what no waiting mends, such as a refused login; all else is waited for later where one is ``patient``."""
    home = Admin(settings.home_cluster(name), deadline=10)
    try:
        _topics(home, settings.topics)
    except KafkaError as error:
        if not (patient and mendable(error)):
            raise
        # Said before Spark starts: until then nothing else would be.
        log.warning("%s It is waited for.", error)


def _topics(home: Admin, topics: Topics) -> dict[str, TopicDescription]:
    """The topics it reads, created where they are missing: on a new cluster it may start before pipeline and worker."""
    read = (topics.events, topics.recommendations)
    found = home.topics(read)
    missing = [topic for topic in wanted(topics) if topic.name in read and topic.name not in found]
    if missing:
        make_sure(home, topics, log, missing)
        found = home.topics(read)
    for name in read:
        if name not in found:
            raise KafkaError(f"The topic {name} is missing, or may not be seen: run `kagent topics`.")
    return found


@dataclass(slots=True)
class Keeper:
    """Writes the history of one cluster until stopped; ``available_now``: catch up and end. ``trigger`` in
    seconds, by default pipeline.history_interval."""

    settings: Settings
    name: str
    cluster: Cluster
    history: History
    master: str | None = None
    checkpoint: str | None = None
    trigger: float | None = None
    available_now: bool = False
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, starting: AbstractContextManager[object] | None = None) -> None:
        """Run until ``stop`` is set, or until caught up. Raises KagentError for what trying again cannot mend.

        ``starting``: held while Spark starts.
        """
        # Before Spark, whose start takes long: a refused login or a missing topic is then a sentence within a second.
        options = self.settings.pipeline.options
        writable(self.place, options)
        writable(self.history.place, options, "The history", "pipeline.history or --path to a folder")
        check(self.settings, self.name, patient=not self.available_now)
        try:
            with starting or nullcontext():
                started = session(self.settings.pipeline, self.master, delta=True)
        except SetupError:
            if self.stop.is_set():  # who stops a service ends its Java too
                return
            raise
        with ending(started) as running:
            self.run_on(running)

    @property
    def place(self) -> str:
        """Folder or URL of the stream's checkpoint."""
        # A checkpoint of its own: two queries that share one destroy each other's offsets.
        folder = self.checkpoint or f"{self.settings.pipeline.checkpoint}-history"
        return f"{folder.rstrip('/')}/{self.name}"

    def run_on(self, running: SparkSession) -> None:
        """As :meth:`run`, on a Spark session that is there already."""
        home, topics = Admin(self.settings.home_cluster(self.name), deadline=10), self.settings.topics
        source = OffsetsSource(home, self.stop, patient=not self.available_now)
        # tried(): a broker that is away is waited for, as the events' own stream does, until `stop`.
        found = source.tried(lambda: _topics(home, topics))
        cluster_id = source.tried(home.cluster_id)
        if found is None or cluster_id is None:
            return
        place = Checkpoint(running, self.place)
        # Before the tables are touched: a checkpoint of another cluster would skip its records in silence.
        stream = place.claim(cluster_id, found[topics.events].id)
        self._create(running)
        ends = Ends(Admin(self.cluster, deadline=10), known_topics(running, self.history))
        writer = Writer(self.history, self.name, topics.events, stream, ends)
        kept(lambda: self._query(running, place.folder, writer), self.stop, self.available_now)

    def _create(self, running: SparkSession) -> None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            create(running, self.history)
        except (PySparkException, Py4JJavaError) as error:
            reason = str(error).strip().splitlines()[0][:200]
            raise SettingsError(f"The history at {self.history.place} cannot be used ({reason}).") from error

    def _query(self, running: SparkSession, place: str, writer: Writer) -> None:
        topics = self.settings.topics
        source = {
            **spark_options(self.settings.home_cluster(self.name)),
            "subscribe": f"{topics.events},{topics.recommendations}",
            "groupIdPrefix": f"{topics.app}-history",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(MAX_MESSAGES),
            # Events are kept for a day: a history that was away for longer goes on with a hole instead of never.
            "failOnDataLoss": "false",
            # The worker publishes in transactions: what it aborted was never published.
            "kafka.isolation.level": "read_committed",
        }
        records = running.readStream.format("kafka").options(**source).load()
        stream = records.writeStream.foreachBatch(writer).queryName(f"kagent-history-{self.name}")
        stream = stream.option("checkpointLocation", place)
        if self.available_now:
            query = stream.trigger(availableNow=True).start()
        else:
            every = self.trigger or self.settings.pipeline.history_interval
            query = stream.trigger(processingTime=f"{int(every * 1000)} milliseconds").start()
        log.info("Writing the history of cluster %s to %s.", self.name, self.history.place)
        try:
            awaited(query, self.stop, None if self.available_now else WallClock().check)
            between_batches(query)
        finally:
            stopped(query)
