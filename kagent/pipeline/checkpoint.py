"""Where the stream keeps its place, and whose place it is: a checkpoint belongs to one cluster and one topic.

``kagent.json`` beside Spark's own files names both. Any file system that Spark knows will do. Of Spark's files, which
outlive a crash, two kinds are read: ``offsets/<batch>`` (how far the batch reads) and ``commits/<batch>`` (written when
everything of the batch is in the events topic).
"""

from __future__ import annotations

import errno
import json
import os
import re
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kagent.errors import KafkaError, KagentError, SettingsError
from kagent.pipeline.spark_errors import passing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "kagent.json"
DEFAULT_FILES = "spark.hadoop.fs.defaultFS"
"""With this option a path without a scheme is not one of this machine."""
EPOCHS = "epochs.json"
OF_SPARK = ("commits", "offsets", "sources", "state", "metadata")
"""What Spark keeps in a checkpoint."""


def writable(
    place: str,
    options: Collection[str],
    what: str = "The checkpoint",
    where: str = "pipeline.checkpoint to a folder",
) -> None:
    """Raises SettingsError where this is a folder of this machine that cannot be made or written: before a cluster is waited for.

    ``options``: names of Spark's further settings; ``what`` and ``where``: the folder, and the setting of it, in words.
    """
    folder = place.removeprefix("file://").removeprefix("file:")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", folder) or DEFAULT_FILES in options:
        return
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise SettingsError(
            f"{what} {place} cannot be written ({error.strerror}): set {where} that can be."
        ) from error


@dataclass(frozen=True, slots=True)
class CoveredOffsets:
    """What is certainly in the events topic: [start, offset) per source partition; without an entry in ``start``: 0."""

    start: Mapping[int, int] = field(default_factory=dict)
    offset: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Checkpoint:
    """One checkpoint folder."""

    spark: SparkSession
    folder: str

    def claim(self, cluster_id: str, topic_id: str) -> str:
        """Make sure that the checkpoint is this cluster's, and mark a new one so; the id made with it is returned.

        Raises SettingsError if it belongs to another cluster, to a topic that was re-created since or to another stream,
        or cannot be read or written; KafkaError where that passes, as with a full disk.
        """
        mark = self._text(NAME)
        if not mark:  # empty: the disk was full, or the machine went down, when it was made
            # Spark writes ``metadata`` first: a folder with it and without our mark is another query's.
            if self._text("metadata") is not None:
                raise SettingsError(
                    f"The checkpoint {self.folder} is not kagent's: give it a folder of its own."
                )
            made = uuid.uuid4().hex
            self._write(NAME, {"cluster_id": cluster_id, "topic_id": topic_id, "stream": made})
            return made
        found = self._parsed(mark)
        if found.get("cluster_id") != cluster_id:
            raise SettingsError(
                f"The checkpoint {self.folder} belongs to cluster {found.get('cluster_id')}, not to {cluster_id}: "
                "give this cluster a checkpoint of its own."
            )
        if found.get("topic_id") != topic_id:
            raise SettingsError(
                f"The topic that the checkpoint {self.folder} is about was re-created since: "
                "remove the checkpoint, and the stream starts anew from the beginning."
            )
        return str(found.get("stream", ""))

    def reached(self, topic: str) -> CoveredOffsets:
        """What the batches that are still on record have covered."""
        # A batch has an entry in commits/ only when the sink has taken all of it; the newest in offsets/ may still run.
        done = set(self._numbers("commits"))
        known = sorted(number for number in self._numbers("offsets") if number in done)
        if not known:
            return CoveredOffsets()
        # Spark removes the files of old batches (spark.sql.streaming.minBatchesToRetain, 100): only since the oldest one that
        # is left is anything known.
        start = {} if known[0] == 0 else self._offsets(known[0], topic)
        return CoveredOffsets(start, self._offsets(known[-1], topic))

    def epochs(self) -> dict[int, int]:
        """The leaders' epochs under which the source was read last, by partition; nothing where they are not on record."""
        try:
            found = json.loads(self._text(EPOCHS) or "{}")
            return {int(partition): int(epoch) for partition, epoch in found.items()}
        except (ValueError, AttributeError):  # cut off by a crash: offsets alone are compared then
            return {}

    def keep_epochs(self, epochs: Mapping[int, int]) -> None:
        """Put them on record. Raises SettingsError where the folder cannot be written, KafkaError where its disk is full."""
        self._write(EPOCHS, {str(partition): epoch for partition, epoch in epochs.items()})

    def begin_anew(self) -> None:
        """Remove what Spark keeps: the stream then begins at the places that it is given. Raises SettingsError."""
        from py4j.protocol import Py4JJavaError

        try:
            # The commits first: whatever is left after a crash then says less than was read, never more.
            for name in OF_SPARK:
                files, path = self._path(name)
                files.delete(path, True)
        except Py4JJavaError as error:
            raise self._refused("written", error) from error

    def _offsets(self, batch: int, topic: str) -> dict[int, int]:
        lines = (self._text(f"offsets/{batch}") or "").splitlines()
        # OffsetSeqLog writes a version, the batch's metadata, then a line per source; this query has one source.
        return parsed_offsets(lines[2], topic) if len(lines) > 2 else {}

    def _parsed(self, mark: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(mark)
        except ValueError as error:
            raise SettingsError(
                f"{self.folder}/{NAME} is broken: remove the checkpoint, and the stream starts anew."
            ) from error
        return found

    def _path(self, name: str) -> tuple[Any, Any]:
        jvm: Any = self.spark._jvm
        java: Any = self.spark._jsc
        path = jvm.org.apache.hadoop.fs.Path(self.folder, name)
        # Hadoop's file systems, not open(): the checkpoint may be on HDFS, S3 or what else Spark is set up for.
        return path.getFileSystem(java.hadoopConfiguration()), path

    def _numbers(self, name: str) -> list[int]:
        files, path = self._path(name)
        if not files.exists(path):
            return []
        names = (str(status.getPath().getName()) for status in files.listStatus(path))
        return [int(found) for found in names if found.isdigit()]

    def _text(self, name: str) -> str | None:
        from py4j.protocol import Py4JJavaError

        jvm: Any = self.spark._jvm
        try:
            files, path = self._path(name)
            if not files.exists(path):
                return None
            stream = files.open(path)
            try:
                return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise self._refused("read", error) from error

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        from py4j.protocol import Py4JJavaError

        try:
            files, path = self._path(name)
            stream = files.create(path, True)
            stream.write(bytearray(json.dumps(content).encode()))
            stream.close()
        except Py4JJavaError as error:
            raise self._refused("written", error) from error

    def _refused(self, what: str, error: Any) -> KagentError:
        # A stream whose disk is full waits until it is not; a folder that this user may not write is a mistake in the settings.
        if (reason := passing(error)) is not None:
            return KafkaError(reason)
        raw = str(error.java_exception.getMessage() or error.java_exception).splitlines()[0]
        return SettingsError(f"The checkpoint {self.folder} cannot be {what} ({raw}).")


def parsed_offsets(raw: str | Mapping[str, Any] | None, topic: str) -> dict[int, int]:
    """``{"__consumer_offsets": {"0": 12}}``, as JSON text or parsed, to partition → offset."""
    if not raw:
        return {}
    parsed = json.loads(raw) if isinstance(raw, str) else raw
    return {int(partition): int(offset) for partition, offset in parsed.get(topic, {}).items()}
