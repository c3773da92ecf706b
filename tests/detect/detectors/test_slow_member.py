"""slow_member: peers that get as much keep up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kagent.detect.detectors import slow_member
from tests.fixtures.findings import CALM, FINE, FOUR, HOT, LATE, leading

Make = Callable[..., Any]


def test_a_member_that_falls_behind_with_what_its_peers_keep_up_with_is_slow(group: Make) -> None:
    made = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR)
    model, found = made.looked(members=made.at_work({"m0": 120}, ["m0"], "slow_member"))

    assert leading(found) == "slow_member"
    assert found[0].evidence["peers"] == 3
    # The bound that follows, never a measurement of speeds that nobody has seen.
    assert 0.55 <= found[0].evidence["speed"] <= 0.65
    assert "% of their speed at most" in slow_member.reason(model, found[0])


def test_a_member_that_gets_more_than_its_peers_is_never_slow(group: Make) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 120, "m1": 900}, ["m0"], "slow_member"))

    assert leading(found) != "slow_member"


def test_a_peer_without_the_members_other_topic_proves_nothing(group: Make) -> None:
    topics = {"t": [LATE, *3 * [FINE]], "u": [LATE]}
    members = {"m0": {"t": [0], "u": [0]}, "m1": {"t": [1]}, "m2": {"t": [2]}, "m3": {"t": [3]}}
    made = group(topics, members)
    _, found = made.looked(members=made.at_work({"m0": 120}, ["m0"], "slow_member"))

    assert leading(found) != "slow_member"


def test_a_speed_within_ten_per_cent_is_not_told_from_noise(group: Make) -> None:
    made = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 190}, ["m0"], "slow_member"))

    assert leading(found) != "slow_member"
