"""Opens when it should, stays silent when it should, one id from first to last."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kagent.advice.state import JudgeState
from kagent.contract.recommendation import Status
from kagent.simulator import run
from kagent.simulator.scenario import parse

EIGHT_TO_ONE = {"orders": {"partitions": 12, "inflow": 5000, "spread": "1:8", "cost": 0.0002}}
SKEWED = {"orders": {"partitions": 12, "inflow": 2000, "spread": [8, 8, 8, 8] + 8 * [1], "cost": 0.001}}
EVEN = {"orders": {"partitions": 12, "inflow": 2000, "cost": 0.0002}}


def scenario(name: str, topics: dict[str, Any], **more: Any) -> Any:
    return parse({"name": name, "topics": topics, "members": 3, "hours": 0.5, **more})


@pytest.mark.parametrize("commit", [1, 5, 60])
def test_a_caught_up_group_with_unequal_inflow_never_opens(commit: float) -> None:
    report = run(scenario("healthy", EIGHT_TO_ONE, commit=commit), seed=commit)

    assert report.messages == ()


def test_static_skew_opens_once_as_rebalance_and_keeps_its_id() -> None:
    report = run(scenario("skewed", SKEWED), seed=1)

    assert [o.verdicts for o in report.openings] == [("rebalance",)]
    assert len({m.id for m in report.messages}) == 1
    first = report.messages[0]
    assert first.status is Status.OPEN
    assert first.skew.after is not None
    assert first.skew.now is not None
    assert first.skew.after < first.skew.now
    assert first.moves
    assert first.actions[0].feasible == "yes"


def test_followed_advice_resolves_with_its_outcome() -> None:
    report = run(scenario("followed", SKEWED, follow=True, kind="classic_python", hours=1), seed=2)

    statuses = [m.status for m in report.messages]
    last = report.messages[-1]
    assert statuses[0] is Status.OPEN
    assert Status.SUPERSEDED in statuses
    assert statuses[-1] is Status.RESOLVED
    assert str(last.resolution) == "followed"
    assert last.outcome is not None
    assert last.outcome.measured_skew is not None
    assert last.outcome.measured_skew < 1.25
    assert len({m.id for m in report.messages}) == 1


def test_where_one_key_holds_most_no_move_is_advised_first() -> None:
    hot = {"orders": {"partitions": 6, "inflow": 2000, "spread": [20, 1, 1, 1, 1, 1], "cost": 0.001}}
    report = run(scenario("hot", hot), seed=3)

    assert report.openings[0].verdicts[0] == "hot_partition"
    assert str(report.messages[0].actions[0].type) == "add_partitions_or_rekey"


@pytest.mark.parametrize(
    ("verdict", "topics", "event"),
    [
        ("slow_member", {**EVEN, "orders": {**EVEN["orders"], "cost": 0.001}}, {"do": "speed", "value": 0.2}),
        ("stuck_member", EVEN, {"do": "hang"}),
        ("unstable", EVEN, {"do": "storm", "every": 60}),
    ],
)
def test_one_bad_member_is_named_for_what_it_is(verdict: str, topics: Any, event: dict[str, Any]) -> None:
    events = [{"at": 60, "member": "m1", **event}]
    report = run(scenario("bad", topics, events=events, expect=verdict, onset=60, members=4), seed=4)

    assert report.openings[0].verdicts[0] == verdict
    assert report.right


def test_a_poison_record_is_stalled_and_never_a_matter_of_the_spread() -> None:
    events = [{"at": 60, "do": "hold", "topic": "orders", "partition": 1}]
    report = run(scenario("poison", EVEN, events=events, expect="stalled", onset=60), seed=5)

    assert [o.verdicts for o in report.openings] == [("stalled",)]


def test_the_state_is_plain_json() -> None:
    state = JudgeState(first_seen=1)

    assert JudgeState.from_row(orjson.loads(orjson.dumps(state.to_row()))) == state
