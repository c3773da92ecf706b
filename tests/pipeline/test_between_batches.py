"""A stop waits for the batch under way, but not for ever."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.pipeline.restarts import between_batches


class Query:
    """Spark's query as far as it is asked: active, and for so many looks in a batch."""

    def __init__(self, looks: int, active: bool = True) -> None:
        self.looks, self.isActive, self.asked = looks, active, 0

    @property
    def status(self) -> dict[str, bool]:
        self.asked += 1
        return {"isTriggerActive": self.asked <= self.looks}


@pytest.mark.parametrize(
    ("query", "asked"), [(Query(looks=2), 3), (Query(looks=0), 1), (Query(looks=9, active=False), 0)]
)
def test_it_waits_until_no_batch_is_under_way(query: Any, asked: int) -> None:
    between_batches(query, within_s=60)

    assert query.asked == asked


def test_a_batch_that_does_not_end_is_given_up() -> None:
    query: Any = Query(looks=10**9)

    between_batches(query, within_s=0)

    assert query.asked == 1
