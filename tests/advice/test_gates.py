"""What must hold before anything is said, one reason at a time, and what happens to what is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kagent.advice.judge import Judgement, confirm, judge
from kagent.advice.state import JudgeState
from kagent.contract.recommendation import Status
from kagent.lag.observation import Mute, Observation
from kagent.policy import Policy

Make = Callable[..., Any]
LATE = {"end": 10_000_000, "rate": 100, "lag": 100_000}
FINE = {"end": 10_000_000, "rate": 100, "lag": 0}
SKEWED = {"t": [LATE, LATE, LATE, LATE, FINE, FINE, FINE, FINE]}
EVEN = {"t": 8 * [FINE]}
HALVES = {"m0": {"t": [0, 1, 2, 3]}, "m1": {"t": [4, 5, 6, 7]}}
LOOSE = Policy(hold=0, evaluations=2)


def rounds(
    made: Any, policy: Policy, state: JudgeState | None = None, count: int = 4, **more: Any
) -> list[Judgement]:
    """So many ticks ten seconds apart; every commit is as young as in the first."""
    seen = made.observe()
    known = state or JudgeState(first_seen=seen.now - 864_000_000, members_at=seen.now)
    out = []
    for turn in range(count):
        found = judge(later(seen, turn * 10_000, **more), known, policy)
        known = found.state
        out.append(found)
    return out


def later(seen: Observation, by: int, **more: Any) -> Observation:
    """The same group a while later: everything moved on by the same time."""
    commits = {
        t: replace(
            row,
            time=[at + by for at in row.time],
            moved=[at + by for at in row.moved],
            committed=[c + by // 10 for c in row.committed],
        )
        for t, row in seen.commits.items()
    }
    ends = {}
    for topic, history in seen.ends.items():
        grown = type(history).from_row(history.to_row())
        for step in range(5000, by + 1, 5000):
            at = seen.now - 100 + step
            grown.add(at, at + 10, history.start, history.end + step // 10)
        ends[topic] = grown
    return replace(seen, now=seen.now + by, as_of=(seen.as_of or 0) + by, commits=commits, ends=ends, **more)


def held(made: Any, policy: Policy, **state: Any) -> str | None:
    seen = made.observe()
    known = JudgeState(**{"first_seen": seen.now - 864_000_000, "members_at": seen.now, **state})
    return rounds(made, policy, known)[-1].held


def test_when_all_holds_there_is_a_candidate(group: Make) -> None:
    found = rounds(group(SKEWED, HALVES), LOOSE)

    assert [bool(j.candidate) for j in found] == [False, True, True, True]
    assert len({j.candidate.id for j in found if j.candidate}) == 1


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (replace(LOOSE, evaluations=9), "evaluations"),
        (replace(LOOSE, hold=3600), "may_drain"),
        (replace(LOOSE, min_behind=100_000), "min_behind"),
        (replace(LOOSE, learn=10**7), "learning"),
        (replace(LOOSE, learn_commits=10**6), "learning"),
        (replace(LOOSE, settle=10**6), "settling"),
        (replace(LOOSE, threshold=3.0), None),
        (replace(LOOSE, ignore=True), "ignored"),
    ],
)
def test_each_setting_alone_keeps_it_silent(group: Make, policy: Policy, reason: str | None) -> None:
    found = rounds(group(SKEWED, HALVES), policy)

    assert not any(j.candidate for j in found)
    assert found[-1].held == reason


def test_a_cooldown_keeps_it_silent(group: Make) -> None:
    assert held(group(SKEWED, HALVES), LOOSE, cooldown_until=10**15) == "cooldown"


def test_a_mute_keeps_it_silent_until_it_ends(group: Make) -> None:
    made = group(SKEWED, HALVES)
    now = made.observe().now

    assert rounds(made, LOOSE, mute=Mute(now + 10**6))[-1].held == "muted"
    assert rounds(made, LOOSE, mute=Mute(now - 1))[-1].candidate


def test_a_rebalancing_group_is_not_judged(group: Make) -> None:
    assert held(group(SKEWED, HALVES, state="PreparingRebalance"), LOOSE) == "not_stable"


def test_one_commit_is_not_enough(group: Make) -> None:
    made = group(SKEWED, HALVES)
    seen = made.observe()
    state, last = JudgeState(first_seen=seen.now - 864_000_000, members_at=seen.now), None
    for turn in range(3):
        last = judge(replace(seen, now=seen.now + turn * 1000), state, LOOSE)
        state = last.state

    assert last is not None
    assert last.held == "one_commit"


def test_a_tick_that_comes_twice_counts_once(group: Make) -> None:
    made = group(SKEWED, HALVES)
    seen = made.observe()
    once = judge(seen, JudgeState(first_seen=seen.now - 864_000_000, members_at=seen.now), LOOSE)
    again = judge(seen, once.state, LOOSE)

    assert again.state is once.state
    assert once.state.streak is not None
    assert once.state.streak.count == 1


def test_a_healthy_group_leaves_its_row_alone(group: Make) -> None:
    found = rounds(group(EVEN, HALVES), LOOSE)

    assert found[-1].state is found[1].state


def open_one(group: Make) -> tuple[Any, Judgement]:
    made = group(SKEWED, HALVES)
    ready = rounds(made, LOOSE)[-1]
    assert ready.candidate is not None
    once = confirm(ready.candidate, later(made.observe(), 40_000), ready.state, LOOSE)
    assert (once.held, once.messages, once.dropped) == ("confirming", (), None)
    return made, confirm(ready.candidate, later(made.observe(), 50_000), once.state, LOOSE)


def test_the_second_answer_is_asked_for_one_commit_gap_after_the_first(group: Make) -> None:
    made = group(SKEWED, HALVES)
    ready = rounds(made, LOOSE)[-1]
    assert ready.candidate is not None
    once = confirm(ready.candidate, later(made.observe(), 40_000), ready.state, LOOSE)

    soon = judge(later(made.observe(), 44_000), once.state, LOOSE)
    then = judge(later(made.observe(), 45_000), soon.state, LOOSE)

    assert (soon.held, soon.candidate) == ("confirming", None)
    assert then.candidate is not None
    assert confirm(then.candidate, later(made.observe(), 45_000), then.state, LOOSE).messages


def test_between_two_answers_that_agree_it_must_not_have_healed(group: Make) -> None:
    made = group(SKEWED, HALVES)
    ready = rounds(made, LOOSE)[-1]
    assert ready.candidate is not None
    once = confirm(ready.candidate, later(made.observe(), 40_000), ready.state, LOOSE)

    healed = judge(later(group(EVEN, HALVES).observe(), 45_000), once.state, LOOSE)

    assert healed.state.streak is None


def test_it_opens_when_confirmed_twice_under_the_candidates_id(group: Make) -> None:
    _, judged = open_one(group)

    assert [m.status for m in judged.messages] == [Status.OPEN]
    assert judged.state.incident is not None
    assert judged.messages[0].id == judged.state.incident.id


@pytest.mark.parametrize(
    ("fresh", "reason"),
    [
        ({"members": {"m0": {"t": [0, 1]}, "m1": {"t": [2, 3, 4, 5, 6, 7]}}}, "assignment_changed"),
        ({"state": "PreparingRebalance"}, "not_stable"),
        ({"topics": EVEN}, "not_confirmed"),
    ],
)
def test_what_the_coordinator_contradicts_is_dropped_with_its_reason(
    group: Make, fresh: dict[str, Any], reason: str
) -> None:
    ready = rounds(group(SKEWED, HALVES), LOOSE)[-1]
    assert ready.candidate is not None
    asked = group(**{"topics": SKEWED, "members": HALVES, **fresh})

    judged = confirm(ready.candidate, later(asked.observe(), 40_000), ready.state, LOOSE)

    assert (judged.dropped, judged.messages, judged.state.streak) == (reason, (), None)


def test_while_blind_nothing_opens_and_what_is_open_is_marked_stale_once(group: Make) -> None:
    made, judged = open_one(group)
    blind = judge(later(made.observe(), 60_000, blind="no progress"), judged.state, LOOSE)
    still = judge(later(made.observe(), 90_000, blind="no progress"), blind.state, LOOSE)

    assert [(m.status, m.stale) for m in blind.messages] == [(Status.UPDATED, True)]
    assert still.messages == ()
    assert still.state.incident is not None
    assert not any(j.candidate for j in rounds(made, LOOSE, blind="no progress"))


def test_after_blindness_it_goes_on_under_the_same_id(group: Make) -> None:
    made, judged = open_one(group)
    blind = judge(later(made.observe(), 60_000, blind="no progress"), judged.state, LOOSE)
    back = judge(later(made.observe(), 90_000), blind.state, LOOSE)

    assert [(m.id, m.stale) for m in back.messages] == [(judged.messages[0].id, False)]


def test_when_the_backlog_is_gone_it_resolves_once_and_cools_down(group: Make) -> None:
    _, judged = open_one(group)
    state, said = judged.state, []
    calm = group(EVEN, HALVES)
    for turn in range(6, 12):
        found = judge(later(calm.observe(), turn * 10_000), state, LOOSE)
        state, said = found.state, [*said, *found.messages]

    assert [(m.status, str(m.resolution)) for m in said] == [(Status.RESOLVED, "drained")]
    assert said[0].id == judged.messages[0].id
    assert state.cooldown_until > 0
    assert state.track == {"opened": 1, "drained": 1}


def test_a_group_that_nobody_has_used_for_a_day_is_not_looked_at_closely(group: Make) -> None:
    left = {"t": [{"end": 10_000, "rate": 1, "committed": 100, "age": 90_000}]}
    found = rounds(group(left, {}), LOOSE, count=1)[0]

    assert (found.verdict, found.look) == ("balanced", None)
