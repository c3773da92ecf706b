"""Where the stream keeps its place, and whose place it is: a checkpoint belongs to one cluster and one topic.

``kagent.json`` beside Spark's own files names both. Any file system that Spark knows will do.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kagent.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "kagent.json"


def claim(spark: SparkSession, checkpoint: str, cluster_id: str, topic_id: str) -> None:
    """Make sure that the checkpoint is this cluster's, and mark a new one so.

    Raises SettingsError if it belongs to another cluster or to a topic that was re-created since, or cannot be written.
    """
    found = _read(spark, checkpoint)
    if found is None:
        _write(spark, checkpoint, {"cluster_id": cluster_id, "topic_id": topic_id})
        return
    if found.get("cluster_id") != cluster_id:
        raise SettingsError(
            f"The checkpoint {checkpoint} belongs to cluster {found.get('cluster_id')}, not to {cluster_id}: "
            "give this cluster a checkpoint of its own."
        )
    if found.get("topic_id") != topic_id:
        raise SettingsError(
            f"__consumer_offsets was re-created since the checkpoint {checkpoint} was made: "
            "remove the checkpoint, and the stream starts anew from the beginning."
        )


def _path(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    java: Any = spark._jsc
    path = jvm.org.apache.hadoop.fs.Path(folder, NAME)
    return path.getFileSystem(java.hadoopConfiguration()), path


def _read(spark: SparkSession, folder: str) -> dict[str, Any] | None:
    jvm: Any = spark._jvm
    files, path = _path(spark, folder)
    if not files.exists(path):
        return None
    stream = files.open(path)
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    found: dict[str, Any] = json.loads(text)
    return found


def _write(spark: SparkSession, folder: str, content: dict[str, str]) -> None:
    from py4j.protocol import Py4JJavaError

    files, path = _path(spark, folder)
    try:
        stream = files.create(path, True)
        stream.write(bytearray(json.dumps(content).encode()))
        stream.close()
    except Py4JJavaError as error:
        reason = str(error.java_exception.getMessage()).splitlines()[0]
        raise SettingsError(f"The checkpoint {folder} cannot be written ({reason}).") from error
