"""What of the source never arrived: one row a partition of the events topic.

Key: the partition's number. Written only when a gap opens or closes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kagent.contract.admission import Partition

NAME = "coverage"


class CoverageRow(msgspec.Struct):
    """``state``: kagent.worker.ingest_progress.Coverage as JSON."""

    partition: Partition
    state: dict[str, Any]
    version: int = 1

    @property
    def key(self) -> str:
        """The row's key."""
        return str(self.partition)
