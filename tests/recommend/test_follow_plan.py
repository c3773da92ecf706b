"""`follow_plan` is feasible where kagent's assignor runs, says how it is carried out, and names topics as a broker does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kagent.contract.recommendation import Action, ActionType, Recommendation, Status, Verdict
from kagent.recommend.advice import caught_up
from kagent.recommend.moving_actions import LITTLE_LEFT
from kagent.recommend.render import compose, diagnose

LATE = {"end": 10_000_000, "rate": 100.0, "lag": 400_000, "age": 1, "moved": 1}
FINE = {"end": 10_000_000, "rate": 100.0, "lag": 0, "age": 1, "moved": 1}
SKEWED = {"t": [LATE] * 4 + [FINE] * 4}
HALVES = {"m0": {"t": [0, 1, 2, 3]}, "m1": {"t": [4, 5, 6, 7]}}
ID = "srXqDBVKTVGu5o8K6EONgg"


def message(group: Any, options: str = "", **more: Any) -> Recommendation:
    model, found = group(SKEWED, HALVES, ids={"t": (ID, ID)}, **more).looked()
    model = replace(model, seen=replace(model.seen, command_options=options))
    # Late for too short to be judged: the plan is that of a rebalance.
    return compose(diagnose(model, replace(found[0], verdict=Verdict.REBALANCE)), "i", 0, Status.OPEN)


def follow(made: Recommendation) -> Action:
    return next(action for action in made.actions if action.type is ActionType.FOLLOW_PLAN)


def test_a_kip_848_group_on_kagents_assignor_is_told_to_apply(group: Any) -> None:
    made = message(group, type="consumer", protocol="kagent")
    assert made.actions[0].type is ActionType.FOLLOW_PLAN
    assert made.actions[0].feasible == "yes"
    assert made.actions[0].how.endswith("Run `kagent apply orders --cluster main`.")


def test_its_command_has_what_reaches_the_cluster(group: Any) -> None:
    options = "--config '/etc/my kagent.yaml' --cluster main"
    made = message(group, options, type="consumer", protocol="kagent")

    assert made.actions[0].how.endswith(f"Run `kagent apply orders {options}`.")
    assert made.actions[0].params == {"options": options}


def test_one_on_the_brokers_default_is_told_how_to_find_out(group: Any) -> None:
    action = follow(message(group, type="consumer", protocol=None))
    assert action.feasible == "unknown"
    assert "kagent assignor" in action.how
    assert "--describe --state" in (action.reason or "")


def test_a_java_group_on_kagents_assignor_is_told_to_follow(group: Any) -> None:
    assert follow(message(group, protocol="kagent")).feasible == "yes"
    assert follow(message(group, protocol="range")).feasible == "no"


def test_only_recommendations_about_kip_848_groups_have_topic_ids(group: Any) -> None:
    """A broker's assignor knows topics by their ids alone; other messages stay as short as they were."""
    assert message(group, type="consumer", protocol="kagent").topic_ids == {"t": ID}
    assert message(group).topic_ids == {}


def test_a_plan_without_a_bound_says_why(group: Any) -> None:
    model, found = group(SKEWED, HALVES, protocol="kagent").looked()
    diagnosis = diagnose(model, replace(found[0], verdict=Verdict.REBALANCE))
    action = follow(compose(diagnosis, "i", 0, Status.OPEN))

    assert action.gain.get("after") is None
    assert str(action.reason).startswith("its assignor follows kagent; ")
    assert "is not known, as no member's speed was measured yet" in str(action.reason)
    assert "cannot be promised, as " + LITTLE_LEFT in caught_up({"likely": 600.0, "after": None}, LITTLE_LEFT)
