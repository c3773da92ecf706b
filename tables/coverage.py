"""What of the source never arrived: one row a partition of the events topic.

Key: the partition's number. Written only when a gap opens or closes.
"""

from __future__ import annotations

from typing import Any

import faust

NAME = "coverage"


class CoverageRow(faust.Record, include_metadata=False):
    """``state``: kagent.worker.ingest_progress.Coverage as JSON."""

    partition: int
    state: dict[str, Any]
