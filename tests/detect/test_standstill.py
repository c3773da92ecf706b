"""Passed over, idle beside, silent: three clocks that run on commits alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect import standstill
from kagent.detect.state import Standing
from kagent.lag.membership import client_of
from kagent.lag.observation import Observation
from tests.fixtures.findings import FINE, STANDS
from tests.fixtures.timeline import FIRST_OFFSET, Rate, Timeline, judged

NOW = 1_700_000_000_000
HELD = {"m0": (0, 1, 2), "m1": (3, 4, 5)}


def clocks(world: Timeline, seconds: int) -> dict[str, Standing]:
    return dict(judged(world, seconds)[-1].state.standing)


def test_a_partition_that_is_never_served_is_passed_over_for_about_as_long_as_it_stands() -> None:
    world = Timeline([30.0] * 6, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}), stands_from=300)
    found = clocks(world, 600)

    assert set(found) == {"t/1"}
    assert 270 <= found["t/1"].passed_over_s <= 300


class CommitsAhead(Timeline):
    """Its client retries the record at which partition 1 stands, and once a minute commits all that it has fetched, for one commit."""

    def _commit(self, held: Sequence[int]) -> None:
        before = self.position[1]
        if self.second >= 360 and self.second % 60 < 5:
            self.position[1] = float(int(self.end[1]))
        super()._commit(held)
        self.position[1] = before


def test_a_commit_ahead_up_to_the_log_end_ends_no_clock() -> None:
    world = CommitsAhead([30.0] * 6, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}), stands_from=300)
    looks = judged(world, 890)
    found = looks[-1].state.standing["t/1"]

    assert any(int(one.model.lags.shown[1]) == 0 for one in looks[40:] if one.model is not None)
    assert found.passed_over_s > 500
    assert str(looks[-1].findings[0].verdict) == "stalled"


def test_one_that_stays_at_its_log_end_has_no_clock_after_a_minute() -> None:
    rates: list[Rate] = [30.0, lambda second: 30.0 if second < 600 else 0.0, *4 * [30.0]]
    world = Timeline(rates, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}), stands_from=300)
    state = judged(world, 600)[-1].state
    world.stands = frozenset()

    assert "t/1" in state.standing
    assert judged(world, 300, state)[-1].state.standing == {}


def test_the_only_one_with_records_is_idle_beside_its_siblings() -> None:
    rates = [0.0, 30.0, 0.0, 30.0, 30.0, 30.0]
    world = Timeline(rates, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}), stands_from=300)
    found = clocks(world, 600)

    assert found["t/1"].idle_s == pytest.approx(295, abs=15)


@pytest.mark.slow
def test_a_partition_that_waits_its_turn_is_passed_over_for_no_longer_than_a_turn() -> None:
    """Every fetch of 8,000 records takes 40 s; whoever waits for two of them was never skipped."""
    world = Timeline([80.0, 80, 80, 20, 20, 20], HELD, dict.fromkeys(HELD, 200.0), block=8000)
    longest = max(
        (c.passed_over_s for one in judged(world, 1800) for c in one.state.standing.values()), default=0.0
    )

    assert longest < 60


@pytest.mark.slow
def test_to_a_sibling_that_is_empty_nothing_is_given_while_a_fetch_lasts() -> None:
    """Every fetch of the first takes five minutes, the second waits for it, and the third gets a record now and then."""
    rates: list[Rate] = [80.0, 1.0, lambda second: float(second % 700 == 0)]
    world = Timeline(rates, {"m0": (0, 1, 2)}, {"m0": 50.0}, block=15_000)
    longest = max(c.passed_over_s for one in judged(world, 3600) for c in one.state.standing.values())

    assert longest < 60


class EndedTransaction(Timeline):
    """A transaction holds partition 1 up for a quarter of an hour; its reader goes on 20 s after it ended."""

    def observe(self, blind: str | None = None) -> Observation:
        self.ends.stable = np.array([round(end) for end in self.end], np.int64)
        if self.second < 900:
            self.ends.stable[1] = FIRST_OFFSET
        if self.second >= 920:
            self.stands = frozenset()
        return super().observe(blind)


@pytest.mark.slow
def test_what_a_transaction_held_up_stands_from_its_end_on() -> None:
    world = EndedTransaction([30.0] * 6, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}))
    found = judged(world, 1200)

    assert "blocked_by_transaction" in {str(f.verdict) for one in found for f in one.findings}
    assert "stalled" not in {str(f.verdict) for one in found for f in one.findings}


def test_progress_is_a_rise_of_the_least_of_the_last_three_offsets() -> None:
    """A client that retries a bad record commits one ahead and back for ever."""
    world = Timeline([30.0] * 6, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}), stands_from=300)
    state = None
    for turn in range(120):
        if world.second > 300:
            world.position[1] += 1 if turn % 2 else -1
        state = judged(world, 10, state)[-1].state

    assert state is not None
    assert state.standing["t/1"].passed_over_s > 600


@given(st.floats(0, 1000), st.floats(0, 1000), st.floats(1, 600))
def test_silence_grows_by_no_more_than_one_gap_at_a_time(before: float, more: float, cap: float) -> None:
    after = standstill.silence(before, more, cap)

    assert before <= after <= before + cap


def test_after_another_assignment_siblings_have_their_turn_anew_beside_the_time_that_was_there_before() -> (
    None
):
    clock = Standing(5, 6, 300.0, 100.0, 9, handed_over=3, holder="m0")
    after = standstill.reassigned(clock)

    assert after == Standing(5, 0, 0.0, 0.0, 9, handed_over=3, holder="m0", before_s=300.0)
    assert standstill.reassigned(replace(after, idle_s=40.0)).stood_s == 340.0


def test_a_deployment_does_not_hide_a_record_that_none_can_process() -> None:
    turns = [(BESIDE if turn % 2 else NEXT, 60) for turn in range(8)]
    clocks = [clocks["t/1"] for clocks in stood((HELD, 250), *turns)]

    assert max(clock.passed_over_s for clock in clocks[1:]) < 60
    assert clocks[-1].stood_s > 300


def stood(*turns: tuple[Mapping[str, Sequence[int]], int]) -> list[Mapping[str, Standing]]:
    """The clocks after each of these assignments, held for so many seconds; partition 1 stands from 100 s on."""
    out: list[Mapping[str, Standing]] = []
    state = None
    world = Timeline([30.0] * 6, HELD, dict.fromkeys(HELD, 200.0), stands=frozenset({1}), stands_from=100)
    for held, seconds in turns:
        world.held, world.at = held, dict.fromkeys(held, 0)
        state = judged(world, seconds, state)[-1].state
        out.append(dict(state.standing))
    return out


BESIDE = {"m0": (0, 1), "m1": (2, 3, 4, 5)}
NEXT = {"m0": (0, 2), "m1": (1, 3, 4, 5)}
NOBODY_S = {"m0": (0, 2), "m1": (3, 4, 5)}


def test_only_another_holder_counts_as_another_holder() -> None:
    before, beside, after = (clocks["t/1"] for clocks in stood((HELD, 200), (BESIDE, 100), (NEXT, 100)))

    assert before.holder == beside.holder != after.holder
    assert (before.handed_over, beside.handed_over) == (0, 0)
    assert after.handed_over > 0
    assert before.since == beside.since == after.since


def test_the_next_process_of_the_same_client_is_no_other_holder() -> None:
    assert client_of("app-1/10.0.0.7#2") == client_of("app-1/10.0.0.7") != client_of("app-2/10.0.0.7")
    assert client_of("app#1/10.0.0.7") == "app#1/10.0.0.7"


def test_what_siblings_did_beside_another_member_is_no_turn_of_theirs() -> None:
    """A group that rebalances all the time would blame whatever is served last."""
    before, after = (clocks["t/1"] for clocks in stood((HELD, 400), (NEXT, 100)))

    assert before.passed_over_s > 250
    assert after.passed_over_s <= 100


@pytest.mark.parametrize(
    ("other", "elsewhere", "seen_s_ago", "counted_s"),
    [
        (FINE, FINE, 20, 17.5),
        ({**FINE, "lag": 5_000}, FINE, 20, 0.0),
        (FINE, FINE, 900, 0.0),
        (FINE, STANDS, 20, 0.0),
    ],
    ids=["on time", "late", "back from a rest", "a topic of delayed retries"],
)
def test_a_member_that_goes_on_with_other_topics_is_on_time_beside_what_stands(
    group: Callable[..., Any],
    other: dict[str, Any],
    elsewhere: dict[str, Any],
    seen_s_ago: int,
    counted_s: float,
) -> None:
    members = {"m0": {"t": [0, 1], "u": [0]}, "m1": {"t": [2]}}
    made = group({"t": [STANDS, STANDS, elsewhere], "u": [other]}, members)
    clocks = made.look().state.standing
    before = {key: replace(clock, seen=NOW - seen_s_ago * 1000) for key, clock in clocks.items()}
    after = made.look(standing=before).state.standing

    assert after["t/0"].on_time_s == pytest.approx(counted_s)


def test_siblings_that_are_on_time_are_no_other_topic(group: Callable[..., Any]) -> None:
    """They are passed over or idle beside: that is counted apart."""
    made = group({"t": [STANDS, FINE]}, {"m0": {"t": [0, 1]}})
    before = {key: replace(clock, seen=NOW - 20_000) for key, clock in made.look().state.standing.items()}

    assert made.look(standing=before).state.standing["t/0"].on_time_s == 0


def test_of_the_only_partition_of_its_topic_the_time_counts_too(group: Callable[..., Any]) -> None:
    made = group({"t": [STANDS], "u": [FINE, FINE]}, {"m0": {"t": [0], "u": [0, 1]}})
    before = {key: replace(c, seen=NOW - 20_000) for key, c in made.look().state.standing.items()}

    assert made.look(standing=before).state.standing["t/0"].on_time_s == pytest.approx(17.5)


@pytest.mark.parametrize(
    ("elsewhere", "rests_s"),
    [(STANDS, 117.5), ({**STANDS, "moved": 10}, 0.0), ({**FINE, "lag": 0}, 0.0)],
    ids=["no member reads it", "one has moved", "it goes on"],
)
def test_a_topic_rests_while_none_of_its_partitions_moves_beside_others_that_are_on_time(
    group: Callable[..., Any], elsewhere: dict[str, Any], rests_s: float
) -> None:
    members = {"m0": {"t": [0, 1], "u": [0]}, "m1": {"t": [2], "u": [1]}}
    made = group({"t": [STANDS, STANDS, elsewhere], "u": [FINE, FINE]}, members)
    clocks = made.look().state.standing
    before = {key: replace(c, seen=NOW - 20_000, topic_rest_s=100.0) for key, c in clocks.items()}
    after = made.look(standing=before).state.standing

    assert after["t/0"].topic_rest_s == pytest.approx(rests_s)
    assert after["t/0"].idle_s == 0


def test_a_member_is_not_idle_beside_its_only_partition_of_a_topic_that_nobody_reads(
    group: Callable[..., Any],
) -> None:
    members = {"m0": {"t": [0], "u": [0]}, "m1": {"t": [1], "u": [1]}}

    def idle_s(elsewhere: dict[str, Any]) -> float:
        made = group({"t": [STANDS, elsewhere], "u": 2 * [{**FINE, "rate": 0}]}, members)
        clocks = made.look().state.standing
        before = {key: replace(c, seen=NOW - 20_000, idle_s=0.0) for key, c in clocks.items()}
        return float(made.look(standing=before).state.standing["t/0"].idle_s)

    assert [idle_s(STANDS), idle_s(FINE)] == pytest.approx([0.0, 17.5])


@pytest.mark.parametrize(("seconds", "kept"), [(20, True), (200, False)])
def test_a_partition_between_two_holders_goes_on_standing_unless_it_was_given_back(
    seconds: int, kept: bool
) -> None:
    """A cooperative rebalance takes it from one member before it gives it to the next: that is no progress."""
    before, between, after = stood((HELD, 400), (NOBODY_S, seconds), (NEXT, 100))

    assert ("t/1" in between) is kept
    assert before["t/1"].since == after["t/1"].since
    assert (after["t/1"].handed_over > 0) is kept
