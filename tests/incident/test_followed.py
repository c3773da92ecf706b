"""What a followed incident is held against: the prediction of the action that was followed, and of no other."""

from __future__ import annotations

import pytest

from kagent.detect.state import Incident
from kagent.incident import followed
from kagent.lag.membership import Roster
from kagent.testing import group_view, member_view

BEFORE = {"a": (0, 1, 2), "b": (3,)}


def roster(held: dict[str, tuple[int, ...]], protocol: str = "range", prefix: str = "id") -> Roster:
    members = [
        member_view(name, member_id=f"{prefix}-{name}", subscriptions=("t",), assigned={"t": partitions})
        for name, partitions in held.items()
    ]
    return Roster.of(group_view("g", members=members, protocol=protocol))


def incident(verdict: str = "rebalance", assignor: str | None = None, members: int | None = None) -> Incident:
    """Its plan moves partition 2 to the second member, and predicts 25 s and a skew of 1.3; the other action, 60 s and 1.1."""
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
        started_with=present.ids,
        assignor=assignor,
        members=members,
        predicted_drain=25.0,
        predicted_skew=1.3,
        other_drain=60.0,
        other_skew=1.1,
    )


@pytest.mark.parametrize(
    ("opened", "now", "predicted"),
    [
        (incident(), roster({"a": (0, 1), "b": (2, 3)}), (25.0, 1.3)),
        (incident(assignor="roundrobin"), roster({"a": (0, 2), "b": (1, 3)}, "roundrobin"), (60.0, 1.1)),
        (incident(members=4), roster({name: (at,) for at, name in enumerate("abcd")}), (60.0, 1.1)),
        (incident("slow_member"), roster(BEFORE, prefix="new"), (None, None)),
    ],
    ids=["the plan", "another assignor", "more members", "a restart"],
)
def test_what_was_followed_is_held_against_its_own_prediction(
    opened: Incident, now: Roster, predicted: tuple[float | None, float | None]
) -> None:
    done = followed.advice(now, opened)

    assert done is not None
    held = followed.promised(now, opened, done)
    assert (held.predicted_drain, held.predicted_skew) == predicted
