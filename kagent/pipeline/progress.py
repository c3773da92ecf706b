"""Progress records: how far the stream has read, sent to every partition of the events topic, also when idle.

Why a progress record never runs ahead of its events: a task of Spark's Kafka sink ends only when every record it wrote
was acknowledged by all replicas; when all tasks have ended Spark writes the batch to its commit log; only then does it
tell the listener, and only the listener writes progress. Both stand in the log of one partition, so a reader of the
partition meets the events first.

What a beat covers begins where the last one that was delivered ended, so that a beat which could not be sent leaves no
hole. After a restart it begins with what the checkpoint still has on record. If the log ends cannot be asked or a beat
cannot be delivered nothing is sent, and readers go blind in time.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from kagent.contract.events import Beat
from kagent.errors import KafkaError
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.checkpoint import CoveredOffsets, parsed_offsets

log = logging.getLogger("kagent.pipeline")

Ends = Mapping[int, tuple[int, int]]
"""Source partition → (log end, last stable offset)."""

SILENT_TRIGGERS = 2.0
"""A beat is sent when none was for this many triggers: during a long batch. More often, a reader of a busy cluster would
see the log end move on between two batches and hold the stream for late."""


class ProgressReporter(StreamingQueryListener):
    """Sends a beat after every batch, at every look that found nothing new, and in between during a long batch."""

    def __init__(
        self,
        cluster: str,
        trigger: float,
        ends: Callable[[], Ends],
        send: Callable[[Beat], bool],
        replay: bool = False,
        on_batch: Callable[[Mapping[str, Any]], None] | None = None,
        on_beat: Callable[[Beat], None] | None = None,
    ) -> None:
        self.cluster, self.trigger, self.replay = cluster, trigger, replay
        self.run_id = uuid.uuid4().hex
        self.batches = 0
        self._ends, self._send, self._on_batch, self._on_beat = ends, send, on_batch, on_beat
        self._told: dict[int, int] = {}
        self._reached: dict[int, int] = {}
        self._last = 0.0
        # Spark's listener thread and the thread between batches may beat at the same time.
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Nothing to say before the first batch."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Readers notice by the silence."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Spark looked and found nothing new."""
        self.beat()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch is done and its events are in the topic."""
        progress = json.loads(event.progress.json)
        for source in progress["sources"]:
            start, end = (
                parsed_offsets(source.get(name), OFFSETS_TOPIC) for name in ("startOffset", "endOffset")
            )
            self.beat(CoveredOffsets(start, end))
        self.batches += 1
        if self._on_batch:
            self._on_batch(progress)

    def start(self, reached: CoveredOffsets | None = None) -> None:
        """Begin to beat. ``reached``: what the checkpoint says is in the topic already."""
        if reached is not None:
            self._note(reached)
        self._stop.clear()
        self._thread = threading.Thread(target=self._between, name="kagent-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop beating; what was reached is kept."""
        self._stop.set()
        if self._thread:
            self._thread.join(10)

    def beat(self, reached: CoveredOffsets | None = None) -> None:
        """Tell what is covered since the last beat that was delivered."""
        with self._lock:
            if reached is not None:
                self._note(reached)
            # Before the attempt: a cluster that is away is asked once per pause, not in a loop.
            self._last = time.monotonic()
            try:
                ends = self._ends()
            except KafkaError as error:
                log.warning("Progress cannot be sent: %s", error)
                return
            beat = self._made(ends)
            if beat is not None and self._send(beat):
                # Only after delivery: a beat that was lost is covered by the next one, so no interval is missing from the topic.
                self._told.update(zip(beat.source, beat.offset, strict=True))
                if self._on_beat:
                    self._on_beat(beat)

    def _note(self, reached: CoveredOffsets) -> None:
        for partition, offset in reached.offset.items():
            # Only for a partition not reported yet: later beats begin where the last delivered one ended, so that a
            # batch repeated after a failure opens no gap.
            self._told.setdefault(partition, reached.start.get(partition, 0))
            # A repeated batch must not take progress back that was reported.
            self._reached[partition] = max(self._reached.get(partition, 0), offset)

    def _made(self, ends: Ends) -> Beat | None:
        known = [
            (p, self._told[p], offset, *ends[p]) for p, offset in sorted(self._reached.items()) if p in ends
        ]
        if not known:
            return None
        columns = list(zip(*known, strict=True))
        return Beat(self.cluster, int(time.time() * 1000), self.run_id, self.trigger, self.replay, *columns)

    def _between(self) -> None:
        pause = SILENT_TRIGGERS * self.trigger
        while not self._stop.wait(min(1.0, self.trigger)):
            if time.monotonic() - self._last > pause:
                self.beat()
