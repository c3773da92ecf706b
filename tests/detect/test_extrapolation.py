"""A lateness beyond the known log ends rests on the inflow of now: what changes it alone is no growth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kagent.detect import spells
from kagent.detect.evidence import LatenessLimits, enough_growth
from kagent.detect.extrapolation import rescaled
from kagent.detect.lateness_sample import LatenessSample
from kagent.detect.state import MemberState, Older, Spell
from kagent.policy import Policy
from kagent.simulator import load, run_many

LIMITS = LatenessLimits.of(Policy())
NOW = 1_700_000_000_000
BESIDE = Path(__file__).parents[2] / "benchmarks/scenarios/healthy/late-topic-beside-main.yaml"


def spell(retry: tuple[float, float], older: Older | None) -> Spell:
    return Spell(
        NOW,
        NOW + 90_000,
        90.0,
        grown_s=90.0,
        commits=9,
        records=900,
        topics={"main": (0.0, 1.0), "retry": retry},
        older={"retry": older} if older else {},
    )


def sample(retry_s: float, older: Older | None, unsure_s: float = 0.0) -> LatenessSample:
    return LatenessSample(
        time=NOW + 95_000,
        lateness=99.0,
        late=True,
        drain=float("inf"),
        gap=5.0,
        records=100,
        trend=99.0,
        topics={"main": 2.0, "retry": retry_s},
        older={"retry": older} if older else {},
        unsure={"retry": unsure_s},
    )


def next_spell(before: Spell, now: LatenessSample) -> Spell:
    known = rescaled(MemberState(spell=before, lateness=((NOW + 90_000, 98.0),)), now)
    measured = spells.measured(known.spell, now)
    after = spells.next_spell(replace(known, spell=measured), now, LIMITS)
    assert after is not None
    return after


def is_enough(found: Spell) -> bool:
    return enough_growth(MemberState(spell=found, lateness=((NOW + 95_000, 99.0),)), 5, 60, LIMITS)


def test_a_topic_is_held_against_its_beginning_by_the_inflow_that_is_known_now() -> None:
    """At 4 records/s, 400 s of the beginning were; at 2 records/s, the same records are 800 s."""
    after = next_spell(spell((500.0, 500.0), Older(400.0, 4.0)), sample(830.0, Older(730.0, 2.0)))

    assert after.topics["retry"] == (900.0, 830.0)
    assert after.older["retry"] == Older(800.0, 2.0)
    assert not is_enough(after)


def test_a_topic_must_be_later_by_more_than_the_unknown_stretch_may_be_off() -> None:
    before = spell((500.0, 500.0), Older(400.0, 4.0))

    assert is_enough(next_spell(before, sample(560.0, Older(350.0, 4.0), unsure_s=50.0)))
    assert not is_enough(next_spell(before, sample(560.0, Older(350.0, 4.0), unsure_s=58.0)))


def test_once_a_topic_is_measured_it_is_held_against_that() -> None:
    after = next_spell(spell((500.0, 500.0), Older(400.0, 4.0)), sample(600.0, None))

    assert after.topics["retry"] == (600.0, 600.0)
    assert after.older == {}
    assert not is_enough(after)


@pytest.mark.slow
def test_a_topic_that_is_late_on_purpose_beside_one_on_time_is_hardly_ever_told_at_first_sight() -> None:
    """Its waiting records make the members look busy all the time, from which false costs of records follow. In one of these starts half
    as much again arrives for one partition as ten minutes before, which nothing that was seen tells from a member that is too slow."""
    scenario = replace(load(BESIDE, True), hours=0.3)
    reports = run_many(scenario, tuple(range(701_001, 701_015)))

    assert sum(bool(report.openings) for report in reports) <= 1
