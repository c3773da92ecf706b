"""The pipeline as a service: started, kept running with back-off, stopped cleanly; nothing of it decides anything."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kagent.contract.events import Beat, LogCut
from kagent.errors import SettingsError, SetupError
from kagent.kafka.admin import Admin
from kagent.kafka.clients import spark as spark_options
from kagent.kafka.rights_watch import RightsWatch, of_pipeline
from kagent.kafka.topics import make_sure
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.build import Target
from kagent.pipeline.bundle import Bundling
from kagent.pipeline.catchup import CatchUp
from kagent.pipeline.checkpoint import Checkpoint, CoveredOffsets, writable
from kagent.pipeline.progress import ProgressReporter
from kagent.pipeline.progress_sender import ProgressSender
from kagent.pipeline.restarts import awaited, ending, kept, stopped, wait_for_the_last
from kagent.pipeline.source import LeadersChanged, LogCutError, OffsetsSource
from kagent.pipeline.spark_session import session
from kagent.pipeline.starting_places import StartingPlaces, covered
from kagent.pipeline.stream import read_stream, to_messages
from kagent.pipeline.stream_metrics import Metrics
from kagent.pipeline.temporary_folder import own_folder
from kagent.pipeline.wall_clock import WallClock
from kagent.settings import Cluster, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

log = logging.getLogger("kagent.pipeline")


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
    on_batch: Callable[[Mapping[str, Any]], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    metrics: Metrics | None = None
    places: StartingPlaces = field(default_factory=StartingPlaces)

    @property
    def once(self) -> bool:
        return self.available_now or self.replay

    @property
    def query_name(self) -> str:
        return f"kagent-{self.name}"

    @property
    def every(self) -> float:
        """Seconds between triggers."""
        return self.trigger or self.settings.pipeline.trigger

    def run(self) -> None:
        """Run until ``stop`` is set, or until caught up. Raises KagentError for what trying again cannot mend."""
        if not self.replay:
            writable(self.checkpoint or self.settings.pipeline.checkpoint, self.settings.pipeline.options)
        source = self.prepared()
        if source is None:
            return
        try:
            started = session(self.settings.pipeline, self.master)
        except SetupError:
            if self.stop.is_set():  # who stops a service ends its Java too
                return
            raise
        with ending(started) as running:
            self.run_on(running, source)

    def prepared(self) -> OffsetsSource | None:
        """The source, there and ready, and kagent's topics; None if asked to stop meanwhile."""
        source = OffsetsSource(Admin(self.cluster, deadline=10), self.stop, patient=not self.once)
        if source.wait() is None:
            return None
        home = Admin(self.settings.home_cluster(self.name), deadline=10)
        made = source.tried(lambda: make_sure(home, self.settings.topics, log))
        return source if made is not None else None

    def run_on(self, running: SparkSession, source: OffsetsSource) -> None:
        """As :meth:`run`, on a Spark session that is there already."""
        with tempfile.TemporaryDirectory(
            prefix="replay-", dir=own_folder(), ignore_cleanup_errors=True
        ) as own:
            # A replay must not move the place of the stream that goes on beside it.
            folder = own if self.replay else self.checkpoint or self.settings.pipeline.checkpoint
            place = Checkpoint(running, f"{folder.rstrip('/')}/{self.name}")
            assert source.topic is not None
            # tried(): Spark took long to start, and the cluster may have gone away meanwhile.
            cluster_id = source.tried(lambda: source.identified(self.cluster.cluster_id, self.name))
            if cluster_id is None:
                return
            place.claim(cluster_id, source.topic.id)
            home = self.settings.home_cluster(self.name)
            with (
                RightsWatch(of_pipeline(self.settings, self.name, self.cluster), log),
                ProgressSender(home, self.name, self.settings.topics) as sender,
            ):
                restarted = self.metrics.restarts.inc if self.metrics else None
                kept(lambda: self._query(running, source, place, sender), self.stop, self.once, restarted)

    def _query(
        self, running: SparkSession, source: OffsetsSource, place: Checkpoint, sender: ProgressSender
    ) -> None:
        wait_for_the_last(running, self.query_name, self.stop)
        reached = CoveredOffsets() if self.replay else place.reached(OFFSETS_TOPIC)
        places = {} if self.replay else self._places(source, place, sender, reached)
        if places:
            reached = covered(self.places.known(reached), places)
        # Not what is readable by now: the places are of these.
        read = source.partitions - self.places.left_out
        catching_up = CatchUp()
        reporter = self._reporter(source, sender, catching_up)
        # Before the query starts, or the report of its first batch could be missed.
        running.streams.addListener(reporter)
        query = None
        try:
            query = self._start(running, source, place.folder, places, read)
            reporter.start(reached)
            log.info("Reading %s of cluster %s (run %s).", OFFSETS_TOPIC, self.name, reporter.run_id)
            check = self._checked(source, place, read)
            check()  # a run that ends at once is never looked at
            awaited(query, self.stop, check)
            if self.once and not self.stop.is_set():
                self._last_beat(query, reporter)
        except (LogCutError, LeadersChanged):
            if self.once:
                raise
        finally:
            reporter.stop()
            catching_up.close()
            running.streams.removeListener(
                reporter
            )  # before the end: Spark calls what is registered even then
            stopped(query)

    def _places(
        self, source: OffsetsSource, place: Checkpoint, sender: ProgressSender, reached: CoveredOffsets
    ) -> dict[int, int]:
        """Where to begin instead of the checkpoint, by partition; nothing if it goes on from there."""
        lost, left_out = self._back_to(source, place, sender, reached), source.leaderless
        if not lost and left_out == self.places.left_out:
            return {}
        if left_out != self.places.left_out:
            log.warning("%s", source.leaders_sentence())
        places = self.places.of(source.partitions, left_out, reached, lost)
        place.begin_anew()
        return places

    def _back_to(
        self, source: OffsetsSource, place: Checkpoint, sender: ProgressSender, reached: CoveredOffsets
    ) -> dict[int, int]:
        """Partition → the first offset that its log has lost, of what the stream had read; it is announced to the workers."""
        source.resume(self.places.known(reached).offset, place.epochs())
        source.tried(source.ends)
        if not source.cut:
            return {}
        log.warning("%s Reading again from there.", source.cut_sentence())
        lost = sorted(source.cut.items())
        message = LogCut(
            self.name, int(time.time() * 1000), [p for p, _ in lost], [offset for _, offset in lost]
        )
        # Before anything is read again: what stands there now has lesser offsets than what workers know, and would seem older.
        while not sender.send(message):
            if self.stop.wait(2):
                return {}
        source.cut.clear()
        return dict(lost)

    def _checked(self, source: OffsetsSource, place: Checkpoint, read: Collection[int]) -> Callable[[], None]:
        """What is looked at while a query runs."""
        kept: dict[int, int] = {}
        clock = WallClock()

        def check() -> None:
            nonlocal kept
            source.check(read)
            if not self.once:  # that has no trigger to wait for
                clock.check()
            # After the check: on record before a cut was seen to, they would hide it from the next start.
            if not self.replay and source.epochs != kept:
                kept = source.epochs
                place.keep_epochs(kept)

        return check

    def _last_beat(self, query: StreamingQuery, reporter: ProgressReporter) -> None:
        """Spark tells of the last batch a moment after the query has ended; without a batch, tell how far it was."""
        done = len([p for p in query.recentProgress if p["numInputRows"]])
        until = time.monotonic() + 10
        # recentProgress has the batch at once; the listener is called by another thread of Spark.
        while reporter.batches < done and time.monotonic() < until:
            time.sleep(0.05)
        reporter.beat()

    def _start(
        self,
        running: SparkSession,
        source: OffsetsSource,
        place: str,
        places: Mapping[int, int],
        read: Collection[int],
    ) -> StreamingQuery:
        settings, topics = self.settings.pipeline, self.settings.topics
        target = Target(self.name, topics.events, topics.dead_letters, topics.app)
        records = read_stream(
            running,
            spark_options(self.cluster),
            source.group_with_coordinator(f"{target.own}-pipeline"),
            settings.max_offsets_per_trigger,
            places,
            read,
        )
        together = Bundling(self.name, topics.events, topics.partitions, settings.events_per_message)
        made = to_messages(records, target, running.sparkContext.defaultParallelism, together)
        writer = made.writeStream.format("kafka").queryName(self.query_name)
        writer = writer.options(**spark_options(self.settings.home_cluster(self.name)), **SINK)
        writer = writer.option("checkpointLocation", place)
        if self.once:
            # AvailableNow reads what was there at its start and ends, in batches of maxOffsetsPerTrigger:
            # https://spark.apache.org/docs/latest/structured-streaming-programming-guide.html#triggers
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(self.every * 1000)} milliseconds").start()

    def _reporter(
        self, source: OffsetsSource, sender: ProgressSender, catching_up: CatchUp
    ) -> ProgressReporter:
        def on_batch(progress: Mapping[str, Any]) -> None:
            if self.metrics:
                self.metrics.batch(progress)
            if self.on_batch:
                self.on_batch(progress)

        def on_beat(beat: Beat) -> None:
            catching_up.see(beat)
            if self.metrics:
                self.metrics.beat(beat)

        return ProgressReporter(
            self.name, self.every, source.ends, sender.send, self.replay, on_batch, on_beat
        )


# acks=all: progress says that events are in the topic, so a broker that dies must not lose them. 8 MB is the
# max.message.bytes of kagent's topics: an event that cannot be split further may be that large.
SINK = {"kafka.compression.type": "zstd", "kafka.max.request.size": str(8 << 20), "kafka.acks": "all"}


def check(settings: Settings, master: str | None) -> None:
    """Fail fast where a setting cannot be. Raises SettingsError."""
    where = master or settings.pipeline.master
    if not where.startswith(("local", "spark://", "yarn", "k8s://")):
        raise SettingsError(
            f"{where!r} is no Spark master: local[*], local[2], spark://host:7077, yarn or k8s://… ."
        )
