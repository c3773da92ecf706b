"""What the demo makes of what it saw: when it has seen all, and what it calls a failure."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from kagent.contract.recommendation import (
    Action,
    ActionType,
    Basis,
    GroupKind,
    Move,
    Outcome,
    Recommendation,
    Resolution,
    Severity,
    Skew,
    Status,
    Verdict,
)
from kagent.contract.words import ACTIONS
from kagent.demo.scene import GroupLag, MemberLag, Scene
from kagent.demo.screen import live, plain, summary
from kagent.demo.topology import GROUPS

PLAN = {
    "orders-a-1/h": [("orders", 0), ("orders", 1)],
    "orders-a-2/h": [("orders", 2), ("orders", 5)],
    "orders-a-3/h": [("orders", 3), ("orders", 6)],
    "orders-a-4/h": [("orders", 4), ("orders", 7)],
}
SENT = {
    "parcels-a-1/h": [("parcels", 0), ("parcels", 1)],
    "parcels-a-2/h": [("parcels", p) for p in range(2, 8)],
}
PLANS = {"orders-a": PLAN, "orders-b": PLAN, "parcels-a": SENT}
MOVE = Move(topic="orders", partition=2, source="orders-a-1/h", to="orders-a-2/h")


def said(group: str, verdict: Verdict = Verdict.REBALANCE, **more: Any) -> Recommendation:
    values = {
        "status": Status.OPEN,
        "moves": [MOVE] if verdict is Verdict.REBALANCE else [],
        "move_count": 3,
        "assignment": PLANS.get(group) if verdict is Verdict.REBALANCE else None,
    }
    return Recommendation(
        id=group,
        cluster="demo",
        group=group,
        verdict=verdict,
        severity=Severity.TICKET,
        confidence="high",
        reason="because",
        group_kind=GroupKind.CLASSIC_PYTHON,
        opened_at=0,
        as_of=0,
        valid_until=0,
        skew=Skew(now=3.0),
        basis=Basis(generation=1, digest="d"),
        **(values | more),
    )


def lag(*members: tuple[int, float]) -> GroupLag:
    """Members by (partitions, seconds behind)."""
    made = tuple(MemberLag(f"m{n}", held, int(s * 10), s) for n, (held, s) in enumerate(members))
    return GroupLag(made, 1.0)


BEFORE = lag((5, 40.0), (1, 0.0), (1, 0.0), (1, 0.0))
AFTER = lag((2, 1.0), (2, 2.0), (2, 0.0), (2, 0.0))
DRAINING = lag((2, 1.0), (2, 30.0), (2, 0.0), (2, 0.0))
SENT_AFTER = lag((2, 1.0), (6, 0.0))
RESOLVED: dict[str, Any] = {
    "status": Status.RESOLVED,
    "resolution": Resolution.FOLLOWED,
    "outcome": Outcome(),
}


def followed(twin: GroupLag = BEFORE) -> Scene:
    """Both groups that follow opened, followed at 10 and were seen to have drained at 45."""
    scene = Scene()
    for name in ("orders-a", "parcels-a"):
        scene.hear(said(name))
        scene.follow(name, 10.0)
    scene.hear(said("hot", Verdict.HOT_PARTITION))
    scene.look({"orders-a": AFTER, "orders-b": twin, "parcels-a": SENT_AFTER, "parcels-b": BEFORE}, 45.0)
    for name in ("orders-a", "parcels-a"):
        scene.hear(said(name, **RESOLVED))
    return scene


def test_a_demo_in_which_all_went_well_has_no_failure() -> None:
    scene = followed()

    assert scene.finished
    assert scene.failures() == []
    assert {name: one.drained_after for name, one in scene.followed.items()} == {
        "orders-a": 35.0,
        "parcels-a": 35.0,
    }


@pytest.mark.parametrize("name", ["orders-a", "parcels-a"])
def test_an_incident_that_did_not_end_as_followed_is_a_failure(name: str) -> None:
    scene = followed()
    scene.hear(said(name, **RESOLVED | {"resolution": Resolution.DRAINED}))

    assert scene.failures() == [f"the incident of {name} was resolved as drained, not as followed"]


def test_the_drain_is_measured_only_once_the_plan_is_in_effect() -> None:
    scene = Scene()
    scene.hear(said("orders-a"))
    scene.follow("orders-a", 10.0)

    def drained_after() -> float | None:
        return scene.followed["orders-a"].drained_after

    scene.look({"orders-a": lag((5, 0.0), (1, 0.0), (1, 0.0), (1, 0.0))}, 20.0)
    assert drained_after() is None, "the old assignment, by chance without lag"
    scene.look({"orders-a": DRAINING}, 30.0)
    assert drained_after() is None
    scene.look({"orders-a": AFTER}, 40.0)
    scene.look({"orders-a": AFTER}, 50.0)
    assert drained_after() == 30.0


def test_an_incident_of_a_healthy_group_is_a_failure() -> None:
    scene = followed()
    scene.hear(said("healthy"))

    assert any("an incident opened for healthy" in failure for failure in scene.failures())


def test_an_incident_of_a_healthy_group_stays_a_failure_when_it_is_resolved() -> None:
    scene = followed()
    scene.hear(said("healthy"))
    scene.hear(said("healthy", status=Status.RESOLVED))

    assert scene.failures()


def test_a_twin_that_drained_as_fast_is_a_failure() -> None:
    assert followed(twin=AFTER).failures() == ["the twin of orders-a drained as fast without the advice"]


def test_a_demo_in_which_nothing_was_said_failed() -> None:
    found = " ".join(Scene().failures())

    assert "no recommendation came for orders-a" in found
    assert "no message about the hot partition" in found


def test_advice_that_was_applied_and_did_not_drain_is_a_failure() -> None:
    scene = followed()
    scene.followed["orders-a"] = replace(scene.followed["orders-a"], drained_after=None)

    assert "orders-a did not drain after it had applied the advice" in scene.failures()


def test_a_wrong_verdict_on_the_hot_partition_is_a_failure() -> None:
    scene = followed()
    scene.hear(said("hot", Verdict.UNDER_PROVISIONED))

    assert scene.failures() == ["the hot partition was called too few members"]


def test_advice_without_moves_or_already_resolved_is_not_applied() -> None:
    scene = Scene()
    assert scene.advice("orders-a") is None
    scene.hear(said("orders-a", moves=[]))
    assert scene.advice("orders-a") is None
    scene.hear(said("orders-a", status=Status.RESOLVED))
    assert scene.advice("orders-a") is None


def test_the_table_at_the_end_has_a_row_for_every_group_in_any_state() -> None:
    for scene in (Scene(), followed()):
        _, _, *rows = summary(scene, None).plain.splitlines()
        assert [row.split()[0] for row in rows] == [group.name for group in GROUPS]


@pytest.mark.parametrize("width", [80, 120, 200, None])
def test_the_table_at_the_end_fits(width: int | None) -> None:
    longest = ActionType.ADD_PARTITIONS_OR_REKEY
    scene = followed(twin=lag((5, 1234.0), (1, 0.0)))
    scene.hear(said("orders-b", actions=[Action(type=ActionType.FOLLOW_PLAN, how="so", feasible="yes")]))
    scene.opened["hot"] = said("hot", actions=[Action(type=longest, how="so", feasible="yes")])

    title, header, *rows = summary(scene, width).plain.splitlines()

    assert max(map(len, (title, header, *rows))) <= (width or 200)
    assert all(word in header for word in ("GROUP", "VERDICT", "ACTION", "TAKEN", "PREDICTED", "MEASURED"))
    assert rows[0].split()[-4:] == ["35", "s", "1234", "s"]
    assert "add partitions" in rows[-1]
    assert ACTIONS[longest] in rows[-1] or width == 80


def test_a_line_without_a_terminal_says_how_far_every_member_is_behind() -> None:
    scene = followed()

    assert "orders-a 1/2/0/0 s behind, max/mean lag 1.00" in plain(scene)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_live_table_fits_and_keeps_the_group_how_late_and_what_is_said(width: int) -> None:
    scene = followed()
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(live(scene, 120.0, width))
    shown = console.file.getvalue()  # type: ignore[attr-defined]

    assert max(map(len, shown.splitlines())) <= width
    assert "ends if nothing new comes within 2 min" in shown
    for name in ("orders-a", "orders-b", "parcels-a", "parcels-b", "hot"):
        assert sum(line.startswith(f"{name} ") for line in shown.splitlines()) == 1
    late = next(line for line in shown.splitlines() if line.startswith("orders-b"))
    assert "40 s" in late
    assert "resolved: uneven work" in shown


def test_a_demo_that_is_kept_names_no_end() -> None:
    console = Console(file=StringIO(), width=80)
    console.print(live(Scene(), None, 80))

    assert console.file.getvalue().startswith("runs until Ctrl-C")  # type: ignore[attr-defined]
