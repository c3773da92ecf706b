"""`kagent check`, `explain` and `mute` against a real broker with real consumers."""

from __future__ import annotations

import json
import re
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition

from kagent.cli import root
from kagent.commands.check import _tell
from kagent.contract.mute import MuteRecord
from kagent.errors import InputError
from tests.fixtures.stage import wait_for_members

pytestmark = [pytest.mark.kafka, pytest.mark.slow(minutes=2)]


def kagent(config: Path, *args: str) -> tuple[int, list[dict[str, Any]], str]:
    result = CliRunner().invoke(root, ["--config", str(config), *args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    lines = [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    return result.exit_code, lines, result.output


def test_commands_that_a_check_of_an_address_advises_carry_that_address(
    stage: Any, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_POLICY__MIN_BEHIND", "2")  # else it must look for 93 s
    topic = group = f"slow-{uuid.uuid4().hex[:8]}"
    stage.topic(topic, 2)
    stage.produce(topic, {0: 200.0, 1: 200.0})
    for number in range(2):
        stage.consume(topic, group, f"c{number}", 0.02)  # fifty a second
    wait_for_members(broker, {group: 2})

    result = CliRunner().invoke(root, ["-b", broker, "check", group, "--for", "30s", "--json"])

    assert result.exit_code == 1, result.output
    lines = map(json.loads, _json_lines(result.stdout))
    (found,) = (line for line in lines if line["type"] == "recommendation")
    advice = [action["how"] for action in found["actions"] if re.search(r"kafka-\S+\.sh ", action["how"])]
    assert advice, found["actions"]
    assert all(re.search(rf"kafka-\S+\.sh --bootstrap-server {re.escape(broker)} ", how) for how in advice), (
        advice
    )


def _json_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("{")]


def test_a_skewed_group_is_found_from_outside_and_its_caught_up_neighbours_are_not(
    stage: Any, broker: str, tmp_path: Path
) -> None:
    tag = uuid.uuid4().hex[:8]
    topic, skewed, healthy, modern = (f"{name}-{tag}" for name in ("orders", "skewed", "healthy", "modern"))
    stage.topic(topic, 4)
    stage.produce(topic, {0: 120.0, 1: 120.0, 2: 20.0, 3: 20.0})  # each member does about 160
    for number in range(2):
        stage.consume(topic, skewed, f"c{number}", 0.006)
        stage.consume(topic, healthy, f"c{number}")
        stage.consume(topic, modern, f"c{number}", **{"group.protocol": "consumer"})
    wait_for_members(broker, {skewed: 2, healthy: 2, modern: 2})
    config = tmp_path / "kagent.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "clusters": {"main": {"bootstrap": broker}},
                "policy": {"min_behind": 2},
                "topics": {"prefix": f"m{tag}-"},
            }
        )
    )
    stage.topic(f"m{tag}-mutes", 1)
    assert kagent(config, "mute", skewed)[0] == 0

    code, lines, output = kagent(config, "check", "--for", "30s", "--json", "--group", f"*-{tag}")

    assert code == 1, output
    summary = lines[-1]
    found = [line for line in lines if line["type"] == "recommendation"]
    assert summary["judged"] == 3
    assert [*summary["muted"]] == [skewed]
    assert [f["group"] for f in found] == [skewed], output
    assert found[0]["verdict"] in ("rebalance", "hot_partition", "slow_member")
    assert found[0]["group_kind"] == "classic_librdkafka" or found[0]["group_kind"] == "classic"
    assert max(found[0]["members"], key=lambda m: m["work_now"])["client_id"] == "c0"

    code, lines, output = kagent(config, "explain", healthy, "--for", "5s", "--json")
    assert code == 0, output
    assert lines[0]["verdict"] == "balanced"
    assert {m["member"].split("/")[0] for m in lines[0]["members"]} == {"c0", "c1"}

    with pytest.raises(InputError, match=f"no group nobody-{tag}"):
        kagent(config, "explain", f"nobody-{tag}", "--for", "1s")


@pytest.mark.parametrize("asked", ["no-such-group", "no-such-*"])
def test_a_group_that_was_not_judged_is_not_quiet(broker: str, tmp_path: Path, asked: str) -> None:
    config = tmp_path / "kagent.yaml"
    config.write_text(yaml.safe_dump({"clusters": {"main": {"bootstrap": broker}}}))

    code, lines, output = kagent(config, "check", asked, "--for", "1s", "--json")

    assert code == 2, output
    assert lines[-1]["judged"] == 0
    assert ("Not judged: no-such-group." if asked == "no-such-group" else "No group was judged") in output


def test_a_name_that_was_not_judged_counts_beside_one_that_is_quiet(
    stage: Any, broker: str, tmp_path: Path
) -> None:
    topic, group = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("t", "quiet"))
    stage.topic(topic, 1)
    stage.produce(topic, {0: 20.0})
    stage.consume(topic, group, "c0")
    wait_for_members(broker, {group: 1})
    config = tmp_path / "kagent.yaml"
    config.write_text(yaml.safe_dump({"clusters": {"main": {"bootstrap": broker}}}))

    assert kagent(config, "check", group, "--for", "4s")[0] == 0
    assert kagent(config, "check", group, "no-such-group", "--for", "4s")[0] == 2


def test_a_look_that_is_too_short_calls_no_late_group_healthy(cast: Any, broker: str, tmp_path: Path) -> None:
    topic, late, on_time = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("t", "late", "on-time"))
    cast.topic(topic, 1, 500)
    cast.commit(late, topic, 0)
    cast.commit(on_time, topic, 500)
    config = tmp_path / "kagent.yaml"
    config.write_text(yaml.safe_dump({"clusters": {"main": {"bootstrap": broker}}}))

    code, lines, output = kagent(config, "check", late, on_time, "--for", "3s", "--json")

    assert code == 2, output
    assert (lines[-1]["judged"], lines[-1]["too_short_for"]) == (1, [late])
    assert f"Late, but not judged: {late}. A look of " in output
    assert "is too short to see whether a group stays late; look for 93 s or longer: --for 93s." in output
    assert kagent(config, "check", on_time, "--for", "3s")[0] == 0
    code, _, output = kagent(config, "explain", late, "--live", "--for", "3s")
    assert code == 2
    assert "look for 93 s or longer" in output


def test_a_group_without_members_in_which_records_wait_is_named(
    cast: Any, broker: str, tmp_path: Path
) -> None:
    topic, group = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("t", "left"))
    cast.topic(topic, 1, 500)
    consumer = cast.join(group, [topic])
    cast.settle(group, consumer)
    consumer.commit(offsets=[TopicPartition(topic, 0, 460)], asynchronous=False)
    consumer.close()
    config = tmp_path / "kagent.yaml"
    config.write_text(yaml.safe_dump({"clusters": {"main": {"bootstrap": broker}}}))

    code, lines, output = kagent(config, "check", group, "--for", "2s", "--json")

    assert (code, lines[-1]["without_members"], lines[-1]["too_short_for"]) == (2, {group: 40}, []), output
    code, _, output = kagent(config, "check", f"{group}*", "--for", "2s")
    assert code == 0
    assert f"Records wait, and the group has no members: {group} (40 records)." in output


def test_a_finding_about_a_muted_group_says_that_it_is_muted(
    rec: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _tell(rec("hot"), as_json=False, mute=MuteRecord(until=4_000_000_000_000, by="ada"))

    assert "TICKET hot: uneven work (muted until 2096-10-02" in capsys.readouterr().out


def test_a_mute_is_a_record_under_the_groups_key(stage: Any, broker: str, tmp_path: Path) -> None:
    prefix = f"m{uuid.uuid4().hex[:8]}-"
    stage.topic(f"{prefix}mutes", 1)
    config = tmp_path / "kagent.yaml"
    config.write_text(
        yaml.safe_dump({"clusters": {"main": {"bootstrap": broker}}, "topics": {"prefix": prefix}})
    )

    assert kagent(config, "mute", "orders", "--anyway", "--for", "2h", "--why", "a migration")[0] == 0
    assert kagent(config, "mute", "orders", "--off")[0] == 0

    consumer = Consumer({"bootstrap.servers": broker, "group.id": prefix, "auto.offset.reset": "earliest"})
    consumer.subscribe([f"{prefix}mutes"])
    found: list[Any] = []
    deadline = time.monotonic() + 30
    while len(found) < 2 and time.monotonic() < deadline:
        found += [m for m in consumer.consume(2, 1.0) if m.error() is None]
    consumer.close()
    record = json.loads(found[0].value())
    assert found[0].key() == b"main/orders"
    assert record["why"] == "a migration"
    assert record["until"] > time.time() * 1000 + 7_000_000
    assert found[1].value() is None
