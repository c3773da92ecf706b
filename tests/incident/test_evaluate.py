"""From a look at a group to a message: what opens, what the coordinator may contradict, and what stays as it is."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from kagent.contract.recommendation import ActionType, Recommendation, Status
from kagent.detect.state import JudgeState
from kagent.incident.evaluate import Judgement, confirm, judge
from kagent.incident.suppression import REASONS
from kagent.lag.observation import Mute, Observation
from kagent.policy import Policy
from tests.fixtures.timeline import FIRST_OFFSET, Timeline, judged

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


def skewed() -> Timeline:
    """m0 gets 300 records/s of the 220 that it can do; the others have room."""
    return Timeline([150.0, 150, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 220.0))


def ripe() -> tuple[Timeline, Judgement]:
    world, found = _ripe()
    return deepcopy(world), found


@cache
def _ripe() -> tuple[Timeline, Judgement]:
    world = skewed()
    found = judged(world, 600)[-1]
    assert found.candidate is not None
    return world, found


@pytest.mark.slow
def test_the_same_candidate_stays_until_somebody_answers() -> None:
    candidates = [one.candidate for one in judged(skewed(), 900) if one.candidate]

    assert len(candidates) > 20
    assert len({c.id for c in candidates}) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Policy(min_behind=10**6), None),
        (Policy(evidence=100), "evidence"),
        (Policy(settle=10**9), None),
        (Policy(ignore=True), "ignored"),
    ],
)
def test_each_setting_alone_keeps_it_silent(policy: Policy, reason: str | None) -> None:
    found = judged(skewed(), 900, policy=policy)

    assert not any(one.candidate for one in found)
    assert found[-1].suppressed_by == reason


@pytest.mark.slow
def test_a_hold_of_days_keeps_it_silent() -> None:
    assert not any(one.candidate for one in judged(skewed(), 900, policy=Policy(hold=10**6)))


def test_a_cooldown_and_a_mute_keep_it_silent_and_say_so() -> None:
    world, found = ripe()
    seen = replace(world.observe(), now=world.now + 1)

    cooling = judge(seen, replace(found.state, cooldown_until=world.now + 10**6), Policy())
    muted = judge(replace(seen, mute=Mute(world.now + 10**6)), found.state, Policy())
    over = judge(replace(seen, mute=Mute(world.now)), found.state, Policy())

    assert [one.suppressed_by for one in (cooling, muted, over)] == ["cooldown", "muted", None]
    assert over.candidate is not None


def cooling(seconds: int, after: str, policy: Policy | None = None) -> list[Judgement]:
    """A group of which one partition stands, in the cooldown of an incident of this verdict."""
    world = Timeline([20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1}))
    state = JudgeState(first_seen=0, cooldown_until=world.now + 10**7, cooldown_of=after)
    return judged(world, seconds, state, policy)


@pytest.mark.parametrize("after", ["slow_member", "rebalance", "no_members", "idle_members"])
def test_a_standstill_is_not_hidden_by_the_cooldown_of_what_was_less_urgent(after: str) -> None:
    found = cooling(420, after)[-1]

    assert found.candidate is not None
    assert found.candidate.verdict == "stalled"


@pytest.mark.parametrize("after", ["stalled", "stuck_member", "lost_data", "", "of a newer kagent"])
def test_a_standstill_in_the_cooldown_of_one_is_told_once_it_is_late_enough_for_a_page(after: str) -> None:
    found = cooling(900, after, Policy(page_behind=600))
    told = [at for at, one in enumerate(found) if one.candidate is not None]

    # A tick of 10 s, and commits of 5 s.
    assert 600 <= 10 * told[0] <= 640
    assert {one.suppressed_by for one in found[: told[0]]} == {None, "cooldown"}


class BehindTransaction(Timeline):
    """Of two partitions that stand, an open transaction holds the first back."""

    def observe(self, blind: str | None = None) -> Observation:
        self.ends.stable = np.array([round(end) for end in self.end], np.int64)
        self.ends.stable[1] = FIRST_OFFSET
        return super().observe(blind)


@pytest.mark.slow
def test_a_transaction_in_its_own_cooldown_does_not_hide_a_standstill() -> None:
    world = BehindTransaction(
        [20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1, 3})
    )
    state = JudgeState(first_seen=0, cooldown_until=world.now + 10**7, cooldown_of="blocked_by_transaction")
    found = judged(world, 420, state)[-1]
    assert found.candidate is not None
    first = confirm(found.candidate, world.observe(), found.state, Policy())
    later = [message for one in judged(world, 600, first.state) for message in one.messages]

    assert [str(finding.verdict) for finding in found.findings[:2]] == ["stalled", "blocked_by_transaction"]
    assert found.candidate.verdict == first.messages[0].verdict == "stalled"
    assert {str(message.verdict) for message in later} <= {"stalled"}


@pytest.mark.parametrize(
    ("after", "suppressed_by"),
    [
        ("hot_partition", "cooldown"),
        ("slow_member", "cooldown"),
        ("blocked_by_transaction", None),
        ("stalled", None),
    ],
)
def test_a_member_that_falls_behind_waits_for_a_cooldown_only_after_another_that_did(
    after: str, suppressed_by: str | None
) -> None:
    world, found = ripe()
    seen = replace(world.observe(), now=world.now + 1)
    state = replace(found.state, cooldown_until=world.now + 10**6, cooldown_of=after)

    assert judge(seen, state, Policy(page_behind=0)).suppressed_by == suppressed_by


@pytest.mark.slow
def test_another_slow_member_does_not_wait_for_the_cooldown_of_the_first() -> None:
    world = Timeline([50.0] * 6, HELD, {**dict.fromkeys(HELD, 220.0), min(HELD): 60.0})
    found = next(one for one in judged(world, 1800) if one.candidate)
    lead = found.findings[0]
    seen = replace(world.observe(), now=world.now + 1)
    name = seen.roster.names[lead.members[0]] if seen.roster else ""

    def suppressed(member: str) -> str | None:
        cooling = {"cooldown_until": world.now + 10**6, "cooldown_of": "slow_member"}
        return judge(seen, replace(found.state, cooldown_member=member, **cooling), Policy()).suppressed_by  # type: ignore[arg-type]

    assert str(lead.verdict) == "slow_member"
    assert (suppressed(name), suppressed("another")) == ("cooldown", None)


@pytest.mark.parametrize(
    ("after", "member", "suppressed_by"),
    [
        ("under_provisioned", "another", None),
        ("under_provisioned", "m0", "cooldown"),
        ("stalled", "m0", None),
    ],
)
def test_something_else_of_another_member_does_not_wait_for_a_cooldown(
    after: str, member: str, suppressed_by: str | None
) -> None:
    """A slow database for three minutes was reported as too few members; a partition that becomes hot after it is another matter."""
    world, found = ripe()
    seen = replace(world.observe(), now=world.now + 1)
    assert seen.roster is not None
    lead = seen.roster.names[found.findings[0].members[0]]
    name = lead if member == "m0" else member
    state = replace(found.state, cooldown_until=world.now + 10**6, cooldown_of=after, cooldown_member=name)

    assert judge(seen, state, Policy(page_behind=0)).suppressed_by == suppressed_by


@pytest.mark.parametrize(("partitions", "suppressed_by"), [((4, 5), None), ((0, 5), "cooldown")])
def test_uneven_work_in_other_partitions_does_not_wait_for_the_cooldown_of_the_first(
    partitions: tuple[int, ...], suppressed_by: str | None
) -> None:
    """Partitions 0 and 1 are the heaviest now."""
    world, found = ripe()
    cooling = {"cooldown_until": world.now + 10**6, "cooldown_of": "rebalance"}
    places = tuple(("t", partition) for partition in partitions)
    state = replace(found.state, cooldown_partitions=places, **cooling)  # type: ignore[arg-type]
    seen = replace(world.observe(), now=world.now + 1)

    assert judge(seen, state, Policy(page_behind=0)).suppressed_by == suppressed_by


def test_one_pause_of_minutes_is_no_slow_machine_where_commits_are_minutes_apart() -> None:
    """The one window that is known is that of the pause."""
    pauses = {"m0": lambda second: 0.0 if 600 < second < 800 else 130.0}
    world = Timeline([50.0] * 2, {"m0": (0, 1)}, pauses, commit_s=120)

    assert not any(one.candidate for one in judged(world, 1500))


def test_what_no_cooldown_holds_back_waits_for_its_evidence() -> None:
    cooling = {"cooldown_until": 10**14, "cooldown_of": "stalled"}
    state = JudgeState(first_seen=0, **cooling)  # type: ignore[arg-type]
    reasons = {one.suppressed_by for one in judged(skewed(), 320, state, policy=Policy(evidence=4))}

    assert "evidence" in reasons
    assert "cooldown" not in reasons


@pytest.mark.parametrize(("after", "suppressed_by"), [("hot_partition", None), ("stalled", "cooldown")])
def test_an_open_transaction_waits_for_the_cooldown_of_another_standstill_alone(
    after: str, suppressed_by: str | None
) -> None:
    world = BehindTransaction(
        [20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1})
    )
    state = JudgeState(first_seen=0, cooldown_until=world.now + 10**7, cooldown_of=after)
    found = judged(world, 420, state)[-1]

    assert str(found.findings[0].verdict) == "blocked_by_transaction"
    assert found.suppressed_by == suppressed_by


@pytest.mark.parametrize(("partition", "suppressed_by"), [(0, None), (1, "cooldown")])
def test_another_stuck_partition_does_not_wait_for_the_cooldown_of_the_first(
    partition: int, suppressed_by: str | None
) -> None:
    """Partition 1 stands now."""
    world = Timeline([20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1}))
    cooling = {"cooldown_until": world.now + 10**7, "cooldown_of": "stalled"}
    state = JudgeState(first_seen=0, cooldown_partitions=(("t", partition),), **cooling)  # type: ignore[arg-type]

    assert judged(world, 420, state)[-1].suppressed_by == suppressed_by


def test_a_group_that_rebalances_is_not_judged_by_its_spread() -> None:
    world, found = ripe()
    seen = world.observe()
    assert seen.roster is not None
    moving = replace(seen, now=seen.now + 1, roster=replace(seen.roster, state="PreparingRebalance"))

    assert judge(moving, found.state, Policy()).suppressed_by == "not_stable"


@pytest.mark.slow
def test_every_reason_is_told_in_words() -> None:
    said = {one.suppressed_by for one in judged(skewed(), 600) if one.suppressed_by}

    assert said
    assert said <= REASONS.keys()


def test_one_answer_of_the_coordinator_opens_it_under_the_candidates_id() -> None:
    world, found = ripe()
    assert found.candidate is not None

    opened = confirm(found.candidate, world.observe(), found.state, Policy())

    assert [m.status for m in opened.messages] == [Status.OPEN]
    assert opened.messages[0].id == found.candidate.id
    assert opened.state.incident is not None
    assert opened.messages[0].moves
    again = confirm(found.candidate, world.observe(), opened.state, Policy())
    assert (again.rejected_by, again.messages) == ("already_open", ())


def test_what_the_coordinator_contradicts_is_not_published_and_its_evidence_stands() -> None:
    world, found = ripe()
    candidate, seen = found.candidate, world.observe()
    assert candidate is not None
    assert seen.roster is not None
    other = replace(skewed(), held={"m0": (0, 2), "m1": (1, 3), "m2": (4, 5)}).observe().roster
    even = Timeline([50.0] * 6, HELD, dict.fromkeys(HELD, 220.0))
    even.run(600)
    answers: dict[str, Any] = {
        "not_stable": replace(seen, roster=replace(seen.roster, state="PreparingRebalance")),
        "assignment_changed": replace(seen, roster=other),
        "not_confirmed": even.observe(),
        "blind": replace(seen, blind="no progress"),
    }

    for reason, answer in answers.items():
        rejected = confirm(candidate, answer, found.state, Policy())
        assert (rejected.rejected_by, rejected.messages) == (reason, ())
        assert rejected.state is found.state


def test_a_healthy_group_leaves_its_row_alone() -> None:
    found = judged(Timeline([50.0] * 6, HELD, dict.fromkeys(HELD, 220.0)), 900)

    assert found[-1].state is found[-2].state


def test_a_tick_that_comes_twice_changes_nothing() -> None:
    world, found = ripe()

    assert judge(world.observe(), found.state, Policy()).state is found.state


LITERAL = Policy(min_behind=0, hold=0)


@pytest.mark.slow
def test_the_literal_policy_reports_every_crossing_of_the_threshold_once() -> None:
    """A burst of two minutes on one partition, three times: it drains by itself each time."""

    def bursts(second: int) -> float:
        return 500.0 if second > 600 and second % 900 < 120 else 50.0

    world = Timeline([bursts, 50, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    state, messages = None, list[Recommendation]()
    for _ in range(330):
        found = judged(world, 10, state, LITERAL)[-1]
        messages += found.messages
        if found.candidate is not None:
            found = confirm(found.candidate, world.observe(), found.state, LITERAL)
            messages += found.messages
        state = found.state

    opened = [m for m in messages if m.status is Status.OPEN]
    assert len(opened) == 3
    assert len([m for m in messages if m.status is Status.RESOLVED]) == 3
    assert {str(m.verdict) for m in opened} == {"rebalance"}
    waits = [
        m for m in messages if m.evidence.get("drains_in_s") is not None and m.status is not Status.RESOLVED
    ]
    assert {m.actions[0].type for m in waits} == {ActionType.WAIT}
