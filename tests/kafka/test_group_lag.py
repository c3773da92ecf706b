"""``kagent lag`` says of every partition of every group what the cluster's admin API says."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import ConsumerGroupTopicPartitions, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from kagent.cli import root
from kagent.embedded.broker import Broker
from tests.fixtures.consumers import started
from tests.fixtures.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.fixtures.cast import Cast

pytestmark = [pytest.mark.kafka]

HOSTILE = ["lag-<script>alert(1)</script>", "lag-\x1b[2J\n\t", "lag-☃ ‮evil", "lag-" + "x" * 2000]


def run(bootstrap: str, *args: str) -> Result:
    return CliRunner().invoke(root, ["--bootstrap", bootstrap, *args])


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exception is None, result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


def told_by_admin(bootstrap: str, group: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Committed offset and log end of each partition, asked one by one."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = {(p.topic, p.partition): p.offset for p in asked[group].result(PATIENCE_S).topic_partitions}
    ends = client.list_offsets({TopicPartition(*key): OffsetSpec.latest() for key in found})
    return {
        (tp.topic, tp.partition): (found[tp.topic, tp.partition], f.result(PATIENCE_S).offset)
        for tp, f in ends.items()
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_and_lag_are_the_clusters_own(cast: Cast, protocol: str) -> None:
    topic, group = f"lag-{protocol}", f"lag-group-{protocol}"
    cast.topic(topic, 4, records=10)
    both = [cast.join(group, [topic], **{"group.protocol": protocol, "client.id": f"c{i}"}) for i in range(2)]
    cast.settle(group, *both)
    for consumer in both:
        at = [
            TopicPartition(topic, p.partition, p.partition + 1) for p in consumer.assignment() if p.partition
        ]
        consumer.commit(offsets=at, asynchronous=False)

    found = {row["partition"]: row for row in rows(run(cast.bootstrap, "lag", "--json", group))}

    assert {p: (row["committed"], row["log_end"]) for p, row in found.items() if p} == {
        p: told for (_, p), told in told_by_admin(cast.bootstrap, group).items()
    }
    assert {p: row["lag"] for p, row in found.items()} == {0: None, 1: 9, 2: 9, 3: 9}
    held = {p.partition: f"c{i}" for i, consumer in enumerate(both) for p in consumer.assignment()}
    assert {p: row["client_id"] for p, row in found.items()} == held
    assert {row["type"] for row in found.values()} == {protocol}


def test_no_commit_is_a_dash_and_one_member_has_no_ratio(cast: Cast) -> None:
    cast.topic("lag-dash", 2, records=5)
    consumer = cast.join("lag-dash-group", ["lag-dash"])
    cast.settle("lag-dash-group", consumer)
    consumer.commit(offsets=[TopicPartition("lag-dash", 1, 2)], asynchronous=False)

    lines = run(cast.bootstrap, "lag", "lag-dash-group").stdout.splitlines()

    assert lines[0].split()[:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert lines[1].split()[:6] == ["lag-dash-group", "lag-dash", "0", "-", "5", "-"]
    assert lines[2].split()[:6] == ["lag-dash-group", "lag-dash", "1", "2", "6", "4"]
    assert lines[3] == (
        "lag-dash-group: stable, 1 member, lag 4 in 1 partition (1 without a commit, holding 5 records)"
    )


def test_what_was_deleted_before_it_was_read_is_lost_and_no_lag(cast: Cast) -> None:
    cast.topic("lag-lost", 1, records=10)
    client = AdminClient({"bootstrap.servers": cast.bootstrap, "log_level": 0})
    cast.commit("lag-lost-group", "lag-lost", 3)
    client.delete_records([TopicPartition("lag-lost", 0, 8)])[TopicPartition("lag-lost", 0)].result(
        PATIENCE_S
    )

    (row,) = rows(run(cast.bootstrap, "lag", "--json", "lag-lost-group"))

    assert (row["committed"], row["log_start"], row["log_end"], row["lag"], row["lost"]) == (3, 8, 10, 2, 5)


def test_a_hostile_group_name_is_whole_in_json_and_harmless_in_the_terminal(cast: Cast) -> None:
    cast.topic("lag-hostile", 1, records=3)
    for group in HOSTILE:
        cast.commit(group, "lag-hostile", 1)

    result = run(cast.bootstrap, "lag", "--json")
    text = run(cast.bootstrap, "lag").stdout

    assert {
        row["group"]: row["lag"] for row in rows(result) if row["topic"] == "lag-hostile"
    } == dict.fromkeys(HOSTILE, 2)
    assert "\x1b" not in text
    assert "‮" not in text
    assert "lag-\\x1b[2J\\x0a\\x09" in text


def test_a_group_whose_name_holds_a_nul_is_not_cut_short(cast: Cast) -> None:
    cast.topic("lag-nul", 2, records=3)
    group = "lag-nul\0name"

    async def commit_and_stay() -> list[dict[str, Any]]:
        import aiokafka

        consumer = aiokafka.AIOKafkaConsumer(
            "lag-nul", bootstrap_servers=cast.bootstrap, group_id=group, enable_auto_commit=False
        )
        async with started(consumer):
            await consumer.commit({aiokafka.TopicPartition("lag-nul", 0): 1})
            return rows(await asyncio.to_thread(run, cast.bootstrap, "lag", "--json"))

    found = [row for row in asyncio.run(commit_and_stay()) if row["topic"] == "lag-nul"]

    assert [(row["group"], row["partition"], row["lag"]) for row in found] == [
        (group, 0, 2),
        (group, 1, None),
    ]
    assert all(row["member_id"] for row in found)


def test_a_share_group_is_listed_without_lag(cast: Cast) -> None:
    cast.topic("lag-share", 1, records=3)
    consumer = ShareConsumer({"bootstrap.servers": cast.bootstrap, "group.id": "lag-shared", "log_level": 0})
    try:
        consumer.subscribe(["lag-share"])
        consumer.poll(5)
        text = run(cast.bootstrap, "lag").stdout
    finally:
        consumer.close()

    assert "lag-shared: a share group, which has no lag" in text.splitlines()


def test_a_group_that_is_not_there_is_one_sentence(cast: Cast) -> None:
    result = run(cast.bootstrap, "lag", "lag-nobody")

    assert (
        str(result.exception) == "There is no group lag-nobody on this cluster (or no right to describe it)."
    )


def test_the_first_question_to_a_new_cluster_does_not_break_the_client(
    own_broker: Callable[..., Broker],
) -> None:
    command = [sys.executable, "-m", "kagent", "--bootstrap", own_broker().bootstrap, "lag", "lag-nobody"]

    answer = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)

    assert (answer.returncode, answer.stderr) == (
        2,
        "kagent: There is no group lag-nobody on this cluster (or no right to describe it).\n",
    )
