"""Which addresses of folders Spark can open, so that a wrong one is refused before a JVM has started. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

KNOWN = (
    # Hadoop itself, hadoop-client-api: META-INF/services/org.apache.hadoop.fs.FileSystem
    *("file", "har", "hdfs", "swebhdfs", "viewfs", "webhdfs"),
    # Its cloud modules and those of vendors: https://hadoop.apache.org/docs/r3.4.1/ (File system implementations)
    *("abfs", "abfss", "cosn", "dbfs", "gs", "o3fs", "obs", "ofs", "oss", "s3a", "wasb", "wasbs"),
)
"""Schemes with an implementation of Hadoop's FileSystem, which Spark reads and writes through."""


def problem(place: str, options: Collection[str]) -> str | None:
    """Why Spark cannot open this folder; None where it may. ``options``: names of further Spark settings."""
    # Two letters at least: C:/ is a drive of Windows.
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/", place)
    if scheme is None or scheme[1] in KNOWN or f"spark.hadoop.fs.{scheme[1]}.impl" in options:
        return None
    near = get_close_matches(scheme[1].lower(), KNOWN, 1, 0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"Spark has no file system {scheme[1]}:// without spark.hadoop.fs.{scheme[1]}.impl in pipeline.options{hint}"
