"""A jump in the offsets of the events topic is a loss."""

from __future__ import annotations

import pytest

from kagent.worker.offset_gaps import Arrival


@pytest.mark.parametrize(
    ("committed", "offsets", "lost"),
    [
        (None, [0, 1, 2], [False, False, False]),
        (None, [5], [True]),
        (7, [7, 8], [False, False]),
        (7, [9, 10], [True, False]),
        (7, [3, 4, 5, 6, 7, 8], [False] * 6),
        (0, [0, 4, 5], [False, True, False]),
    ],
    ids=["fresh", "fresh but late", "resumed", "expired", "redelivered", "jumped"],
)
def test_only_a_jump_is_a_loss(committed: int | None, offsets: list[int], lost: list[bool]) -> None:
    arrival = Arrival()
    arrival.resume(3, committed)

    assert [arrival.lost(3, o) for o in offsets] == lost
