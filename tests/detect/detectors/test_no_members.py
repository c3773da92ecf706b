"""no_members: had members today, has none, and its lag grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.detect.detectors.no_members import reason
from tests.fixtures.findings import FINE, leading

Make = Callable[..., Any]
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("rate", "had_members", "longest", "verdict"),
    [
        (100, 2 * HOUR, 0, "no_members"),
        (100, 25 * HOUR, 0, "balanced"),
        (100, 2 * HOUR, 22 * HOUR, "balanced"),
        (0, 2 * HOUR, 0, "balanced"),
    ],
    ids=["today", "yesterday", "as always", "nothing comes"],
)
def test_an_absent_group_is_told_where_it_is_missed(
    group: Make, rate: int, had_members: int, longest: int, verdict: str
) -> None:
    gone = group({"t": [{**FINE, "rate": rate, "lag": 0, "age": 7200}]}, {})
    at = gone.observe().now - had_members

    assert leading(gone.looked(members_at=at, empty_since=at, longest_absence=longest)[1]) == verdict


@pytest.mark.parametrize(
    ("unchanged", "asked", "rate", "verdict"),
    [
        (2 * HOUR, ["t"], 100, "no_members"),
        (HOUR // 2, ["t"], 100, "balanced"),
        (2 * HOUR, [], 100, "balanced"),
        (2 * HOUR, ["t"], 0, "balanced"),
    ],
    ids=["for hours", "of late", "subscription unknown", "nothing comes"],
)
def test_partitions_that_no_member_holds_are_told(
    group: Make, unchanged: int, asked: list[str], rate: int, verdict: str
) -> None:
    left = {**FINE, "rate": rate, "lag": 0, "age": 7200}
    half = group({"t": [FINE, left, left]}, {"m0": {"t": [0]}}, subscriptions=asked)
    found = half.looked(assigned_at=half.observe().now - unchanged)[1]

    assert leading(found) == verdict
    if verdict == "no_members":
        assert "No member has held t-1 and 1 more for 2 h" in reason(half.look(), found[0])
