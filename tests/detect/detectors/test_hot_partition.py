"""hot_partition: by its inflow, never by its share of the lag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kagent.detect.detectors import hot_partition
from kagent.detect.late_member import LateMember
from tests.fixtures.findings import CALM, FOUR, HOT, leading
from tests.fixtures.timeline import Rate, Timeline, judged

Make = Callable[..., Any]


def test_a_partition_that_gets_more_than_any_member_does_is_hot(group: Make) -> None:
    made = group({"t": [HOT, *7 * [CALM]]}, FOUR)
    model, found = made.looked(members=made.at_work({"m0": 250}, ["m0"], "hot_partition"))

    assert leading(found) == "hot_partition"
    assert model.lags.name(found[0].rows[0]) == ("t", 0)
    assert "no assignment lets it catch up" in hot_partition.reason(model, found[0])


def test_most_of_the_lag_without_the_inflow_makes_no_partition_hot(group: Make) -> None:
    most = {"end": 10_000_000, "rate": 120, "lag": 500_000}
    made = group({"t": [most, {**most, "lag": 10_000, "rate": 150}, *6 * [CALM]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 250}, ["m0"], "hot_partition"))

    assert "hot_partition" not in {str(f.verdict) for f in found}


def test_where_most_members_would_be_needed_for_hot_partitions_there_are_too_few_of_them(group: Make) -> None:
    made = group({"t": [HOT, CALM, HOT, CALM, HOT, CALM, CALM, CALM]}, FOUR)
    work = made.at_work({"m0": 250, "m1": 250, "m2": 250}, ["m0"], "under_provisioned")
    _, found = made.looked(members=work)

    assert "hot_partition" not in {str(f.verdict) for f in found}


def test_a_partition_is_hot_though_the_usual_member_is_unknown(group: Make) -> None:
    """Of six members the two that were ever busy are the one with the hot partition and one at half speed. No number of members helps
    with the first."""
    members = {f"m{n}": {"t": [2 * n, 2 * n + 1]} for n in range(6)}
    usual = {"end": 10_000_000, "rate": 100, "lag": 0}
    made = group({"t": [HOT, CALM, {**usual, "lag": 20_000}, *9 * [usual]]}, members)
    _, found = made.looked(members=made.at_work({"m0": 250, "m1": 125}, ["m0"], "hot_partition"))

    assert leading(found) == "hot_partition"


def test_idle_members_beyond_the_partitions_do_not_make_all_of_them_hot(group: Make) -> None:
    members = {f"m{n}": {"t": [n]} if n < 4 else {} for n in range(8)}
    made = group({"t": 4 * [HOT]}, members)
    work = made.at_work({f"m{n}": 250 for n in range(4)}, ["m0"], "under_provisioned")
    _, found = made.looked(members=work)

    assert leading(found) == "under_provisioned"


def test_a_partition_that_is_hot_at_costs_which_the_busy_windows_allow_is_not_called_a_lack_of_members(
    group: Make,
) -> None:
    """Records of t may cost all of the member's time: then no number of members helps with the one partition of t that gets many."""
    t = [{"end": 10_000_000, "rate": 100, "lag": 20_000}, *3 * [{"end": 10_000_000, "rate": 1, "lag": 0}]]
    u = [{"end": 10_000_000, "rate": 200, "lag": 4_000}, *3 * [{"end": 10_000_000, "rate": 200, "lag": 0}]]
    made = group({"t": t, "u": u}, {f"m{n}": {"t": [n], "u": [n]} for n in range(4)})
    known = made.at_work({"m0": 30}, ["m0"], "hot_partition", beside={"u": 150})
    model, found = made.looked(members=known)

    assert not np.isfinite(LateMember(model, 0).best_for_optimist)
    assert leading(found) == "hot_partition"


def test_a_partition_is_not_hot_that_gets_no_more_than_a_peer_did_some_minutes_ago() -> None:
    """The one member that was ever busy is a slow one."""

    def lately(second: int) -> float:
        return 140.0 if 900 <= second < 1500 else 60.0

    held = {name: (at,) for at, name in enumerate("abcd")}
    speeds: dict[str, Rate] = {
        **dict.fromkeys(held, 300.0),
        "a": lambda second: 300.0 if second < 1300 else 80.0,
    }
    inflow: list[Rate] = [lambda second: 60.0 if second < 1300 else 120.0, lately, 60.0, 60.0]
    looks = judged(Timeline(inflow, held, speeds), 1740)

    assert looks[-1].findings
    assert "hot_partition" not in {str(f.verdict) for one in looks for f in one.findings}
