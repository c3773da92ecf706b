"""Progress records: how far the stream has read, told to every partition of the events topic, also when idle.

A batch's progress is sent by the listener after Spark has committed the batch, so after its events are in the topic.
Between batches (and during a long one) a beat repeats the last offsets with fresh log ends: a reader then sees a stream
that lives but has not got there yet. If the log ends cannot be asked, nothing is sent, and readers go blind in time.
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

from kagent.errors import KafkaError
from kagent.events import Beat
from kagent.pipeline.stream import SOURCE

log = logging.getLogger("kagent.pipeline")

Ends = Mapping[int, tuple[int, int]]
"""Source partition → (log end, last stable offset)."""


class Heart(StreamingQueryListener):
    """Sends a beat after every batch and at least every ``trigger`` seconds between them."""

    def __init__(
        self,
        cluster: str,
        trigger: float,
        ends: Callable[[], Ends],
        send: Callable[[Beat], None],
        replay: bool = False,
        on_batch: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.cluster, self.trigger, self.replay = cluster, trigger, replay
        self.run_id = uuid.uuid4().hex
        self._ends, self._send, self._on_batch = ends, send, on_batch
        self._reached: dict[int, int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.batches = 0

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Nothing to say before the first batch."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """The beat goes on by itself."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Readers notice by the silence."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch is done and its events are in the topic."""
        progress = json.loads(event.progress.json)
        for source in progress["sources"]:
            start, end = (_offsets(source.get(name)) for name in ("startOffset", "endOffset"))
            if end:
                self._beat(
                    {partition: (start.get(partition, 0), offset) for partition, offset in end.items()}
                )
        self.batches += 1
        if self._on_batch:
            self._on_batch(progress)

    def start(self) -> None:
        """Begin to beat between batches."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._between, name="kagent-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop beating; what was reached is kept."""
        self._stop.set()
        if self._thread:
            self._thread.join(10)

    def _between(self) -> None:
        while not self._stop.wait(self.trigger):
            with self._lock:
                reached = {partition: (offset, offset) for partition, offset in self._reached.items()}
            if reached:
                self._beat(reached)

    def _beat(self, covered: Mapping[int, tuple[int, int]]) -> None:
        """Tell that [start, offset) was covered, per source partition."""
        with self._lock:
            for partition, (_, offset) in covered.items():
                self._reached[partition] = max(self._reached.get(partition, 0), offset)
            try:
                ends = self._ends()
            except KafkaError as error:
                log.warning("no progress is told: %s", error)
                return
            known = [
                (p, start, offset, *ends[p]) for p, (start, offset) in sorted(covered.items()) if p in ends
            ]
            if not known:
                return
            columns = list(zip(*known, strict=True))
            now = int(time.time() * 1000)
            self._send(Beat(self.cluster, now, self.run_id, self.trigger, self.replay, *columns))


def _offsets(said: str | Mapping[str, Any] | None) -> dict[int, int]:
    """``{"__consumer_offsets": {"0": 12}}``, as JSON text or parsed, to partition → offset."""
    if not said:
        return {}
    parsed = json.loads(said) if isinstance(said, str) else said
    return {int(partition): int(offset) for partition, offset in parsed.get(SOURCE, {}).items()}
