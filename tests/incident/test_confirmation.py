"""What the coordinator must confirm, by verdict."""

from __future__ import annotations

import pytest

from kagent.contract.recommendation import Verdict
from kagent.detect.detectors import OF
from kagent.detect.finding import Asks
from kagent.incident.confirmation import GroupNow, refusal

SAME, MOVED = GroupNow("stable", True, True), GroupNow("Stable", True, False)
REBALANCING = GroupNow("preparingrebalance", True, True)


@pytest.mark.parametrize("verdict", OF)
def test_a_detector_says_what_the_coordinator_must_confirm(verdict: Verdict) -> None:
    asks = OF[verdict].ASKS

    assert refusal(verdict, True, SAME) is None
    assert refusal(verdict, True, MOVED) == ("assignment_changed" if asks is Asks.ASSIGNMENT else None)
    assert refusal(verdict, True, REBALANCING) == (None if asks is Asks.NOTHING else "not_stable")


def test_only_partitions_that_are_held_refute_a_finding_about_a_group_without_members() -> None:
    assert refusal(Verdict.NO_MEMBERS, False, GroupNow("empty", False, True)) is None
    assert refusal(Verdict.NO_MEMBERS, False, SAME) == "group_changed"


def test_no_verdict_but_a_storm_is_published_of_a_group_that_rebalances() -> None:
    assert [v for v in OF if refusal(v, True, REBALANCING) is None] == [Verdict.UNSTABLE]
