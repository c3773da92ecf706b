"""What another number of members would gain, held against a group that then runs that number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.contract.recommendation import Action
from kagent.incident.evaluate import confirm
from kagent.policy import Policy
from kagent.recommend.count_forecast import gain_of_count
from kagent.recommend.render import diagnose
from tests.fixtures.findings import FINE, FOUR, LATE
from tests.fixtures.timeline import Timeline, judged

Make = Callable[..., Any]
HELD = {"m0": (0, 1, 2, 3), "m1": (4, 5, 6, 7), "m2": (8, 9, 10, 11)}
CAUGHT_UP = 300
"""Records: what arrives between two commits."""


def too_few() -> tuple[Timeline, Action]:
    """A group whose three members process less than arrives, and the number that is advised once that is reported."""
    world = Timeline([60.0] * 12, HELD, dict.fromkeys(HELD, 200.0))
    state = None
    for _ in range(12):
        found = judged(world, 120, state)[-1]
        state = found.state
        if found.candidate is not None:
            opened = confirm(found.candidate, world.observe(), state, Policy()).messages[0]
            return world, next(a for a in opened.actions if a.type == "set_member_count")
    raise AssertionError("nothing was reported")


@pytest.mark.slow
def test_the_forecast_holds_for_a_group_that_then_runs_that_number() -> None:
    world, advised = too_few()
    members = advised.params["members"]
    names = [f"m{n}" for n in range(members)]
    world.held = {name: tuple(range(at, 12, members)) for at, name in enumerate(names)}
    world.speed, world.left = dict.fromkeys(names, 200.0), dict.fromkeys(names, 0.0)
    world.uncommitted, world.at = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    world.idle = {name: set() for name in names}
    began = world.second
    while sum(world.backlog(name) for name in names) > CAUGHT_UP:
        world.run(1)
    took_s = world.second - began

    likely, after = advised.gain["likely"], advised.gain["after"]
    assert likely is not None
    assert after is not None
    assert advised.gain["now"] is None
    assert took_s == pytest.approx(likely, rel=0.2)
    assert took_s <= after
    assert "the group has likely caught up after " in str(advised.reason)
    assert ", in 19 of 20 cases within " in str(advised.reason)


def test_nothing_is_promised_where_the_assignor_may_give_one_member_too_much(group: Make) -> None:
    hot, cold = {**LATE, "rate": 150}, {**LATE, "rate": 20, "lag": 0}
    model = group({"t": [*4 * [hot], *4 * [cold]]}, FOUR)
    model, _ = model.looked(members=model.at_work(dict.fromkeys(FOUR, 200), list(FOUR)))
    gain = gain_of_count(model, 4)

    # Two hot partitions on one member are more than its speed; dealt out one by one they are not.
    assert gain["likely"] is not None
    assert gain["after"] is None


def test_without_a_measured_speed_the_action_says_that_it_is_not_known(group: Make) -> None:
    uneven = {"t": [LATE, LATE, *6 * [FINE]]}
    model, found = group(uneven, FOUR).looked(Policy(min_behind=0, hold=0, threshold=1.25))
    advised = next(a for a in diagnose(model, found[0]).actions if a.type == "set_member_count")

    assert advised.gain == {}
    assert str(advised.reason).endswith("is not known, as no member's speed was measured yet")
