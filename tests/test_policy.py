"""The policy refuses what cannot be and finds the group's own."""

from __future__ import annotations

import pytest

from kagent.errors import SettingsError
from kagent.policy import Policies, Policy, make_policy
from kagent.settings import GroupSettings


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"threshold": 1.0}, "threshold"),
        ({"lower_threshold": 2.0}, "lower_threshold"),
        ({"evidence": 0}, "evidence"),
        ({"min_gain": 1.5}, "min_gain"),
        ({"max_moves": 0}, "max_moves"),
        ({"reset_policy": "sometimes"}, "reset_policy"),
        ({"severity": {"stalled": "loud"}}, "severity"),
        ({"settle": -1}, "settle"),
        ({"treshold": 2}, "treshold"),
        ({"threshold": "many"}, "threshold"),
        ({"kind": "spark"}, "kind"),
        ({"apply": "always"}, "apply"),
    ],
)
def test_what_cannot_be_is_refused_by_name(values: dict[str, object], word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        make_policy(values)


@pytest.mark.parametrize(("threshold", "lower"), [(1.5, 1.25), (1.2, 1.2), (3.0, 1.25)])
def test_a_lower_threshold_by_default_is_never_above_the_threshold(threshold: float, lower: float) -> None:
    policies = Policies({}, [entry(match="a", threshold=threshold)])

    assert make_policy({"threshold": threshold}).lower_threshold == lower
    assert policies("a").lower_threshold == lower
    assert entry(match="a", threshold=threshold).model_dump()["lower_threshold"] == lower


def test_text_from_the_environment_is_read_as_the_field_wants_it() -> None:
    policy = make_policy({"threshold": "2", "stateful": "yes", "max_moves": "7", "co_partitioned": "false"})

    assert (policy.threshold, policy.stateful, policy.max_moves, policy.co_partitioned) == (
        2.0,
        True,
        7,
        False,
    )


def test_the_first_pattern_that_matches_holds_on_top_of_the_base() -> None:
    policies = Policies(
        {"threshold": 2, "owner": "platform"},
        [
            GroupSettings.model_validate({"match": "/orders-[0-9]+/", "owner": "orders"}),
            GroupSettings.model_validate({"match": "orders-*", "threshold": 3}),
        ],
    )

    assert (policies("orders-12").owner, policies("orders-12").threshold) == ("orders", 2.0)
    assert (policies("orders-x").owner, policies("orders-x").threshold) == ("platform", 3.0)
    assert policies("else") == Policy(threshold=2.0, owner="platform")


TOOLS = [
    "kagent-worker",
    "console-consumer-12",
    "connect-cluster",
    "_confluent-x",
    "spark-kafka-source-1",
    "__x",
]


def entry(**values: object) -> GroupSettings:
    return GroupSettings.model_validate(values)


@pytest.mark.parametrize("group", TOOLS)
def test_groups_of_tools_are_ignored_by_default(group: str) -> None:
    assert Policies()(group).ignore


@pytest.mark.parametrize("group", TOOLS)
def test_a_group_of_a_tool_is_judged_if_its_entry_says_that_it_is_not_ignored(group: str) -> None:
    assert not Policies(groups=[entry(match=group, ignore=False)])(group).ignore


@pytest.mark.parametrize("group", [*TOOLS, "orders-test-1"])
@pytest.mark.parametrize("match", ["*", "/.*/"])
def test_an_entry_about_something_else_leaves_ignored_groups_ignored(group: str, match: str) -> None:
    policies = Policies(groups=[entry(match=match, owner="sre")], ignore=["orders-test-*"])

    assert policies(group) == Policy(owner="sre", ignore=True)
    assert policies("orders-1") == Policy(owner="sre")


def test_only_the_first_entry_that_matches_says_whether_an_ignored_group_is_judged() -> None:
    entries = [entry(match="orders-*", owner="orders"), entry(match="*", ignore=False)]
    policies = Policies(groups=entries, ignore=["orders-test-*"])

    assert policies("orders-test-1").ignore
    assert not policies("console-consumer-1").ignore


def test_what_the_policy_for_all_ignores_is_judged_where_an_entry_says_so() -> None:
    policies = Policies(
        {"ignore": True}, [entry(match="orders-*", ignore=False), entry(match="b*", owner="b")]
    )

    assert [policies(name).ignore for name in ("orders-1", "b1", "c1")] == [False, True, True]
