"""Mutes by name and by pattern: set, listed, lifted, and refused where no group is meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from kagent.active_mutes import Mutes
from kagent.cli import root
from kagent.commands.mute import muted_groups
from kagent.commands.mutes import mute_rows
from kagent.contract.mute import MuteRecord, from_bytes, is_pattern
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, Topics

NOW = 1_760_000_000_000


def mutes(**until: int) -> Mutes:
    found = Mutes()
    for name, ms in until.items():
        found.take(f"main/{name}", MuteRecord(until=ms, by="ada").to_bytes())
    return found


def test_a_pattern_means_the_groups_it_matches_and_a_name_itself() -> None:
    existing = ["orders-b", "orders-a", "payments", "odd*"]

    assert muted_groups("orders-*", existing) == ["orders-a", "orders-b"]
    assert muted_groups("/orders-[ab]/", existing) == ["orders-a", "orders-b"]
    assert muted_groups("odd*", existing) == ["odd*"]
    assert muted_groups("payment", existing) == []


def test_a_pattern_holds_for_groups_that_come_later_until_it_ends() -> None:
    found = Mutes()
    found.take("main/orders-*", MuteRecord(until=NOW + 10, by="ada", pattern="orders-*").to_bytes())

    assert found.of("main", "orders-new", NOW) is not None
    assert found.of("main", "orders-new", NOW + 10) is None
    assert found.of("other", "orders-new", NOW) is None
    assert found.of("main", "payments", NOW) is None


def test_a_record_of_an_older_kagent_is_read() -> None:
    assert from_bytes(b'{"until": 5, "why": "", "by": "ada"}') == MuteRecord(until=5, by="ada")


def test_a_list_has_one_line_a_pattern_and_leaves_out_what_ended() -> None:
    found = mutes(payments=NOW + 50, old=NOW - 1)
    for key in ("main/orders-*", "main/orders-a", "main/orders-b"):
        found.take(key, MuteRecord(until=NOW + 10, by="bob", pattern="orders-*").to_bytes())

    assert [(row["group"], row["groups"], row["by"]) for row in mute_rows(found, NOW)] == [
        ("orders-*", 2, "bob"),
        ("payments", 1, "ada"),
    ]


@pytest.mark.parametrize(
    ("name", "pattern"), [("orders", False), ("a*", True), ("/x/", True), ("a[bc]", True), ("/", False)]
)
def test_what_is_a_pattern(name: str, pattern: bool) -> None:
    assert is_pattern(name) is pattern


@pytest.mark.kafka
def test_mutes_are_set_by_pattern_listed_and_lifted_on_a_real_broker(broker: str, cast: Any) -> None:
    cluster = Cluster(bootstrap=broker)
    prefix = "mutetest-"
    ensure(Admin(cluster), Topics(prefix=prefix))
    cast.topic("mute-topic", 1, 5)
    for group in ("mute-a", "mute-b"):
        cast.commit(group, "mute-topic", 0)

    def kagent(*arguments: str) -> tuple[int, str]:
        answer = CliRunner().invoke(root, [*arguments, "-b", broker], env={"KAGENT_TOPICS__PREFIX": prefix})
        return answer.exit_code, answer.output if answer.exception is None else str(answer.exception)

    code, output = kagent("mute", "mute-*", "--for", "10m", "--why", "backfill")
    assert (code, "2 groups: mute-a, mute-b" in output) == (0, True)
    listed = [json.loads(line) for line in kagent("mutes", "--json")[1].splitlines()]
    assert [(row["group"], row["groups"], row["why"]) for row in listed] == [("mute-*", 2, "backfill")]

    assert "muted by the pattern" in kagent("mute", "mute-a", "--off")[1]
    assert "no longer muted" in kagent("mute", "mute-*", "--off")[1]
    assert "No group is muted." in kagent("mutes")[1]
    assert "No group of main matches the pattern none-*" in kagent("mute", "none-*")[1]
    # It would match `mute-a` in a search.
    assert "a regular expression must match the whole name; `kagent lag`" in kagent("mute", "/^mute-/")[1]
