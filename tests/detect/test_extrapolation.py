"""A lateness beyond the known log ends rests on the inflow of now: what changes it alone is no growth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kagent.detect import spells
from kagent.detect.evidence import LatenessLimits, enough_growth
from kagent.detect.extrapolation import may_be_on_purpose, rescaled
from kagent.detect.group_model import GroupModel
from kagent.detect.lateness_sample import LatenessSample
from kagent.detect.state import MemberState, Older, Spell
from kagent.policy import Policy
from kagent.simulator import load, run_many
from tests.fixtures.findings import FINE, LATE

Make = Callable[..., Any]
Partition = Mapping[str, Any]
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


BEGUN = spell((500.0, 500.0), Older(400.0, 4.0))
BOTH = {f"m{n}": {"retry": [n], "main": [n]} for n in range(2)}


def with_spell(model: GroupModel, spell: Spell | None) -> GroupModel:
    """The model in which each member has this spell."""
    members = dict.fromkeys(model.names, MemberState(spell=spell))
    return replace(model, state=replace(model.state, members=members))


@pytest.mark.parametrize(
    ("retry", "main", "spell", "may_be"),
    [
        ([LATE, LATE], [FINE, FINE], BEGUN, True),
        ([LATE, FINE], [FINE, FINE], BEGUN, False),
        ([LATE, LATE], [LATE, FINE], BEGUN, False),
        ([LATE, LATE], [FINE, FINE], replace(BEGUN, older={}), False),
        ([LATE, LATE], [FINE, FINE], None, False),
    ],
    ids=["everyone reads it late", "one reads it late", "another is late too", "measured", "not later"],
)
def test_what_everyone_reads_late_beside_a_topic_on_time_may_be_late_on_purpose_until_it_is_measured(
    group: Make, retry: list[Partition], main: list[Partition], spell: Spell | None, may_be: bool
) -> None:
    model, _ = group({"retry": retry, "main": main}, BOTH).looked()
    begun = with_spell(model, spell)

    assert may_be_on_purpose(begun, begun.names.index("app-m0/10.0.0.1")) is may_be


def test_a_topic_that_its_members_hold_alone_may_be_late_on_purpose_too(group: Make) -> None:
    members = {"m0": {"retry": [0], "main": [0]}, "m1": {"retry": [1]}}
    model, _ = group({"retry": [LATE, LATE], "main": [FINE]}, members).looked()
    begun = with_spell(model, BEGUN)

    assert may_be_on_purpose(begun, begun.names.index("app-m0/10.0.0.1"))
    assert not may_be_on_purpose(begun, begun.names.index("app-m1/10.0.0.1"))


@pytest.mark.slow
def test_a_topic_that_is_late_on_purpose_beside_one_on_time_is_not_told_at_first_sight() -> None:
    """Its waiting records make the members look busy all the time, from which false costs of records follow. In one of these starts half
    as much again arrives for one partition as ten minutes before."""
    scenario = replace(load(BESIDE, True), hours=0.3)
    reports = run_many(scenario, tuple(range(701_001, 701_015)))

    assert not [report.openings for report in reports if report.openings]
