"""idle_members: without a partition for a week."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kagent.detect.detectors import idle_members
from tests.fixtures.findings import FINE, leading

Make = Callable[..., Any]


def test_members_without_a_partition_are_idle_after_a_week(group: Make) -> None:
    made = group({"t": [FINE]}, {"m0": {"t": [0]}, "m1": {}})
    now = made.observe().now
    model, found = made.looked(generation_at=now - 610_000_000)

    assert leading(found) == "idle_members"
    assert idle_members.reason(model, found[0]) == "1 member holds no partition."
    assert leading(made.looked(generation_at=now - 600_000_000)[1]) == "balanced"
