"""A topic that is read late on purpose is on time beyond that, and what falls behind it is late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kagent.contract.recommendation import Verdict
from kagent.detect import group_model, late_on_purpose
from kagent.detect.late_on_purpose import STEADY_S
from kagent.detect.seconds_behind import behind_s, members_behind_s
from kagent.detect.state import Delay, Incident, JudgeState
from kagent.incident.evaluate import Judgement
from kagent.policy import Policy
from kagent.simulator import load, run_many
from tests.fixtures.timeline import START, Timeline, judged

HELD = {"a": (0, 1), "b": (2, 3), "c": (4, 5)}
SICK = Path(__file__).parents[2] / "benchmarks/scenarios/sick"


def late_world() -> Timeline:
    return Timeline([30.0] * 6, HELD, dict.fromkeys(HELD, 100.0), order="even", delay_s=150)


def after(
    world: Timeline, seconds: int, state: JudgeState | None = None
) -> tuple[Judgement, group_model.GroupModel]:
    found = judged(world, seconds, state)[-1]
    assert found.model is not None
    return found, found.model


def test_who_reads_late_on_purpose_is_on_time_beyond_that_and_is_shown_as_late_as_it_is() -> None:
    found, model = after(late_world(), 900)

    assert found.state.delays["t"].known
    assert model.lateness.max() < 10
    assert not found.findings
    assert members_behind_s(model) == pytest.approx([150] * 3, abs=10)
    assert behind_s(model, None) == pytest.approx(150, abs=10)
    assert model.lags.shown.sum() == pytest.approx(6 * 30 * 150, rel=0.1)


def test_it_proves_no_member_busy() -> None:
    assert not after(late_world(), 900)[1].capacity.measured.any()


@pytest.mark.slow
def test_a_member_that_gets_later_than_on_purpose_is_late() -> None:
    world = late_world()
    state = after(world, 900)[0].state
    world.speed = {**world.speed, "a": 30.0}
    found, model = after(world, 400, state)

    assert model.lateness[0] > 100
    assert {f.verdict for f in found.findings} == {Verdict.SLOW_MEMBER}


def test_who_reads_sooner_again_is_not_late_on_purpose() -> None:
    world = late_world()
    state = after(world, 900)[0].state
    world.delay_s = 0

    assert state.delays["t"].known
    assert not any(delay.known for delay in judged(world, 120, state)[-1].state.delays.values())


@pytest.mark.slow
def test_a_lateness_that_rises_is_no_purpose() -> None:
    """At 103 % of what the members can do V rises by 9 s in five minutes."""
    world = Timeline([103.0 / 2] * 6, HELD, dict.fromkeys(HELD, 100.0), order="even")
    state, known = None, []
    for _ in range(12):
        state = judged(world, 300, state)[-1].state
        known += [delay.known for delay in state.delays.values()]

    assert known
    assert not any(known)


def test_a_partition_that_stands_makes_its_topic_no_later() -> None:
    """Of a hundred partitions one would raise the lateness of all by so little that it would pass for a delay on purpose."""
    world = Timeline([30.0] * 6, HELD, dict.fromkeys(HELD, 100.0), order="even", stands=frozenset({1}))

    assert judged(world, 900)[-1].state.delays == {}


def delays_after(*late_s: float, gap_s: float = 10.0) -> Delay:
    delay = None
    for at, late in enumerate(late_s):
        delay = late_on_purpose._next(delay, late, START + round(at * gap_s * 1000))
    assert delay is not None
    return delay


def test_it_must_last_for_five_minutes() -> None:
    assert not delays_after(*[150.0] * 30).known
    assert delays_after(*[150.0] * 31) == Delay(150, 150, START, START + 300_000, known=True)


def test_a_pause_is_no_other_delay() -> None:
    steady = [150.0] * 16

    assert delays_after(*steady, 170.0, 165.0, 160.0, *steady).known
    assert delays_after(*steady, *[170.0] * 7, *steady).since > START


def test_a_look_that_is_repeated_adds_nothing() -> None:
    once = delays_after(150.0, 151.0)

    assert late_on_purpose._next(once, 154.0, START + 10_000) == once


def test_what_swings_by_more_than_samples_lie_apart_is_no_purpose() -> None:
    swings = [150.0, 150.0 + STEADY_S + 1] * 40

    assert not delays_after(*swings, gap_s=70).known


def test_where_every_crossing_is_wanted_no_lateness_is_a_purpose_at_once() -> None:
    world = Timeline([60.0, 60.0, 10.0, 10.0, 10.0, 10.0], HELD, dict.fromkeys(HELD, 100.0), order="even")
    literal = Policy(min_behind=0, hold=0)

    assert not any(
        delay.known for one in judged(world, 240, policy=literal) for delay in one.state.delays.values()
    )


@pytest.mark.parametrize("is_open", [True, False])
def test_while_an_incident_is_open_a_lateness_that_stays_is_not_taken_for_a_purpose(is_open: bool) -> None:
    found, model = after(late_world(), 200)
    columns, seen = model.columns, model.seen
    incident = Incident("id", 0, "rebalance", "a", {}, "", 0) if is_open else None
    state = replace(found.state, incident=incident, delays={})

    assert bool(late_on_purpose.learned(columns, seen, state, Policy()).delays) is not is_open


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slow-beside-a-late-topic", "skew-beside-a-late-topic"])
def test_an_illness_beside_a_topic_that_is_read_late_on_purpose_is_called_by_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = load(SICK / f"{name}.yaml", True)
    expected = {str(verdict) for verdict in scenario.expect}

    def first(seeds: range) -> list[set[str]]:
        return [
            set(report.openings[0].verdicts[:1])
            for report in run_many(scenario, tuple(seeds))
            if report.openings
        ]

    assert first(range(3)) == [expected] * 3
    monkeypatch.setattr(late_on_purpose, "as_if_on_time", lambda seen, delays: seen)
    assert first(range(3)) != [expected] * 3
