"""Captured records to group events, by the pipeline's own code: one trigger a second, the last record of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kagent.capture.folder import CaptureFolder, EndsSample, RawRecord
from kagent.contract.admission import decode
from kagent.contract.events import GroupEvent
from kagent.lag.observation import TopicInfo
from kagent.pipeline.build import Target, messages
from kagent.pipeline.compact import latest

EVENTS, DEAD_LETTERS = "events", "dead-letters"
NOT_A_GROUP = "\x00"
"""In the place of kagent's own group: nothing in a capture is left out."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The events that one trigger of the pipeline would have written at ``at_ms``."""

    at_ms: int
    events: tuple[GroupEvent, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """A capture, decoded. ``unreadable``: number of records that would have become dead letters."""

    cluster: str
    start_ms: int
    end_ms: int
    triggers: tuple[Trigger, ...]
    samples: tuple[EndsSample, ...]
    topics: dict[str, TopicInfo]
    unreadable: int = 0

    @property
    def groups(self) -> list[str]:
        """All groups in the recording, sorted."""
        return sorted({event.group for trigger in self.triggers for event in trigger.events})


def recording(folder: CaptureFolder, cluster: str = "main", trigger_s: float = 1.0) -> Recording:
    """Decode a capture up to its end."""
    start, every = folder.start_ms, max(1, round(trigger_s * 1000))
    triggers: list[Trigger] = []
    unreadable = 0
    # One table, sliced by trigger: a table for each second would cost more than the decoding.
    table = _table(folder.records)
    for number, first, after in _by_trigger(folder.records, start, every):
        at_ms = start + number * every
        if at_ms > folder.end_ms:
            break
        events, bad = _events(table.slice(first, after - first), cluster, at_ms)
        triggers.append(Trigger(at_ms, events))
        unreadable += bad
    samples = tuple(folder.samples)
    return Recording(cluster, start, folder.end_ms, tuple(triggers), samples, dict(folder.topics), unreadable)


def _by_trigger(records: Sequence[RawRecord], start: int, every: int) -> list[tuple[int, int, int]]:
    """The number of each trigger and the span of records that it reads; time never runs backwards."""
    # A clock that was set back would put records into triggers that are over already.
    read = np.maximum.accumulate(np.array([record.read_ms for record in records], np.int64))
    # The ceiling, as -(-n // d): a record belongs to the first trigger at or after the moment at which it was read.
    numbers = -((start - read) // every)
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(records)]
    return [(int(numbers[first]), first, after) for first, after in pairwise(cuts)]


def _events(records: pa.Table, cluster: str, at_ms: int) -> tuple[tuple[GroupEvent, ...], int]:
    # The pipeline's own two steps, so that a replay cannot read a record differently from the service.
    rows = list(messages(latest(records), Target(cluster, EVENTS, DEAD_LETTERS, NOT_A_GROUP), at_ms))
    decoded = [decode(value) for topic, _, value, _ in rows if topic == EVENTS]
    return tuple(event for event in decoded if isinstance(event, GroupEvent)), len(rows) - len(decoded)


def _table(records: Sequence[RawRecord]) -> pa.Table:
    columns = {
        "key": pa.array([record.key for record in records], pa.binary()),
        "value": pa.array([record.value for record in records], pa.binary()),
        "partition": pa.array([record.partition for record in records], pa.int64()),
        "offset": pa.array([record.offset for record in records], pa.int64()),
        "time": pa.array([record.written_ms for record in records], pa.int64()),
    }
    return pa.table(columns)
