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


@pytest.mark.parametrize("group", ["kagent-worker", "console-consumer-12", "connect-cluster", "_confluent-x"])
def test_groups_of_tools_are_ignored_by_default(group: str) -> None:
    assert Policies()(group).ignore
    assert not Policies(groups=[GroupSettings.model_validate({"match": group})])(group).ignore
