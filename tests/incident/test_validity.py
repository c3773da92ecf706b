"""For how long a group that was found healthy need not be judged again, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kagent.detect.state import JudgeState, Useful
from kagent.detect.useful_members import LOOK_EVERY_MS
from kagent.detect.without_members import ENDED_AFTER_MS
from kagent.incident.evaluate import judge
from kagent.incident.validity import GROWING_MS, Validity, validity_of
from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_ends import EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Mute, Observation
from kagent.lag.time_units import HOUR_MS
from kagent.policy import Policy
from kagent.testing import group_view, member_view

NOW = 1_700_000_000_000
SAMPLE_MS = 5_000
RATE = 100
"""Records that a partition receives between two samples."""


@dataclass
class World:
    """A group of one member on topic t with two partitions, that has just committed all there was."""

    history: EndHistory
    seen: Observation
    state: JudgeState
    now: int = NOW

    def judged(self, **fields: Any) -> Validity | None:
        seen = replace(self.seen, now=self.now, as_of=self.now, **fields)
        return validity_of(seen, judge(seen, self.state, Policy()), Policy())

    def sample(self, grown: Sequence[int] = (0, 0), **fields: Any) -> None:
        """A sample in which the partitions have got so many records more."""
        self.now += SAMPLE_MS
        end = [int(known) + more for known, more in zip(self.history.end, grown, strict=True)]
        start = fields.pop("start", self.history.start)
        self.history.add(self.now, self.now, start, fields.pop("end", end), **fields)


def commits(committed: Sequence[int], time: int = NOW - 10, **fields: Any) -> TopicCommits:
    count = len(committed)
    return TopicCommits(
        "t", None, list(range(count)), committed, [time] * count, [1] * count, [time] * count, **fields
    )


def world(rate: int = RATE, state: JudgeState | None = None) -> World:
    history = EndHistory(2)
    for at in range(61):
        time = NOW - (60 - at) * SAMPLE_MS
        history.add(time, time, [0, 0], [1000 + at * rate] * 2)
    roster = Roster.of(group_view("g", members=[member_view("m", assigned={"t": (0, 1)})]))
    read = {"t": commits(history.end.tolist())}
    seen = Observation("main", "g", NOW, roster, read, {"t": history}, {}, NOW)
    known = judge(replace(seen, now=NOW - HOUR_MS // 2), JudgeState(first_seen=1), Policy()).state
    return World(history, seen, state or replace(known, generations=()))


def holds_now(world: World, validity: Validity | None) -> bool:
    assert validity is not None
    return validity.holds(world.now, world.now)


def test_without_growth_it_holds_until_time_alone_gives_something_to_learn() -> None:
    still = world(rate=0)
    validity = still.judged()
    assert validity is not None
    still.sample()

    hour = still.state.members_at + HOUR_MS
    assert validity.holds(hour, hour)
    assert not validity.holds(hour + 1, hour + 1)


def test_while_topics_grow_it_holds_for_a_minute_after_the_commits() -> None:
    busy = world()
    validity = busy.judged()
    for _ in range(11):
        busy.sample([RATE, RATE])

    assert validity is not None
    assert validity.holds(busy.now, NOW + 59_000)
    assert not validity.holds(busy.now, NOW + 61_000)


def test_while_topics_grow_it_ends_before_their_least_rate_is_unknown() -> None:
    busy = world()
    busy.seen = replace(busy.seen, commits={"t": commits(busy.history.end.tolist(), gaps=[300_000] * 3)})
    validity = busy.judged()
    for _ in range(GROWING_MS // SAMPLE_MS):
        busy.sample([RATE, RATE])
    assert holds_now(busy, validity)

    busy.sample([RATE, RATE])
    assert not holds_now(busy, validity)


def test_a_member_without_a_partition_ends_it_once_it_is_idle_for_long() -> None:
    members = [member_view("m", assigned={"t": (0, 1)}), member_view("n")]
    still, idle_ms = world(rate=0), round(Policy().idle_after * 1000)
    roster = Roster.of(group_view("g", members=members))
    known = judge(replace(still.seen, roster=roster, now=NOW - 1), still.state, Policy()).state

    def until(rebalanced_at: int) -> int:
        still.state = replace(known, generations=(), generation_at=rebalanced_at)
        validity = still.judged(roster=roster)
        return validity.until if validity is not None else 0

    assert until(NOW - idle_ms + 60_000) == NOW + 60_000
    assert until(NOW - idle_ms) == 0


def test_it_does_not_hold_at_an_earlier_tick() -> None:
    validity = world().judged()

    assert validity is not None
    assert not validity.holds(NOW - 1, NOW)


@pytest.mark.parametrize(
    "sample",
    [
        {"start": [1, 0]},
        {"end": [0, 0], "topic_id": "another"},
        {"end": [7000, 7000, 0], "start": [0, 0, 0]},
    ],
    ids=["retention took records", "created anew", "a partition more"],
)
def test_what_else_a_sample_tells_of_a_log_ends_it(sample: dict[str, Any]) -> None:
    still = world(rate=0)
    still.sample(topic_id="one")
    validity = still.judged()
    assert holds_now(still, validity)

    still.sample(**sample)
    assert not holds_now(still, validity)


def test_a_pause_between_samples_does_not_end_it() -> None:
    still = world(rate=0)
    validity = still.judged()
    still.now += 20 * SAMPLE_MS
    still.sample()

    assert holds_now(still, validity)


CHANGES: dict[str, Callable[[World], World]] = {
    "muted": lambda w: replace(w, seen=replace(w.seen, mute=Mute(NOW + 1))),
    "blind": lambda w: replace(w, seen=replace(w.seen, blind="no progress")),
    "of an ignored kind": lambda w: replace(
        w, seen=replace(w.seen, roster=Roster.of(group_view("g", protocol_type="connect")))
    ),
    "judged at this tick before": lambda w: replace(w, state=replace(w.state, last_tick=NOW)),
    "rebalanced a while ago": lambda w: replace(w, state=replace(w.state, generations=((NOW - 1, 1),))),
    "on a topic that was never sampled": lambda w: replace(w, seen=replace(w.seen, ends={})),
    "behind": lambda w: replace(w, seen=replace(w.seen, commits={"t": commits([10, 10])})),
    "with clocks that run": lambda w: replace(w, state=replace(w.state, at_rest_s=1.0)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_there_is_none_for_a_group_that_is(change: str) -> None:
    assert world(rate=0).judged() is not None
    assert CHANGES[change](world(rate=0)).judged() is None


def growing(committed: Sequence[int], start: Sequence[int] = (0, 0), time: int = NOW - 10) -> bool:
    """Whether it holds after growth for a group that has committed this much less than there was."""
    busy = world()
    busy.history.add(NOW + 1, NOW + 1, start, busy.history.end)
    read = commits([int(busy.history.end[0]) - unread for unread in committed], time)
    busy.seen = replace(busy.seen, commits={"t": read})
    validity = busy.judged()
    busy.sample([RATE, RATE])
    return validity is not None and holds_now(busy, validity)


def test_growth_may_matter_at_once_to_a_group_that() -> None:
    everything = (0, 0)
    assert growing(everything)
    assert growing((0, 2))
    # committed before the log start: records are lost as soon as one more is unread
    assert not growing((0, 2), start=(0, 6999))
    # committed later than the newest sample
    assert not growing(everything, time=NOW + 2)
    # is late by more than the inflow that is certain allows, though not by more than the inflow of now
    assert growing((0, RATE), time=NOW + 1)
    assert not growing((0, 3 * RATE), time=NOW + 1)


def test_growth_of_a_partition_that_was_never_committed_ends_it_for_a_group_with_members() -> None:
    still = world(rate=0)
    still.seen = replace(still.seen, commits={"t": commits([1000])})
    validity = still.judged()
    still.sample()
    assert holds_now(still, validity)

    still.sample([0, 1])
    assert not holds_now(still, validity)


def test_unread_records_end_it_once_they_are_old_though_no_more_come() -> None:
    still = world()
    still.seen = replace(still.seen, commits={"t": commits([7000, 7000 - 3])})
    validity = still.judged()
    still.sample()
    assert holds_now(still, validity)

    assert validity is not None
    assert not validity.holds(still.now, NOW + 61_000)


def test_offsets_that_were_removed_are_no_lag() -> None:
    busy = world(rate=0)
    busy.seen = replace(busy.seen, commits={"t": commits([GONE, 1000])})
    validity = busy.judged()
    busy.sample()

    assert holds_now(busy, validity)


def test_the_next_look_at_how_many_members_would_help_ends_it() -> None:
    still = world(rate=0)
    still.state = replace(still.state, useful=Useful(1, looked_at=NOW - 1000))
    validity = still.judged()

    assert validity is not None
    assert validity.holds(NOW + LOOK_EVERY_MS - 1001, NOW)
    assert not validity.holds(NOW + LOOK_EVERY_MS - 1000, NOW)


def test_an_abandoned_group_is_not_judged_again_whatever_its_topics_receive() -> None:
    left = world()
    left.seen = replace(
        left.seen, roster=None, commits={"t": commits([10, 10], time=NOW - ENDED_AFTER_MS - 1)}
    )
    validity = left.judged()
    left.sample([RATE, RATE])

    assert holds_now(left, validity)
