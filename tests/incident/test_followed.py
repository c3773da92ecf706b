"""What a followed incident is held against: the prediction of the action that was followed, and of no other."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kagent.detect.state import Incident, OtherAction
from kagent.incident.followed import Prediction, followed
from kagent.lag.membership import Roster
from kagent.testing import group_view, member_view

BEFORE = {"a": (0, 1, 2), "b": (3,)}


def roster(held: Mapping[str, tuple[int, ...]], protocol: str = "range", prefix: str = "id") -> Roster:
    members = [
        member_view(name, member_id=f"{prefix}-{name}", subscriptions=("t",), assigned={"t": partitions})
        for name, partitions in held.items()
    ]
    return Roster.of(group_view("g", members=members, protocol=protocol))


def replaced() -> Roster:
    """Another member in the place of the first."""
    members = [
        member_view(name, member_id=id_, subscriptions=("t",), assigned={"t": partitions})
        for name, id_, partitions in (("b", "id-b", (3,)), ("c", "new-c", (0, 1, 2)))
    ]
    return Roster.of(group_view("g", members=members))


def incident(verdict: str = "rebalance", *others: OtherAction) -> Incident:
    """Its plan moves partition 2 to the second member, and predicts 25 s and a skew of 1.3."""
    present = roster(BEFORE)
    return Incident(
        id="1",
        opened_at=0,
        verdict=verdict,
        member=present.names[0],
        message={},
        digest="",
        sent_at=0,
        plan=(("t", 2, present.names[1]),),
        others=others,
        started_with=present.ids,
        predicted_drain=25.0,
        predicted_skew=1.3,
    )


SWITCH, SCALE = OtherAction(assignor="roundrobin", drain=60.0, skew=1.1), OtherAction(members=4, drain=90.0)
BOTH = OtherAction("roundrobin", 4, drain=30.0)
PLAN_HELD, DEALT = {"a": (0, 1), "b": (2, 3)}, {"a": (0, 2), "b": (1, 3)}
FOUR = {name: (at,) for at, name in enumerate("abcd")}


@pytest.mark.parametrize(
    ("opened", "now", "predicted"),
    [
        (incident("rebalance", SWITCH, SCALE), roster(PLAN_HELD), Prediction(25.0, 1.3)),
        (incident("rebalance", SWITCH, SCALE), roster(DEALT, "roundrobin"), Prediction(60.0, 1.1)),
        (incident("rebalance", SCALE, SWITCH), roster(DEALT, "roundrobin"), Prediction(60.0, 1.1)),
        (incident("rebalance", SWITCH, SCALE), roster(FOUR), Prediction(90.0)),
        (incident("slow_member"), roster(BEFORE, prefix="new"), Prediction()),
        (incident("slow_member"), roster({"b": (0, 1, 3)}), None),
        (incident("slow_member"), replaced(), Prediction()),
        (incident("slow_member"), roster(PLAN_HELD), Prediction(25.0, 1.3)),
        (incident("slow_member"), roster(PLAN_HELD, prefix="new"), Prediction(25.0, 1.3)),
        # Both that were advised together, or neither.
        (incident("rebalance", BOTH), roster(FOUR, "roundrobin"), Prediction(30.0)),
        (incident("rebalance", BOTH), roster(FOUR), None),
        (incident("rebalance", BOTH), roster(DEALT, "roundrobin"), None),
        (incident("rebalance", SWITCH, SCALE), roster(DEALT), None),
        (incident("rebalance", SWITCH, SCALE), roster(BEFORE, prefix="new"), None),
    ],
    ids=[
        "the plan",
        "another assignor",
        "another assignor as the last action",
        "more members",
        "a restart",
        "a member that left: it may have been expelled",
        "a new pod in its place",
        "the plan in place of a restart",
        "the plan by a restart",
        "both at once",
        "more members without the assignor",
        "the assignor without more members",
        "another assignment",
        "a restart where none was advised",
    ],
)
def test_what_was_followed_is_held_against_its_own_prediction(
    opened: Incident, now: Roster, predicted: Prediction | None
) -> None:
    assert followed(now, opened) == predicted
