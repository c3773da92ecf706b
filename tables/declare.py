"""How every table is declared: same partition count as the events topic, compacted soon, rows as plain JSON."""

from __future__ import annotations

from typing import Any

import faust

CHANGELOG = {
    "compression.type": "zstd",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.bytes": str(64 * 1024 * 1024),
    "segment.ms": str(3600 * 1000),
    "max.message.bytes": str(8 * 1024 * 1024),
}
"""Changelogs are re-read at every start: small segments let compaction reach them."""


def declare(app: faust.App, name: str, row: type[faust.Record], partitions: int) -> Any:
    """The Faust table of this name, from string keys to ``row``."""
    return app.Table(name, key_type=str, value_type=row, partitions=partitions, extra_topic_configs=CHANGELOG)
