"""The capture folder: its files, written line by line and read whole.

    records.jsonl.gz  {"p": partition, "o": offset, "ts": written, "at": read, "k": hex key, "v": hex value or null}
    ends.jsonl.gz     {"at": asked, "done": answered, "ends": {topic: {partition: [log start, log end, last stable offset]}}}
    capture.json      optional: {"topics": {topic: {"id", "partitions", "compacted", "leaders"}}, …}
    truth.json        optional, from an experiment: {"ended_ms", …}; later records are the teardown and are not replayed

Times in ms since 1970, from the clock of the capturing machine except ``ts``, which is the broker's. Records are in the order
in which they were read. The last stable offset may be missing. A file that ends in the middle of a line, because the capture
was killed, is read up to there.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from kagent.errors import InputError
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.observation import TopicInfo

RECORDS, ENDS, ABOUT, TRUTH = "records.jsonl.gz", "ends.jsonl.gz", "capture.json", "truth.json"


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record of ``__consumer_offsets``: place, time written and time read (ms), key and value."""

    partition: int
    offset: int
    written_ms: int
    read_ms: int
    key: bytes | None
    value: bytes | None

    def line(self) -> bytes:
        """The line of ``records.jsonl.gz``."""
        fields = {"p": self.partition, "o": self.offset, "ts": self.written_ms, "at": self.read_ms}
        return orjson.dumps({**fields, "k": _hex(self.key), "v": _hex(self.value)})

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> RawRecord:
        """The record of a parsed line. Raises KeyError, TypeError or ValueError."""
        place = (int(line["p"]), int(line["o"]), int(line["ts"]), int(line["at"]))
        return cls(*place, _bytes(line["k"]), _bytes(line["v"]))


@dataclass(frozen=True, slots=True)
class EndsSample:
    """Log starts, ends and last stable offsets per topic, as columns over its partitions; UNKNOWN where not answered."""

    asked_ms: int
    answered_ms: int
    starts: Mapping[str, list[int]]
    ends: Mapping[str, list[int]]
    stables: Mapping[str, list[int] | None] = field(default_factory=dict)

    def line(self) -> bytes:
        """The line of ``ends.jsonl.gz``."""
        ends = {
            topic: {
                str(p): offsets
                for p, offsets in enumerate(zip(*self._columns(topic), strict=True))
                # A partition without an answer is left out of the line: a gap, as the reader of the folder takes it.
                if offsets[1] != UNKNOWN
            }
            for topic in self.ends
        }
        return orjson.dumps({"at": self.asked_ms, "done": self.answered_ms, "ends": ends})

    def _columns(self, topic: str) -> list[list[int]]:
        stable = self.stables.get(topic)
        columns = [self.starts[topic], self.ends[topic]]
        return columns if stable is None else [*columns, stable]

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> EndsSample:
        """The sample of a parsed line. Raises KeyError, TypeError or ValueError."""
        starts: dict[str, list[int]] = {}
        ends: dict[str, list[int]] = {}
        stables: dict[str, list[int] | None] = {}
        for topic, logs in line["ends"].items():
            rows = [logs.get(str(p), (UNKNOWN, UNKNOWN)) for p in range(max(map(int, logs), default=-1) + 1)]
            starts[topic], ends[topic] = [row[0] for row in rows], [row[1] for row in rows]
            with_stable = any(len(row) > 2 for row in rows)
            stables[topic] = [row[2] if len(row) > 2 else UNKNOWN for row in rows] if with_stable else None
        return cls(int(line["at"]), int(line["done"]), starts, ends, stables)

    def widened(self, widths: Mapping[str, int]) -> EndsSample:
        """With this number of partitions of each topic."""

        def wide(columns: Mapping[str, list[int] | None]) -> dict[str, Any]:
            return {
                topic: column if column is None else [*column, *[UNKNOWN] * (widths[topic] - len(column))]
                for topic, column in columns.items()
            }

        return replace(self, starts=wide(self.starts), ends=wide(self.ends), stables=wide(self.stables))


@dataclass(frozen=True, slots=True)
class CaptureFolder:
    """All that a folder holds. ``ended_ms``: where an experiment ended, None: with the last line."""

    path: Path
    records: list[RawRecord]
    samples: list[EndsSample]
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    ended_ms: int | None = None

    @property
    def start_ms(self) -> int:
        """When the first record was read or the first sample asked."""
        return min(self.records[0].read_ms, *(sample.asked_ms for sample in self.samples[:1]))

    @property
    def end_ms(self) -> int:
        """When the experiment ended, or the last line was written."""
        last = max(self.records[-1].read_ms, *(sample.answered_ms for sample in self.samples[-1:]))
        return self.ended_ms or last


def read_folder(path: Path) -> CaptureFolder:
    """Read a capture. Raises InputError in a sentence that names the file."""
    records = [_parsed(RawRecord.of, path / RECORDS, *line) for line in _lines(path / RECORDS)]
    samples = _widened([_parsed(EndsSample.of, path / ENDS, *line) for line in _lines(path / ENDS)])
    if not records:
        raise InputError(f"{path} holds no records: nothing of the groups was captured.")
    about, truth = _json(path / ABOUT), _json(path / TRUTH)
    topics = {name: _topic(info) for name, info in about.get("topics", {}).items()}
    return CaptureFolder(path, records, samples, topics, truth.get("ended_ms"))


def _widened(samples: list[EndsSample]) -> list[EndsSample]:
    """The samples with every partition that one before them had: those without an answer are left out of a line, also the last ones,
    as when the broker that leads them starts again."""
    widths: dict[str, int] = {}
    wide = []
    for sample in samples:
        widths |= {topic: max(len(ends), widths.get(topic, 0)) for topic, ends in sample.ends.items()}
        wide.append(sample.widened(widths))
    return wide


def _topic(info: Mapping[str, Any]) -> TopicInfo:
    leaders = tuple(info.get("leaders", ()))
    return TopicInfo(info["partitions"], info.get("id"), bool(info.get("compacted")), leaders)


def _parsed(make: Any, path: Path, number: int, line: bytes) -> Any:
    try:
        return make(orjson.loads(line))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"[:100]
        raise InputError(f"Line {number} of {path} is not a line of a capture ({reason}).") from error


def _json(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no file."""
    if not path.exists():
        return {}
    try:
        content = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON.") from error
    return content if isinstance(content, dict) else {}


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The complete lines of a gzip file with their numbers."""
    try:
        with gzip.open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                # The last line may be cut where the capture was killed; gzip raises EOFError there, as its trailer is missing.
                if line.endswith(b"\n"):
                    yield number, line
    except EOFError:  # the capture was killed
        return
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is not a gzip file"
        raise InputError(f"{path} cannot be read ({reason}): is it a folder of `kagent capture`?") from error


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
