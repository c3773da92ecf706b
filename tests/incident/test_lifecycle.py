"""One id from first to last: stale, told again, followed, resolved."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

import pytest

from kagent.contract.recommendation import ActionType, Recommendation, Status, Verdict
from kagent.detect.finding import Finding
from kagent.detect.state import JudgeState
from kagent.incident.evaluate import confirm, judge
from kagent.incident.lateness_left import drained
from kagent.incident.lifecycle import carried_on
from kagent.incident.resolution import expired
from kagent.lag.observation import Mute, Observation
from kagent.policy import Policy
from tests.fixtures.timeline import Rate, Timeline, judged

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


class Following(Timeline):
    """A group whose assignor follows kagent's plans."""

    def observe(self, blind: str | None = None) -> Observation:
        seen = super().observe(blind)
        assert seen.roster is not None
        return replace(seen, roster=replace(seen.roster, protocol="kagent"))


def opened(m0: Rate = 220.0, follows: bool = False) -> tuple[Timeline, JudgeState, Recommendation]:
    """A group whose first member gets too much, with its incident open after ten minutes."""
    world, state, first = _opened(m0, follows)
    return deepcopy(world), state, first


@cache
def _opened(m0: Rate, follows: bool) -> tuple[Timeline, JudgeState, Recommendation]:
    kind = Following if follows else Timeline
    world = kind([150.0, 150, 50, 50, 50, 50], HELD, {**dict.fromkeys(HELD, 220.0), "m0": m0})
    found = judged(world, 600)[-1]
    assert found.candidate is not None
    now_open = confirm(found.candidate, world.observe(), found.state, Policy())
    return world, now_open.state, now_open.messages[0]


@pytest.mark.slow
def test_blindness_marks_it_stale_once_after_a_minute_and_sight_for_a_minute_takes_it_back() -> None:
    world, state, first = opened()
    blind = judged(world, 120, state, blind=lambda second: True)
    said = [m for one in blind for m in one.messages]
    back = judged(world, 120, blind[-1].state)
    again = [m for one in back for m in one.messages]

    assert [(m.id, m.status, m.stale) for m in said] == [(first.id, Status.UPDATED, True)]
    assert [(m.id, m.stale) for m in again][:1] == [(first.id, False)]


def test_a_plan_that_is_superseded_stays_so_when_the_group_gets_out_of_sight_and_back() -> None:
    world, state, _ = opened()
    world.held = {"m0": (0, 1), "m1": (2, 5), "m2": (4, 3)}
    world.at = dict.fromkeys(world.held, 0)
    changed = judged(world, 10, state)
    blind = judged(world, 120, changed[-1].state, blind=lambda second: True)
    back = judged(world, 120, blind[-1].state, mute=Mute(world.now + 10**6))
    said = [m for one in (*changed, *blind, *back) for m in one.messages]

    assert [(m.status, m.stale) for m in said] == [
        (Status.SUPERSEDED, False),
        (Status.SUPERSEDED, True),
        (Status.SUPERSEDED, False),
    ]


@pytest.mark.slow
def test_advice_for_the_new_assignment_is_not_superseded_by_the_change_before_it() -> None:
    world, state, first = opened()
    world.held = {"m0": (0, 1), "m1": (2, 5), "m2": (4, 3)}
    world.at = dict.fromkeys(world.held, 0)
    said = [m for one in judged(world, 1800, state) for m in one.messages]
    at = [m.status for m in said].index(Status.UPDATED)

    assert {m.id for m in said} == {first.id}
    assert [m.status for m in said[: at + 1]] == [Status.SUPERSEDED, Status.UPDATED]
    assert {m.status for m in said[at:]} == {Status.UPDATED}


def test_what_is_said_of_a_group_that_is_unstable_or_of_a_partition_is_not_superseded_by_a_rebalance() -> (
    None
):
    statuses = []
    for verdict in (Verdict.REBALANCE, Verdict.UNSTABLE, Verdict.STALLED):
        world, state, _ = opened()
        assert state.incident is not None
        state = replace(state, incident=replace(state.incident, verdict=str(verdict)))
        world.held = {"m0": (0, 1), "m1": (2, 5), "m2": (4, 3)}
        world.at = dict.fromkeys(world.held, 0)
        statuses.append([m.status for one in judged(world, 20, state) for m in one.messages])

    assert statuses == [[Status.SUPERSEDED], [], []]


def test_a_pipeline_that_is_late_now_and_then_is_no_news() -> None:
    world, state, _ = opened()
    found = judged(world, 600, state, blind=lambda second: second % 60 < 20)

    assert [m for one in found for m in one.messages if m.stale] == []


def test_a_pipeline_that_is_slow_all_the_time_makes_it_stale_once_and_not_on_and_off() -> None:
    world, state, _ = opened()
    found = judged(world, 1200, state, blind=lambda second: second % 100 < 70)

    assert [m.stale for one in found for m in one.messages] == [True]


@pytest.mark.slow
def test_what_drains_while_it_is_stale_resolves_as_drained() -> None:
    world, state, first = opened(m0=lambda second: 220.0 if second < 700 else 2000.0)

    assert ended_after_blindness(world, state, 600, 600) == [(first.id, "drained", False)]


@pytest.mark.slow
def test_what_is_followed_while_it_is_stale_resolves_as_followed() -> None:
    world, state, first = opened()
    rearrange(world, first)

    assert ended_after_blindness(world, state, 120, 2400) == [(first.id, "followed", False)]


def ended_after_blindness(
    world: Timeline, state: JudgeState, blind_s: int, then_s: int
) -> list[tuple[str, str, bool]]:
    """What ended, how, and whether that was stale, after a blindness that made the incident stale."""
    blind = judged(world, blind_s, state, blind=lambda second: True)
    assert blind[-1].state.incident is not None
    assert blind[-1].state.incident.stale
    said = [m for one in judged(world, then_s, blind[-1].state) for m in one.messages]
    return [(m.id, str(m.resolution), m.stale) for m in said if m.status is Status.RESOLVED]


def rearrange(world: Timeline, advised: Recommendation) -> None:
    """Hold the partitions as this recommendation says."""
    held: dict[str, list[int]] = {name: list(ps) for name, ps in HELD.items()}
    for move in advised.moves:
        name = next(n for n in held if move.partition in held[n])
        held[name].remove(move.partition)
        held[move.to.split("/")[0]].append(move.partition)
    world.held = {name: tuple(ps) for name, ps in held.items()}
    world.at = dict.fromkeys(held, 0)


@pytest.mark.slow
def test_a_backlog_that_is_gone_resolves_it_once_and_begins_a_cooldown() -> None:
    world, state, first = opened(m0=lambda second: 220.0 if second < 700 else 2000.0)
    found = judged(world, 900, state)
    said = [m for one in found for m in one.messages]

    assert [(m.id, m.status, str(m.resolution)) for m in said if m.status is Status.RESOLVED] == [
        (first.id, Status.RESOLVED, "drained")
    ]
    # Nobody followed the plan, so it predicted nothing of what came.
    outcome = said[-1].outcome
    assert outcome is not None
    assert (outcome.predicted_drain_s, outcome.predicted_skew) == (None, None)
    assert outcome.measured_drain_s is not None
    last = found[-1].state
    assert last.incident is None
    assert last.cooldown_until > world.now
    assert last.cooldown_of == first.verdict
    assert last.track["opened"] == last.track["drained"] == 1


@pytest.mark.slow
def test_the_plan_in_effect_is_followed_and_the_drain_is_measured() -> None:
    world, state, first = opened()
    rearrange(world, first)
    said = [m for one in judged(world, 2400, state) for m in one.messages]

    assert said[0].status is Status.SUPERSEDED
    assert (said[-1].status, str(said[-1].resolution)) == (Status.RESOLVED, "followed")
    assert {m.id for m in said} == {first.id}
    assert said[-1].outcome is not None
    assert said[-1].outcome.measured_drain_s is not None


@pytest.mark.slow
def test_a_followed_plan_is_held_against_what_its_action_said() -> None:
    world = Timeline([150.0, 150, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 250.0))
    found = judged(world, 600)[-1]
    assert found.candidate is not None
    now_open = confirm(found.candidate, world.observe(), found.state, Policy())
    first = now_open.messages[0]
    plan = next(a for a in first.actions if a.type == "follow_plan")
    rearrange(world, first)
    last = [m for one in judged(world, 2400, now_open.state) for m in one.messages][-1]

    assert (last.status, str(last.resolution)) == (Status.RESOLVED, "followed")
    assert last.outcome is not None
    assert plan.gain["after"] is not None
    assert last.outcome.predicted_drain_s == plan.gain["likely"]
    assert last.outcome.measured_drain_s is not None
    assert last.outcome.measured_drain_s < plan.gain["after"]


def test_an_assignment_that_a_restart_passes_through_is_not_followed() -> None:
    world, state, first = opened()
    rearrange(world, first)
    passing = judged(world, 50, state)
    world.held = {"m0": (0, 1), "m1": (2, 5), "m2": (4, 3)}
    world.at = dict.fromkeys(world.held, 0)
    found = (*passing, *judged(world, 120, passing[-1].state))

    assert found[0].messages[0].status is Status.SUPERSEDED
    assert found[0].messages[0].as_of > first.as_of
    assert {i.followed_at for one in found if (i := one.state.incident) is not None} == {None}


def test_an_assignment_is_followed_once_it_stays_and_from_when_it_came() -> None:
    world, state, first = opened()
    rearrange(world, first)
    came = world.now
    found = judged(world, 90, state)
    followed = [i.followed_at for one in found if (i := one.state.incident) is not None]

    assert followed[:6] == [None] * 6
    assert followed[-1] is not None
    assert 0 <= followed[-1] - came <= 10_000
    assert [m.status for one in found for m in one.messages] == [Status.SUPERSEDED]


@pytest.mark.slow
def test_another_feasible_action_than_the_first_counts_as_followed_with_its_own_prediction() -> None:
    world, state, first = opened(follows=True)
    plan, other = first.actions[0], next(a for a in first.actions if a.type is ActionType.SET_MEMBER_COUNT)
    assert (plan.type, other.feasible) == ("follow_plan", "yes")
    names = [f"n{at}" for at in range(other.params["members"])]
    world.held = {name: tuple(range(at, 6, len(names))) for at, name in enumerate(names)}
    world.speed, world.left = dict.fromkeys(names, 220.0), dict.fromkeys(names, 0.0)
    world.uncommitted, world.at = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    world.idle = {name: set() for name in names}
    last = [m for one in judged(world, 2400, state) for m in one.messages][-1]

    assert (last.status, str(last.resolution)) == (Status.RESOLVED, "followed")
    assert last.outcome is not None
    assert last.outcome.predicted_drain_s == other.gain["likely"]
    assert last.outcome.measured_drain_s is not None


@pytest.mark.slow
def test_advice_that_was_replaced_while_it_was_carried_out_counts_as_followed() -> None:
    world, state, first = opened()
    world.held = {"m0": (0, 1), "m1": (2, 5), "m2": (4, 3)}
    world.at = dict.fromkeys(world.held, 0)
    found = judged(world, 300, state)
    assert Status.UPDATED in [m.status for one in found for m in one.messages]

    rearrange(world, first)
    said = [m for one in judged(world, 2400, found[-1].state) for m in one.messages]

    assert (said[-1].status, str(said[-1].resolution)) == (Status.RESOLVED, "followed")
    assert said[-1].outcome is not None
    assert said[-1].outcome.predicted_skew == first.skew.after


def test_an_unchanged_incident_is_told_again_once_a_day() -> None:
    world, state, _ = opened()
    seen = world.observe()
    day = judge(replace(seen, now=seen.now + 86_400_001, as_of=seen.as_of), state, Policy())

    assert [m.status for m in day.messages] in ([Status.OPEN], [Status.UPDATED])


def test_a_group_that_is_gone_expires_with_its_last_message() -> None:
    _, state, first = opened()
    after, message = expired(state, 1_800_000_000_000)

    assert message is not None
    assert (message.id, str(message.resolution)) == (first.id, "expired")
    assert after.incident is None
    assert expired(after, 1) == (after, None)


def test_a_group_that_nobody_sees_for_a_day_expires() -> None:
    world, state, _ = opened()
    seen = world.observe("no progress")
    once = judge(replace(seen, now=seen.now + 1000), state, Policy())
    later = judge(replace(seen, now=seen.now + 86_402_000), once.state, Policy())

    assert [str(m.resolution) for m in later.messages] == ["expired"]


def test_a_day_in_which_nobody_looked_expires_nothing() -> None:
    world, state, _ = opened()
    seen = world.observe("no progress")
    once = judge(replace(seen, now=seen.now + 1000), state, Policy())
    after = seen.now + 86_402_000
    later = judge(replace(seen, now=after, present_since=after), once.state, Policy())
    in_the_end = judge(replace(seen, now=after + 86_400_000, present_since=after), later.state, Policy())

    assert later.state.incident is not None
    assert [str(m.resolution) for m in in_the_end.messages] == ["expired"]


@pytest.mark.slow
def test_a_standstill_becomes_a_page_once_it_is_late_enough_for_one() -> None:
    world = Timeline([20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1}))
    policy = Policy()
    found = judged(world, 420)[-1]
    assert found.candidate is not None
    first = confirm(found.candidate, world.observe(), found.state, policy)
    later = [m for one in judged(world, 900, first.state) for m in one.messages]

    assert [(str(m.verdict), str(m.severity)) for m in first.messages] == [("stalled", "ticket")]
    assert [(m.id, str(m.severity)) for m in later if m.severity == "page"][:1] == [
        (first.messages[0].id, "page")
    ]
    assert [str(m.severity) for m in later] == ["page"] * len(later)
    assert later[0].as_of - first.messages[0].as_of < 1000 * (policy.page_behind + 60)


def test_a_muted_standstill_becomes_no_page_before_the_mute_ends() -> None:
    world = Timeline([20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1}))
    found = judged(world, 420)[-1]
    assert found.candidate is not None
    first = confirm(found.candidate, world.observe(), found.state, Policy())
    mute = Mute(world.now + 901_000)
    muted = judged(world, 900, first.state, mute=mute)
    after = [m for one in judged(world, 60, muted[-1].state, mute=mute) for m in one.messages]

    assert [m for one in muted for m in one.messages] == []
    assert {(m.id, str(m.severity)) for m in after} == {(first.messages[0].id, "page")}


@pytest.mark.slow
def test_the_end_of_an_incident_is_published_although_its_group_is_muted() -> None:
    world, state, first = opened(m0=lambda second: 220.0 if second < 700 else 2000.0)
    said = [m for one in judged(world, 900, state, mute=Mute(world.now + 10**7)) for m in one.messages]

    assert [(m.id, str(m.resolution)) for m in said] == [(first.id, "drained")]


@pytest.mark.slow
def test_of_a_member_that_falls_behind_further_the_figures_stay_true_by_half() -> None:
    world, state, first = opened()
    said, seen = [first], []
    for one in judged(world, 3600, state):
        said += one.messages
        if one.model is not None:
            seen.append((float(one.model.lateness.max()), worst_s(said[-1])))

    assert all(now < 2.2 * told + 60 for now, told in seen)
    # One in ten minutes, so that none runs out, and those whose figures misled.
    assert 2 <= len(said) <= 1 + 6 + 4
    assert {m.id for m in said} == {first.id}


@pytest.mark.slow
def test_what_is_open_and_still_holds_may_be_acted_on_at_any_time() -> None:
    world, state, last = opened()
    left_ms = []
    for one in judged(world, 2400, state):
        last = one.messages[-1] if one.messages else last
        assert one.model is not None
        left_ms.append(last.valid_until - one.model.now)

    assert min(left_ms) > 0


def worst_s(message: Recommendation) -> float:
    return max(member.seconds_behind or 0.0 for member in message.members)


def standstill(speed: float) -> tuple[Timeline, JudgeState]:
    """A group of which one partition stood until its incident opened, and is read again from then on."""
    world = Timeline([20.0] * 6, HELD, dict.fromkeys(HELD, speed), order="even", stands=frozenset({1}))
    found = judged(world, 420)[-1]
    assert found.candidate is not None
    first = confirm(found.candidate, world.observe(), found.state, Policy())
    world.stands = frozenset()
    return world, first.state


@pytest.mark.slow
def test_a_standstill_that_moves_again_ends_once_its_backlog_is_read() -> None:
    world, state = standstill(speed=60.0)
    for one in judged(world, 1200, state):
        if one.messages and one.messages[-1].status is Status.RESOLVED:
            break

    assert [str(m.resolution) for m in one.messages] == ["drained"]
    assert one.messages[0].outcome is not None
    assert one.messages[0].outcome.measured_drain_s is not None
    assert one.lag is not None
    assert one.lag < 600


@pytest.mark.slow
def test_advice_to_skip_a_record_is_superseded_as_soon_as_the_record_is_passed() -> None:
    """Whoever carried it out later would have the group read again all that came since."""
    world, state = standstill(speed=25.0)
    said = [[m.status for m in one.messages] for one in judged(world, 600, state)]

    assert said[0] == [Status.SUPERSEDED]
    assert sum(each.count(Status.SUPERSEDED) for each in said) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("becomes", "count"), [(600.0, 1), (330.0, 0), (215.0, 0)])
def test_advice_is_superseded_once_nothing_is_the_matter_but_the_backlog_that_it_left(
    becomes: float, count: int
) -> None:
    """Not while it drains so slowly that the advice still helps."""
    world, state, first = opened(m0=lambda second: 200.0 if second < 1500 else becomes)
    said = [m for one in judged(world, 1800, state) for m in one.messages]

    assert {m.id for m in said} == {first.id}
    assert [m.status for m in said].count(Status.SUPERSEDED) == count
    assert (said[-1].status is Status.RESOLVED) is bool(count)


@pytest.mark.slow
@pytest.mark.parametrize("blind_s", [50, 150])
def test_time_in_which_nobody_could_see_the_group_takes_no_advice_back(blind_s: int) -> None:
    """That nothing is the matter must have been seen for three minutes."""
    always_seen_s = superseded_after_s(0, 0)
    blind_from_s = always_seen_s - 100

    after_s = superseded_after_s(blind_from_s, blind_from_s + blind_s)

    assert after_s - always_seen_s == pytest.approx(blind_s, abs=10)


def superseded_after_s(blind_from_s: int, blind_until_s: int) -> int:
    """After how many seconds advice is superseded whose cause is gone, where nobody sees the group for a time."""
    world, state, _ = opened(m0=lambda second: 220.0 if second < 2500 else 600.0)
    began = world.second
    looks = judged(world, 2700, state, blind=lambda second: blind_from_s <= second - began < blind_until_s)
    said = [[m.status for m in one.messages] for one in looks]
    return 10 * next(at for at, each in enumerate(said) if Status.SUPERSEDED in each)


def test_a_ratio_that_noise_changes_is_no_news_of_a_standstill() -> None:
    world, state = standstill(speed=60.0)
    world.stands = frozenset({1})
    assert state.incident is not None
    uneven = replace(state, incident=replace(state.incident, skew=9.0, sent_at=world.now - 10**7))
    looks = judged(world, 30, uneven)

    assert looks[0].findings[0].verdict is Verdict.STALLED
    assert [m for one in looks for m in one.messages] == []


def test_the_row_of_the_member_with_a_stuck_partition_says_how_long_it_stands() -> None:
    _, state = standstill(speed=220.0)
    assert state.incident is not None
    rows = {row["member"]: row["seconds_behind"] for row in state.incident.message["members"]}
    latest = max(rows, key=rows.__getitem__)

    assert rows[latest] == pytest.approx(state.incident.behind, abs=15)
    assert all(late < 30 for name, late in rows.items() if name != latest)


def test_a_standstill_keeps_its_verdict_while_what_it_left_drains() -> None:
    world, state = standstill(speed=60.0)
    said: list[Recommendation] = []
    for one in judged(world, 300, state):
        assert one.model is not None
        found = Finding(Verdict.REBALANCE, (one.model.worst,), (1,), behind=100.0)
        change = carried_on(
            replace(one.model, state=replace(one.model.state, incident=state.incident)), (found,)
        )
        state, said = change.state, [*said, *change.messages]

    assert state.incident is not None
    assert state.incident.verdict == Verdict.STALLED
    # That its record has been passed, and nothing about the backlog.
    assert [m.status for m in said] == [Status.SUPERSEDED]


@pytest.mark.slow
def test_a_standstill_is_told_while_the_backlog_of_an_open_incident_drains() -> None:
    world, state, first = opened(m0=lambda second: 220.0 if second < 700 else 330.0)
    world.stands, world.stands_from = frozenset({2}), 700
    found = judged(world, 600, state)
    said = [m for one in found for m in one.messages]

    assert found[-1].model is not None
    assert found[-1].model.longest_drain < float("inf")
    assert (first.id, Verdict.STALLED) in [(m.id, m.verdict) for m in said]


@pytest.mark.slow
def test_a_member_that_gets_later_after_the_advice_was_followed_is_told_again() -> None:
    world, state, first = opened()
    assert state.incident is not None
    done = replace(
        state.incident,
        superseded=True,
        followed_at=world.now,
        followed_behind=state.incident.behind,
        changed_at=world.now,
        predicted_drain=None,
    )
    found = judged(world, 900, replace(state, incident=done))
    said = [(m.id, m.status) for one in found for m in one.messages]

    assert said[:1] == [(first.id, Status.UPDATED)]
    assert found[-1].state.incident is not None
    assert found[-1].state.incident.followed_at is None


@pytest.mark.slow
def test_a_group_that_then_stays_late_and_comes_no_nearer_has_no_incident_for_ever() -> None:
    world, state = standstill(speed=40.0)
    policy = Policy(await_drain=600)
    said = [m for one in judged(world, 1200, state, policy) for m in one.messages]

    assert [m.status for m in said] == [Status.SUPERSEDED, Status.RESOLVED]
    assert str(said[1].resolution) == "drained"
    assert said[1].outcome is not None
    assert said[1].outcome.measured_drain_s is None
    assert 600_000 <= said[1].as_of - state.last_tick < 800_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("less_for_s", "after_an_hour"), [(360, {"hot_partition"}), (3600, {"hot_partition", "rebalance"})]
)
def test_a_few_minutes_of_less_inflow_change_no_verdict_and_less_for_good_does(
    less_for_s: int, after_an_hour: set[str]
) -> None:
    def hot(second: int) -> float:
        return 40.0 if second < 600 else 75.0 if 3000 <= second < 3000 + less_for_s else 120.0

    world = Timeline(
        [hot, lambda second: 35.0 if second > 600 else 5.0, 5.0],
        {"a": (0, 1), "b": (2,)},
        {"a": 100.0, "b": 100.0},
    )
    found = judged(world, 1200)[-1]
    assert found.candidate is not None
    now_open = confirm(found.candidate, world.observe(), found.state, Policy())
    incidents = [one.state.incident for one in judged(world, 3600, now_open.state)]

    assert {i.verdict for i in incidents if i} == after_an_hour


@pytest.mark.slow
def test_once_the_load_is_over_no_update_states_it_as_present() -> None:
    """The lateness goes on to rise for minutes, as the member reads what came at the worst time, and it doubles."""

    def load(second: int) -> float:
        return 150.0 if second < 1000 else 20.0

    world = Timeline([load, load, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    state = judged(world, 600)[-1].state
    candidate = judged(world, 10, state)[-1].candidate
    assert candidate is not None
    now_open = confirm(candidate, world.observe(), state, Policy())

    looks = judged(world, 1200, now_open.state)
    behind = [one.model.lateness.max() for one in looks if one.model is not None]

    assert now_open.state.incident is not None
    assert max(behind) >= 2 * now_open.state.incident.behind
    assert [m.status for one in looks for m in one.messages] == [Status.RESOLVED]


@pytest.mark.slow
@pytest.mark.parametrize(("changed_after_s", "resolution"), [(20, "group_changed"), (250, "drained")])
def test_a_change_after_the_group_has_caught_up_did_not_end_it(changed_after_s: int, resolution: str) -> None:
    """It catches up within four minutes."""
    world, state, _ = opened(m0=lambda second: 220.0 if second < 600 else 600.0)
    before = judged(world, changed_after_s, state)
    world.held = {"m0": (0, 1), "m1": (2, 5), "m2": (4, 3)}
    world.at = dict.fromkeys(world.held, 0)
    said = [m for one in judged(world, 900, before[-1].state) for m in one.messages]

    assert str(said[-1].resolution) == resolution


def test_what_is_set_aside_and_waits_is_not_drained() -> None:
    """It is left out of its member's lateness."""
    world = Timeline([20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1}))
    model = judged(world, 240)[-1].model

    assert model is not None
    assert model.excluded.tolist() == [False, True, *4 * [False]]
    assert model.lateness.max() < 30
    assert not drained(model)


@pytest.mark.slow
def test_that_another_member_is_slow_too_is_news() -> None:
    """Within `update_every`, after which the figures would be published again."""
    held = {f"m{n}": (2 * n, 2 * n + 1) for n in range(6)}
    speed: dict[str, Rate] = dict.fromkeys(held, 220.0)
    slow: dict[str, Rate] = {"m0": 60.0, "m1": lambda second: 220.0 if second < 700 else 60.0}
    world = Timeline([50.0] * 12, held, speed | slow)
    found = next(one for one in judged(world, 1200) if one.candidate)
    assert found.candidate is not None
    now_open = confirm(found.candidate, world.observe(), found.state, Policy())
    later = [m for one in judged(world, 280, now_open.state) for m in one.messages]

    def named(message: Recommendation) -> int:
        return 1 + len(message.actions[0].params.get("others", ()))

    assert [named(message) for message in now_open.messages] == [1]
    assert (later[0].status, named(later[0])) == (Status.UPDATED, 2)
