"""Mutes by name and by pattern: set, listed, lifted, and refused where no group is meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from kagent.active_mutes import Mutes
from kagent.cli import root
from kagent.commands.mute import lifted_keys, muted_groups, still_muted
from kagent.commands.mutes import mute_rows
from kagent.contract.mute import MuteRecord, from_bytes, is_pattern
from kagent.contract.recommendation import State
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


def test_a_pattern_counts_the_groups_that_it_matches_now_whoever_muted_them() -> None:
    found = mutes(hot=NOW + 50)
    found.take("main/h*t", MuteRecord(until=NOW + 10, by="bob", pattern="h*t").to_bytes())

    rows = mute_rows(found, NOW, {"main": ["hot", "heat", "cold"]})

    assert {row["group"]: row["groups"] for row in rows} == {"h*t": 2, "hot": 1}


def test_a_lifted_group_that_a_pattern_mutes_is_said_to_be_muted_still() -> None:
    found = mutes(hot=NOW + 5, other=NOW + 5)
    found.take("main/h*t", MuteRecord(until=NOW + 10, by="bob", pattern="h*t").to_bytes())

    lifted = lifted_keys(found.records, "main", "hot")
    rest = {key: record for key, record in found.records.items() if key not in lifted}

    assert lifted == ["main/hot"]
    assert {group: by for group, (by, _) in still_muted(rest, "main", "hot", lifted, NOW).items()} == {
        "hot": "h*t"
    }
    assert still_muted(rest, "main", "hot", lifted, NOW + 10) == {}


def test_a_lifted_pattern_leaves_a_group_muted_that_was_muted_by_its_name() -> None:
    found = mutes(hot=NOW + 5)
    for key in ("main/h*t", "main/heat", "other/h*t"):
        found.take(key, MuteRecord(until=NOW + 10, by="bob", pattern="h*t").to_bytes())

    lifted = lifted_keys(found.records, "main", "h*t")
    rest = {key: record for key, record in found.records.items() if key not in lifted}

    assert lifted == ["main/h*t", "main/heat"]
    assert [*still_muted(rest, "main", "h*t", lifted, NOW)] == ["hot"]


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

    assert "mute-a is still muted by mute-* until" in kagent("mute", "mute-a", "--off")[1]
    kagent("mute", "mute-a", "--for", "5m")
    listed = [json.loads(line) for line in kagent("mutes", "--json")[1].splitlines()]
    assert {row["group"]: row["groups"] for row in listed} == {"mute-*": 2, "mute-a": 1}
    lifted = kagent("mute", "mute-a", "--off")[1]
    assert "mute-a is still muted by mute-* until" in lifted
    assert "`kagent mute 'mute-*' --off`" in lifted
    assert "no longer" not in lifted
    assert "no longer muted" in kagent("mute", "mute-*", "--off")[1]
    assert "No group is muted." in kagent("mutes")[1]
    assert "No group of main matches the pattern none-*" in kagent("mute", "none-*")[1]
    # It would match `mute-a` in a search.
    assert "a regular expression must match the whole name; `kagent lag`" in kagent("mute", "/^mute-/")[1]


@pytest.mark.kafka
def test_with_an_address_alone_a_mute_is_for_the_cluster_that_workers_report(broker: str, cast: Any) -> None:
    prefix, group = "named-", "of-an-address"
    ensure(Admin(Cluster(bootstrap=broker)), Topics(prefix=prefix))
    cast.topic("of-an-address-topic", 1, 5)
    cast.commit(group, "of-an-address-topic", 0)
    state = State(cluster="west", version="1", time=1, status="watching")
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(f"{prefix}recommendations", state.model_dump_json(by_alias=True).encode(), b"west")
    assert producer.flush(30) == 0

    def kagent(*arguments: str) -> str:
        return (
            CliRunner().invoke(root, [*arguments, "-b", broker], env={"KAGENT_TOPICS__PREFIX": prefix}).stdout
        )

    kagent("mute", group, "--for", "10m")
    (row,) = (json.loads(line) for line in kagent("mutes", "--json").splitlines())

    assert (row["cluster"], row["group"]) == ("west", group)
    assert f"{group} is no longer muted" in kagent("mute", group, "--off")
