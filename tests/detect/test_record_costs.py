"""What a record of each topic costs is told only as far as the busy windows tell it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect.capacity import PRIOR_SD
from kagent.detect.record_costs import BusyMix
from kagent.detect.state import Window

NOW = 1_700_000_000_000


def window(a: int, b: int) -> Window:
    """Thirty seconds in which so many records of two topics were processed."""
    return Window(NOW, 30.0, {"a": a, "b": b})


def _costs(members: Sequence[Sequence[Window]]) -> dict[str, float]:
    return BusyMix.of(members).costs


def test_costs_of_topics_are_told_apart_with_a_mean_of_one() -> None:
    rng = np.random.default_rng(1)
    every = []
    for _ in range(40):
        share = rng.uniform(0.1, 0.9)
        every.append(Window(NOW, 30.0, {"cheap": round(30_000 * share), "dear": round(3000 * (1 - share))}))
    cost = _costs([every])

    assert sum(cost.values()) / len(cost) == pytest.approx(1.0)
    assert (
        5 < cost["dear"] / cost["cheap"] < 11
    )  # ten times in truth: the prior of equal costs draws them together


def test_a_little_change_of_the_mix_tells_costs_apart_where_windows_agree() -> None:
    # Thirty seconds of work each, a record of one topic four times as dear, and shares as fetches of two partitions have them.
    shares = [0.25, 0.34, 0.48, 0.32, 0.49, 0.39, 0.30, 0.50, 0.31]
    every = [_mixed(share, 1.0) for share in shares]
    cost = _costs([every])

    assert 2.5 < cost["dear"] / cost["cheap"] < 4.5


def test_a_few_regular_windows_tell_what_a_fifth_of_the_mix_costs() -> None:
    # A second's work each: dear records of a millisecond, cheap ones of 0.4 ms, 13 to 22 % of the mix.
    seconds = [(259, 896), (194, 922), (162, 935), (149, 940)]
    every = [Window(NOW, 30.0, {"cheap": 30 * cheap, "dear": 30 * dear}) for cheap, dear in seconds]
    cost = _costs([every * 2])

    assert 1.8 < cost["dear"] / cost["cheap"] < 3


def test_windows_that_disagree_leave_costs_near_each_other() -> None:
    rng = np.random.default_rng(2)
    every = [_mixed(share, rng.uniform(0.4, 1.6)) for share in (0.4, 0.42, 0.44, 0.46, 0.48, 0.5)]
    cost = _costs([every])

    assert 0.5 < cost["dear"] / cost["cheap"] < 2


def test_a_mix_that_never_changes_says_nothing_of_costs() -> None:
    cost = _costs([[_mixed(0.5, 1.0)] * 12])

    assert cost == {"cheap": pytest.approx(1.0), "dear": pytest.approx(1.0)}


def _mixed(share: float, pace: float) -> Window:
    """A window of 30 s in which this share of the records was dear, each four times the work of a cheap one."""
    records = pace * 30_000 / (1 + 3 * share)
    return Window(NOW, 30.0, {"cheap": round(records * (1 - share)), "dear": round(records * share)})


def test_with_one_topic_costs_say_nothing() -> None:
    assert _costs([[Window(NOW, 30.0, {"t": n}) for n in (3000, 1500)]]) == {"t": 1.0}


def test_nobody_who_was_busy_tells_no_costs() -> None:
    assert _costs([[], []]) == {}


def test_a_rare_topic_may_cost_many_times_what_the_others_do() -> None:
    """With costs on a linear scale, what is known beforehand would hold a factor of sixty down to a fraction of it."""
    cost = _costs([_rare(18), _rare(15), _rare(12)])

    assert 40 < cost["dear"] / cost["cheap"] < 80


def test_what_arrives_at_a_member_that_is_on_time_bounds_what_a_record_may_cost() -> None:
    """The busy members never read the cheap topic; another one gets many of it, and has time left."""
    busy = [Window(NOW, 30.0, {"dear": 300})] * 9
    free, bound = BusyMix.of([busy], [{"cheap": 8.0}]), BusyMix.of([busy], [{"cheap": 200.0}])

    assert free.costs == {"cheap": pytest.approx(1.0), "dear": pytest.approx(1.0)}
    assert bound.costs["dear"] / bound.costs["cheap"] == pytest.approx(20, rel=0.2)
    assert BusyMix.of([[]], [{"cheap": 200.0, "dear": 1.0}]).costs == {"cheap": 1.0, "dear": 1.0}


def test_a_share_at_which_a_punctual_member_had_no_time_for_what_it_does_is_refuted() -> None:
    windows = [_rare(12)]
    free = BusyMix.of(windows).allowed_shares(_done(12))
    bound = BusyMix.of(windows, [{"cheap": 1000.0}]).allowed_shares(_done(12))

    # 500 of these records take two fifths of the member's time, so the others three fifths at least.
    assert ("cheap", 0.7) in free
    assert max(share for topic, share in bound if topic == "cheap") == 0.5


def test_a_mix_that_never_changes_allows_a_topic_any_share_of_the_time() -> None:
    mix = BusyMix.of([_rare(12)])

    assert {("dear", share) for share in (0.1, 0.5, 0.9, 1.0)} < set(mix.allowed_shares(_done(12)))


def test_windows_of_several_mixes_allow_the_share_that_is_true_alone() -> None:
    mix = BusyMix.of([_rare(18), _rare(16), _rare(12)])

    assert set(mix.allowed_shares(_done(16))) == {("dear", 0.8), ("cheap", 0.2)}


def test_the_share_that_explains_most_comes_first() -> None:
    mix = BusyMix.of([_rare(16)[:3], _rare(12)[:1]])
    shares = [share for topic, share in mix.allowed_shares(_done(16)) if topic == "dear"]

    assert shares[:1] == [0.8]
    assert len(shares) > 1


@given(st.floats(0.05, 1), st.dictionaries(st.sampled_from("abcd"), st.floats(0.1, 1e4), min_size=2))
def test_at_the_costs_of_a_share_the_topic_takes_that_share(share: float, done: dict[str, float]) -> None:
    mix = BusyMix.of([[Window(NOW, 30.0, dict.fromkeys(done, 100))] * 3])
    topic = min(done)
    cost = mix.at_share(topic, share, done)

    assert done[topic] == pytest.approx(share * sum(cost[t] * n for t, n in done.items()))


def _done(dear: int) -> dict[str, float]:
    """Records/s of a member that is always busy: so many of 50 ms, and in the rest of the time as many of 0.8 ms as fit."""
    return {"cheap": (1 - 0.05 * dear) / 0.0008, "dear": float(dear)}


def _rare(dear: int) -> list[Window]:
    """Windows of such a member, whose pace strays by 3 %."""
    paces = np.random.default_rng(dear).normal(1, 0.03, 9)
    return [Window(NOW, 30.0, {t: round(30 * pace * n) for t, n in _done(dear).items()}) for pace in paces]


def test_figures_for_people_are_in_records_of_what_arrives(group: Callable[..., Any]) -> None:
    served = {"end": 100_000, "rate": 100, "lag": 0}
    model = group({"cheap": [served], "dear": [served]}, {"m0": {"cheap": [0]}, "m1": {"dear": [0]}}).look()
    costly = model.at_costs({"cheap": 1.0, "dear": 3.0})

    assert model.records_per_work() == pytest.approx(1.0)
    assert costly.records_per_work() == pytest.approx(0.5)
    assert [costly.records_per_work(at) for at in (0, 1)] == [pytest.approx(1.0), pytest.approx(1 / 3)]


def test_a_window_or_two_more_than_topics_show_no_noise() -> None:
    """Some costs explain so few windows by chance: here three windows of two topics exactly, though each strays by a fifth."""
    few = [window(10, 240), window(14, 236), window(12, 238)]

    assert BusyMix.of([few])._noise == PRIOR_SD**2
    assert BusyMix.of([[*few, window(11, 239), window(13, 237)]])._noise < PRIOR_SD**2


def test_a_single_record_beside_many_of_another_topic_does_not_lift_the_bound_of_its_cost() -> None:
    on_time = [{"a": 30.0}]
    without = BusyMix.of([[window(0, 100), window(0, 101)]], on_time).costs
    single = BusyMix.of([[window(0, 100), window(1, 101)]], on_time).costs

    assert without["a"] < without["b"]
    assert single["a"] / single["b"] == pytest.approx(without["a"] / without["b"], rel=0.1)
