"""Writes a capture folder while it is captured; what was written stays readable if the process is killed."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from kagent import __version__
from kagent.capture.folder import ABOUT, ENDS, RECORDS, EndsSample, RawRecord
from kagent.capture.pseudonyms import Pseudonyms
from kagent.errors import InputError
from kagent.lag.observation import TopicInfo
from kagent.offsets import DecodeError


@dataclass(slots=True)
class FolderWriter:
    """A context. ``pseudonyms``: replaces names where given; records that it cannot read are ``left_out``."""

    path: Path
    pseudonyms: Pseudonyms | None = None
    records: int = 0
    samples: int = 0
    left_out: int = 0
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    _files: ExitStack = field(default_factory=ExitStack)
    _records: gzip.GzipFile = field(init=False)
    _ends: gzip.GzipFile = field(init=False)

    def __enter__(self) -> FolderWriter:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # A second capture in the same folder would mix two clusters, or two salts of pseudonyms.
            if any(self.path.iterdir()):
                raise InputError(f"{self.path} is not empty: name a new folder for the capture.")
            self._records = self._files.enter_context(gzip.open(self.path / RECORDS, "wb"))
            self._ends = self._files.enter_context(gzip.open(self.path / ENDS, "wb"))
        except OSError as error:
            raise InputError(f"{self.path} cannot be written ({error.strerror}).") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()
        if error is not None and not (self.records or self.samples):
            # Nothing was captured, for a wrong login say: the next try may use the same folder.
            for name in (RECORDS, ENDS):
                (self.path / name).unlink(missing_ok=True)
            return
        self._write_about()

    def record(self, record: RawRecord) -> None:
        """Write one record."""
        key, value = record.key, record.value
        if self.pseudonyms is not None:
            try:
                key, value = self.pseudonyms.record(key or b"", value)
            # What cannot be decoded cannot be redacted either: left out rather than given away.
            except (DecodeError, ValueError):
                self.left_out += 1
                return
        place = (record.partition, record.offset, record.written_ms, record.read_ms)
        self._records.write(RawRecord(*place, key, value).line() + b"\n")
        self.records += 1

    def sample(self, sample: EndsSample, topics: Mapping[str, TopicInfo]) -> None:
        """Write the log ends of some topics, and once what the cluster says of each topic."""
        named = EndsSample(
            sample.asked_ms,
            sample.answered_ms,
            *(self._named(columns) for columns in (sample.starts, sample.ends, sample.stables)),
        )
        self._ends.write(named.line() + b"\n")
        self.samples += 1
        if self.topics != topics:
            self.topics = dict(topics)
            self._write_about()

    def flush(self) -> None:
        """Bring what was written to the disk."""
        # GzipFile.flush() ends a deflate block (Z_SYNC_FLUSH), so everything up to here can be read even if the process is killed.
        self._records.flush()
        self._ends.flush()

    def _named(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        return {self._topic(topic): column for topic, column in columns.items()}

    def _topic(self, topic: str) -> str:
        return topic if self.pseudonyms is None else self.pseudonyms.name("topic", topic)

    def _write_about(self) -> None:
        topics = {
            self._topic(name): {
                "id": info.topic_id,
                "partitions": info.partitions,
                "compacted": info.compacted,
                "leaders": info.leaders,
            }
            for name, info in sorted(self.topics.items())
        }
        about = {"kagent": __version__, "redacted": self.pseudonyms is not None, "topics": topics}
        (self.path / ABOUT).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2) + b"\n")
