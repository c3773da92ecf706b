"""What waits at a partition, and since when."""

from __future__ import annotations

from typing import Any


def test_markers_at_the_end_of_the_log_are_no_backlog(group: Any) -> None:
    model = group({"t": [{"end": 100, "committed": 98, "age": 1800}]}, {"m0": {"t": [0]}}).look()

    assert model.work.tolist() == [0.0]
    assert model.columns.waiting_since.tolist() == [0]
