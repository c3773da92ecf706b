"""A capture folder: what groups wrote to ``__consumer_offsets``, and the log ends beside it.

    records.jsonl.gz  {"p": partition, "o": offset, "ts": written, "at": read, "k": hex key, "v": hex value or null}
    ends.jsonl.gz     {"at": asked, "done": answered, "ends": {topic: {partition: [log start, log end]}}}
    truth.json        optional; of it only "ended_ms" is used: what follows is the teardown

Times in ms since 1970. The records become group events as the pipeline makes them: those read within one trigger, the last
of each key.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from kagent.contract.events import GroupEvent, decode
from kagent.errors import InputError
from kagent.pipeline.build import Target, messages
from kagent.pipeline.compact import latest

RECORDS, ENDS, TRUTH = "records.jsonl.gz", "ends.jsonl.gz", "truth.json"
EVENTS, LETTERS = "events", "letters"
NOBODY = "\x00"
"""No group's name: in a capture, kagent's own groups are as good as any."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """What one trigger of the pipeline would have told at this time (ms): an event a group."""

    at: int
    events: tuple[GroupEvent, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """Log starts and ends of all partitions of the topics: asked and answered at these times (ms)."""

    asked: int
    answered: int
    starts: dict[str, list[int]]
    ends: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Capture:
    """A folder as it is replayed: from ``start`` to ``end`` (ms). ``unreadable``: records that could not be decoded."""

    cluster: str
    start: int
    end: int
    triggers: tuple[Trigger, ...]
    samples: tuple[Sample, ...]
    unreadable: int = 0

    @property
    def groups(self) -> list[str]:
        """The groups that are told of, sorted."""
        return sorted({event.group for trigger in self.triggers for event in trigger.events})


def read(folder: Path, cluster: str = "main", trigger: float = 1.0) -> Capture:
    """The capture in this folder. ``trigger``: seconds between triggers. Raises InputError for what is no capture."""
    rows, ends = list(_lines(folder / RECORDS)), list(_lines(folder / ENDS))
    try:
        truth = folder / TRUTH
        ended = orjson.loads(truth.read_bytes()).get("ended_ms") if truth.exists() else None
        samples = tuple(_sample(line) for line in ends)
        read_at = np.maximum.accumulate(np.array([row["at"] for row in rows], np.int64))
        table = _table(rows)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{folder} is no capture: {type(error).__name__} {error}.") from error
    if not len(read_at):
        raise InputError(f"{folder} holds no record: nothing of the groups was captured.")
    start = min(int(read_at[0]), samples[0].asked if samples else int(read_at[0]))
    end = int(ended or max(int(read_at[-1]), samples[-1].answered if samples else 0))
    triggers, unreadable = _triggers(table, read_at, start, end, cluster, round(trigger * 1000))
    return Capture(cluster, start, end, triggers, samples, unreadable)


def _lines(path: Path) -> Iterator[Any]:
    """The lines of a file; of one that ends in the middle, those that are whole."""
    try:
        with gzip.open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield orjson.loads(line)
                except ValueError as error:
                    if line.endswith(b"\n"):
                        raise InputError(f"Line {number} of {path} is not JSON.") from error
    except EOFError:
        return
    except (OSError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or "it is no gzip file that can be read"
        raise InputError(f"{path} cannot be read: {problem}.") from error


def _sample(line: dict[str, Any]) -> Sample:
    starts, ends = {}, {}
    for topic, logs in line["ends"].items():
        count = max(map(int, logs), default=-1) + 1
        known = [logs.get(str(p), (-1, -1)) for p in range(count)]
        starts[topic], ends[topic] = [s for s, _ in known], [e for _, e in known]
    return Sample(line["at"], line["done"], starts, ends)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([_bytes(row["k"]) for row in rows], pa.binary()),
            "value": pa.array([_bytes(row["v"]) for row in rows], pa.binary()),
            "partition": pa.array([row["p"] for row in rows], pa.int64()),
            "offset": pa.array([row["o"] for row in rows], pa.int64()),
            "time": pa.array([row["ts"] for row in rows], pa.int64()),
        }
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _triggers(
    table: pa.Table, read_at: np.ndarray, start: int, end: int, cluster: str, every: int
) -> tuple[tuple[Trigger, ...], int]:
    target = Target(cluster, EVENTS, LETTERS, NOBODY)
    slots = (read_at - start + every - 1) // every
    cuts = [0, *(np.flatnonzero(np.diff(slots)) + 1).tolist(), len(slots)]
    found: list[Trigger] = []
    unreadable = 0
    for first, after in pairwise(cuts):
        at = start + int(slots[first]) * every
        if at > end:
            break
        made = list(messages(latest(table.slice(first, after - first)), target, at))
        events = [decode(value) for topic, _, value, _ in made if topic == EVENTS]
        unreadable += len(made) - len(events)
        found.append(Trigger(at, tuple(e for e in events if isinstance(e, GroupEvent))))
    return tuple(found), unreadable
