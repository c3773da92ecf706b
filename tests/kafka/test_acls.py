"""The printed rights are the least that do, and commands for a shell."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kagent.cli import root
from kagent.kafka.acls import Rule, command, rules
from kagent.settings import Topics
from kagent.tables.declaration import ROWS

TABLES_FOLDER = Path(__file__).parents[2] / "tables"


def test_every_table_has_its_changelog_among_the_workers_rights() -> None:
    kept = {path.stem for path in TABLES_FOLDER.glob("*.py")} - {"declaration", "declare", "names"}
    writing = {rule.name for rule in rules(Topics())["worker"] if rule.operation == "write"}

    assert kept == set(ROWS)
    assert {f"kagent-{table}-changelog" for table in ROWS} <= writing


def test_nobody_may_touch_users_records_or_change_a_group_unless_plans_are_applied() -> None:
    for rights in rules(Topics()).values():
        reaches_all = {(rule.resource, rule.operation) for rule in rights if rule.name == "*"}
        assert reaches_all <= {("topic", "describe"), ("topic", "describe_configs"), ("group", "describe")}
        assert not {rule.operation for rule in rights} & {"delete", "alter", "alter_configs", "all"}


def printed(file: Path, text: str) -> list[tuple[str, str, str, str, str, str]]:
    """Role, operation, resource, name, pattern and cluster of each right that the command prints with these settings."""
    file.write_text(text)
    result = CliRunner().invoke(root, ["--config", str(file), "--cluster", "shop", "acls", "--json"])
    assert result.exit_code == 0, result.output
    fields = ("role", "operation", "resource", "name", "pattern", "cluster")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [tuple(line[field] for field in fields) for line in lines]


HUB = "home: hub\nclusters:\n  hub: {bootstrap: 'hub:1'}\n  shop: {bootstrap: 'shop:1'}\n"


@pytest.mark.parametrize(
    ("patterns", "joined"),
    [
        ({"billing": "auto"}, {("billing", "literal")}),
        ({"billing-*": "auto"}, {("billing-", "prefixed")}),
        ({"pay-[0-9]": "auto", "pay-?": "auto"}, {("pay-", "prefixed")}),
        ({"*-eu": "auto"}, {("*", "literal")}),
        ({"/billing-.*/": "auto"}, {("*", "literal")}),
        ({"billing": "auto", "orders": "off"}, {("billing", "literal")}),
        ({"billing": "off"}, set()),
    ],
)
def test_where_the_worker_applies_plans_it_may_join_these_groups_and_keep_the_limit(
    tmp_path: Path, patterns: dict[str, str], joined: set[tuple[str, str]]
) -> None:
    file = tmp_path / "kagent.yaml"
    without = printed(file, HUB)
    entries = [{"match": match, "apply": apply} for match, apply in patterns.items()]

    more = set(printed(file, HUB + "groups: " + json.dumps(entries))) - set(without)

    groups = {("worker", "read", "group", *name, "shop") for name in joined}
    claims = {
        ("worker", op, "topic", "kagent-applied", "literal", "hub") for op in ("read", "write", "create")
    }
    assert more == groups | (claims if joined else set())


def test_where_all_groups_are_applied_the_worker_may_join_all_of_the_watched_cluster_alone(
    tmp_path: Path,
) -> None:
    rights = printed(tmp_path / "kagent.yaml", HUB + "policy: {apply: auto}\n")

    assert ("worker", "read", "group", "*", "literal", "shop") in rights
    assert ("worker", "read", "group", "*", "literal", "hub") not in rights


def test_only_the_worker_may_write_recommendations() -> None:
    topics = Topics()
    writing = Rule("write", "topic", topics.recommendations)

    assert [role for role, rights in rules(topics).items() if writing in rights] == ["worker"]


def test_only_the_worker_may_use_its_transactional_ids_which_the_prefix_names() -> None:
    granted = {
        role: {rule.operation for rule in rights if rule.resource == "transactional_id"}
        for role, rights in rules(Topics()).items()
    }
    printed = command(
        Rule("write", "transactional_id", "kagent-", "prefixed"), "w", "--bootstrap-server host:1"
    )

    assert granted == {
        "pipeline": set(),
        "worker": {"write"},
        "subscriber": set(),
        "alert": set(),
    }
    assert "--transactional-id kagent- --resource-pattern-type prefixed" in printed


def test_a_name_cannot_break_out_of_the_command() -> None:
    printed = command(Rule("read", "topic", "a'; rm -rf /"), "o'neil", "--bootstrap-server host:1")

    assert "User:o'neil" in shlex.split(printed)
    assert "a'; rm -rf /" in shlex.split(printed)


def test_the_configured_prefix_is_used() -> None:
    env = {"KAGENT_TOPICS__PREFIX": "lag-"}

    result = CliRunner(env=env).invoke(root, ["--bootstrap", "host:1", "acls", "--json"])

    names = {json.loads(line)["name"] for line in result.stdout.splitlines()}
    assert {"lag-recommendations", "lag-group-events", "lag-lag-changelog"} <= names
    assert not {name for name in names if name.startswith("kagent")}


def test_with_a_home_each_right_is_printed_for_the_cluster_that_needs_it(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("home: hub\nclusters:\n  hub: {bootstrap: 'hub:1'}\n  shop: {bootstrap: 'shop:1'}\n")

    said = CliRunner().invoke(root, ["--config", str(file), "--cluster", "shop", "acls"])

    assert said.exit_code == 0, said.output
    lines = [line for line in said.output.splitlines() if line.startswith("kafka-acls.sh")]
    at = {
        place: [line for line in lines if f"--bootstrap-server {place}" in line]
        for place in ("hub:1", "shop:1")
    }
    assert len(at["hub:1"]) + len(at["shop:1"]) == len(lines)
    assert any("__consumer_offsets" in line for line in at["shop:1"])
    assert not any("__consumer_offsets" in line for line in at["hub:1"])
    assert any("kagent-recommendations" in line for line in at["hub:1"])
    assert not any("kagent-recommendations" in line for line in at["shop:1"])
    assert [any("--group '*'" in line for line in found) for found in at.values()] == [True, True]
