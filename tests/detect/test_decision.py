"""What opens, and whose looks count for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kagent.detect.decision import decide
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Incident
from tests.fixtures.findings import CALM, FOUR, HOT, LATE, leading

Make = Callable[..., Any]


def draining_at_best_in(model: GroupModel, seconds: float) -> GroupModel:
    """The model with so much speed at most that an optimist sees every backlog drain in this time."""
    rate = model.capacity.rate
    fast = rate.high.max() + model.inflow.low + model.work / seconds
    return replace(model, capacity=replace(model.capacity, rate=replace(rate, high=fast)))


def test_what_opens_is_late_at_that_look_for_an_optimist_too(group: Make) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    model, found = made.looked(members=made.at_work({"m0": 500, "m1": 500}, ["m0"]))
    soon = draining_at_best_in(model, 100)

    assert leading(found) == "rebalance"
    # Within `hold` it may be over, although its spell still runs.
    assert [f.missing for f in decide(soon).findings] == ["evidence"]


def test_what_opens_still_gets_later_at_that_look_and_what_is_open_need_not(group: Make) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    known = made.at_work({"m0": 500, "m1": 500}, ["m0"])
    (name,) = (name for name, member in known.items() if member.spell)
    (*_, (last, _)) = known[name].lateness
    # It was ten times as late a minute ago as it is now.
    known[name] = replace(known[name], lateness=((last - 80_000, 9000.0), (last, 5000.0)), backlog=None)
    model, found = made.looked(members=known)
    reported = replace(
        model, state=replace(model.state, incident=Incident("i", 0, "rebalance", name, {}, "", 0))
    )

    assert [f.missing for f in found] == ["evidence"]
    assert [f.missing for f in decide(reported).findings] == [None]


def test_a_look_that_is_unsure_is_no_vote(group: Make) -> None:
    """Each member gets a little more than it can do, and for an optimist less."""
    made = group({"t": 8 * [{**LATE, "lag": 7_000}]}, FOUR)
    known = made.at_work(dict.fromkeys(FOUR, 199.5), ["m0"], "under_provisioned")
    model, found = made.looked(members=known)
    (name,) = (name for name, member in known.items() if member.spell)

    assert [f.missing for f in found] == ["unsure"]
    assert model.state.members[name].spell.votes == known[name].spell.votes
