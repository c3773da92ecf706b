"""What a member can do is measured only where it was certainly busy, and few windows are not certain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kagent.detect import capacity
from kagent.detect.state import Window
from kagent.lag.chance import Z
from kagent.policy import Policy

NOW = 1_700_000_000_000


def windows(*rates: float, topic: str = "t") -> list[Window]:
    return [Window(NOW - 30_000 * at, 30.0, {topic: round(30 * r)}) for at, r in enumerate(reversed(rates))][
        ::-1
    ]


def alone(rates: list[float]) -> tuple[float, float, float] | None:
    """The estimate for the one member of a group."""
    return capacity.estimate(rates, capacity.noise_of([rates]))


def test_a_pause_is_one_window_and_no_slow_machine() -> None:
    found = alone(capacity.samples(windows(100, 100, 5, 100, 100), {}, NOW))

    assert found is not None
    assert found[1] == 100


def test_two_windows_that_agree_are_less_certain_than_twelve() -> None:
    two, twelve = alone([100, 100]), alone([100] * 12)

    assert two is not None
    assert twelve is not None
    assert two[2] - two[0] > 2 * (twelve[2] - twelve[0]) > 0


def test_nothing_measured_is_nothing_known() -> None:
    assert alone([]) is None


def test_how_far_windows_stray_is_learned_from_all_members_of_a_group() -> None:
    few, peers = [100.0] * 3, [100.0] * 12
    noise = capacity.noise_of([few, peers, peers])

    assert capacity.PRIOR_SD**2 == capacity.noise_of([]) > capacity.noise_of([few]) > noise > 0
    by_group, by_itself = capacity.estimate(few, noise), alone(few)
    assert by_group is not None
    assert by_itself is not None
    assert by_itself[0] < by_group[0] < 100 < by_group[2] < by_itself[2]


def test_a_member_whose_windows_stray_further_than_its_peers_is_known_no_better_for_them() -> None:
    uneven, peers = [60.0, 100.0, 140.0] * 4, [100.0] * 12
    found = capacity.estimate(uneven, capacity.noise_of([uneven, peers, peers]))

    assert found is not None
    assert found[2] - found[0] == pytest.approx(2 * Z * 0.4 * 1.4826 / 12**0.5 * 100)


def test_a_member_that_is_quick_and_slow_by_turns_is_known_by_what_three_windows_did() -> None:
    """Slow for 45 s and quick for 45 s, in windows of 30 s: 16, 100 and 49 records/s, always 55 in three of them."""
    found = capacity.of_windows([windows(*[16, 100, 49] * 4)], {}, NOW, np.zeros(1)).rate

    assert found.mid[0] == pytest.approx(55)
    assert found.high[0] - found.low[0] < 0.2 * 55


def test_a_pause_makes_no_slow_machine_of_three_windows_either() -> None:
    found = capacity.of_windows([windows(*[100] * 7, 5, 5, *[100] * 3)], {}, NOW, np.zeros(1)).rate

    assert found.mid[0] == pytest.approx(100)


def test_windows_that_stray_by_chance_are_known_no_better_by_three() -> None:
    random, missed_alone, missed = np.random.default_rng(7), 0, 0
    for _ in range(300):
        chance = windows(*(100 * random.normal(1, 0.2, 12)).tolist())
        by_itself = alone(capacity.samples(chance, {}, NOW))
        assert by_itself is not None
        rate = capacity.of_windows([chance], {}, NOW, np.zeros(1)).rate
        missed_alone += not by_itself[0] <= 100 <= by_itself[2]
        missed += not rate.low[0] <= 100 <= rate.high[0]

    assert missed <= missed_alone + 6  # two in a hundred


def test_windows_of_the_last_ten_minutes_are_preferred_and_two_hours_are_the_limit() -> None:
    old = [Window(NOW - 3_600_000 - at, 30.0, {"t": 300}) for at in range(4)]
    young = windows(100, 100, 100)

    assert capacity.samples([*old, *young], {}, NOW) == [100.0] * 3
    assert len(capacity.samples([*old, *young[:2]], {}, NOW)) == 3
    assert capacity.kept([Window(NOW - 7_300_000, 30.0, {})], NOW) == ()


def test_who_was_never_busy_is_taken_for_a_usual_one_and_can_do_what_it_keeps_up_with() -> None:
    found = capacity.of_members([(90.0, 100.0, 110.0), None, None], np.array([50.0, 30.0, 140.0]))

    assert found.measured.tolist() == [True, False, False]
    assert found.rate.mid.tolist() == [100.0, 100.0, 140.0]
    assert found.rate.low.tolist() == [90.0, 30.0, 140.0]
    assert (found.rate.high >= found.rate.mid).all()


def test_who_was_never_busy_may_be_as_fast_as_another_that_keeps_up_with_more() -> None:
    # The late member gets 200, but does not keep up with that.
    found = capacity.of_members([(90.0, 100.0, 110.0), None, None], np.array([200.0, 30.0, 140.0]))

    assert found.rate.high.tolist() == [110.0, 140.0, 140.0]


@pytest.mark.parametrize(("gap", "length"), [(1, 30), (5, 30), (20, 60), (300, 90)])
def test_a_window_lasts_three_gaps_within_half_a_minute_and_one_and_a_half(gap: float, length: float) -> None:
    assert capacity.window_length_s(gap, Policy()) == pytest.approx(length)


@pytest.mark.parametrize(
    ("late", "waits"),
    [
        ([124, 119, 124, 125, 110, 124], True),
        ([124, 124, 125, 150, 170, 190], False),
        ([190, 170, 150, 130, 110, 90], False),
        ([124, 124], False),
        ([None] * 6, False),
    ],
    ids=["on purpose", "falls behind", "catches up", "too few", "of an older version"],
)
def test_who_stays_as_late_as_it_is_may_wait_on_purpose(late: list[float | None], waits: bool) -> None:
    known = [Window(NOW - 30_000 * at, 30.0, {"t": 100}, v) for at, v in enumerate(reversed(late))][::-1]

    assert capacity.waits_on_purpose(known, NOW, 5.0) is waits


@pytest.mark.parametrize(("ago_min", "peer_does"), [(9, 30.0), (11, 90.0)])
def test_what_a_member_did_long_before_the_others_tells_nothing_beside_what_they_do_now(
    ago_min: int, peer_does: float
) -> None:
    """Twenty minutes ago a database may have slowed all of them."""
    now = windows(*[90.0] * 4)
    before = [replace(w, until=w.until - ago_min * 60_000) for w in windows(*[30.0] * 4)]
    found = capacity.of_windows([now, before], {}, NOW, np.array([80.0, 20.0]))

    assert found.measured.tolist() == [True, ago_min < 10]
    assert found.rate.mid.tolist() == [90.0, peer_does]


def test_where_nobody_was_busy_since_all_are_known_by_the_last_time() -> None:
    before = [replace(w, until=w.until - 3_600_000) for w in windows(*[30.0] * 4)]
    found = capacity.of_windows([before, before], {}, NOW, np.array([20.0, 20.0]))

    assert found.rate.mid.tolist() == [30.0, 30.0]
