"""Only kagent's own groups are left out: a team's groups may begin as its topics do."""

from __future__ import annotations

import pytest

from kagent.group_pattern import matches
from kagent.own_groups import is_own, patterns
from kagent.settings import Settings, Topics

OWN = ("acme", "acme-pipeline-7f-executor", "acme-history-1", "acme-keys", "acme-subscriber-2")


@pytest.mark.parametrize("group", [*OWN, "acme-orders", "acmes", "orders"])
def test_the_name_decides_alike_for_the_pipeline_and_for_policies(group: str) -> None:
    assert is_own("acme", group) is (group in OWN)
    assert any(matches(pattern, group) for pattern in patterns("acme")) is (group in OWN)


@pytest.mark.parametrize(("prefix", "app"), [("kagent-", "kagent"), ("acme-", "acme"), ("", "kagent")])
def test_without_a_prefix_the_app_has_a_name_all_the_same(prefix: str, app: str) -> None:
    settings = Settings(topics=Topics(prefix=prefix))

    assert settings.topics.app == app
    assert settings.policies()(f"{app}-subscriber-1").ignore
    assert not settings.policies()("acme-orders").ignore
