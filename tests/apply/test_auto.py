"""`apply: auto` takes the plans of those groups alone whose policy says so, and none twice in a moment."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.apply.attempts import CLAIM, LATCHED, RESET, WITHDRAWN, Attempt, judged, latched
from kagent.apply.auto import AGAIN_AFTER_S, AutoApply, waits
from kagent.apply.preconditions import CannotApply
from kagent.contract.recommendation import Recommendation
from kagent.errors import KafkaError
from kagent.follow.rejoin_budget import Asking, May
from kagent.policy import Policies
from kagent.settings import GroupSettings, Settings

NOW = 1_000_000.0


def plan(group: str = "billing", **changes: Any) -> Recommendation:
    return Recommendation.model_validate({
        "id": "i1", "cluster": "main", "group": group, "status": "open", "verdict": "rebalance",
        "severity": "ticket", "confidence": "high", "reason": "One member holds most.", "group_kind": "consumer",
        "opened_at": 0, "as_of": 1, "valid_until": int(NOW * 1000) + 600_000, "skew": {"now": 2.0},
        "moves": [{"topic": "orders", "partition": 0, "from": "a", "to": "b"}], "move_count": 1,
        "actions": [{"type": "follow_plan", "how": "Follow.", "feasible": "yes"}],
        "basis": {"generation": 1, "digest": "d"},
    } | changes)  # fmt: skip


def auto(clock: list[float], *groups: GroupSettings) -> AutoApply:
    return AutoApply(Settings(), Policies({}, groups), clock=lambda: clock[0])


INFEASIBLE = [{"type": "follow_plan", "how": "Follow.", "feasible": "no"}]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "resolved"},
        {"status": "superseded"},
        {"stale": True},
        {"valid_until": int(NOW * 1000)},
        {"group_kind": "classic_java"},
        {"verdict": "slow_member"},
        {"moves": []},
        {"actions": []},
        {"actions": INFEASIBLE},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_only_an_open_feasible_plan_about_the_spread_of_a_kip_848_group_waits(changes: Any) -> None:
    assert waits(plan(), int(NOW * 1000))
    assert not waits(plan(**changes), int(NOW * 1000))


def test_no_group_is_moved_unless_its_policy_says_auto() -> None:
    assert not auto([NOW]).enabled
    some = auto([NOW], GroupSettings.model_validate({"match": "billing", "apply": "auto"}))
    assert some.enabled
    assert [rec.group for rec in some.due([plan("billing"), plan("orders")])] == ["billing"]


def test_a_bare_off_of_yaml_is_off() -> None:
    assert GroupSettings.model_validate({"match": "*", "apply": False}).model_dump()["apply"] == "off"


def test_a_plan_is_tried_again_after_a_minute_and_a_newer_one_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [NOW]
    some = auto(clock, GroupSettings.model_validate({"match": "*", "apply": "auto"}))

    def refuse(self: AutoApply, rec: Recommendation) -> Any:
        raise CannotApply("not_stable", "Nothing is applied.")

    monkeypatch.setattr(AutoApply, "_apply", refuse)
    assert some.apply(plan()) == "not_stable"
    assert some.due([plan()]) == []
    assert len(some.due([plan(as_of=2)])) == 1
    clock[0] += AGAIN_AFTER_S
    assert len(some.due([plan()])) == 1


def test_a_cluster_that_does_not_answer_is_counted_and_raises_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = auto([NOW], GroupSettings.model_validate({"match": "*", "apply": "auto"}))

    def fail(self: AutoApply, rec: Recommendation) -> Any:
        raise KafkaError("The cluster cannot be reached.")

    monkeypatch.setattr(AutoApply, "_apply", fail)
    assert some.apply(plan()) == "failed"
    assert dict(some.counts) == {"failed": 1}


def attempts(*whats: str) -> list[Attempt]:
    return [Attempt(what, int(NOW * 1000) - 2_000_000 * (9 - n), f"a{n}") for n, what in enumerate(whats)]


def test_a_fourth_claim_in_a_day_latches_and_a_reset_ends_it() -> None:
    three = attempts(CLAIM, CLAIM, CLAIM)
    assert judged(three, NOW, Asking()) is May.LATCH
    assert not latched(three)
    assert latched([*three, Attempt(LATCHED, int(NOW * 1000))])
    assert judged([*three, Attempt(LATCHED, 0), Attempt(RESET, 0)], NOW, Asking()) is May.ASK


def test_a_claim_that_was_withdrawn_counts_for_nothing() -> None:
    claimed = [Attempt(CLAIM, int(NOW * 1000), "x")]
    assert judged(claimed, NOW, Asking()) is May.WAIT
    assert judged([*claimed, Attempt(WITHDRAWN, int(NOW * 1000), "x")], NOW, Asking()) is May.ASK
