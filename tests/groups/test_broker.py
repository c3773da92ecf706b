"""A real broker's groups, folded from its ``__consumer_offsets``, are what its admin interface describes."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from kagent.groups import GroupView, KnownRecords, apply, view
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import GroupDescription, NewTopic
from kagent.offsets import OFFSETS_TOPIC, Record, decode
from kagent.offsets.columns import decode_commits, record_types
from kagent.settings import Cluster
from tests.fixtures.waiting import until

pytestmark = pytest.mark.kafka
PARTITIONS = 6
DEADLINE = 180.0
T = TypeVar("T")
Log = list[tuple[int, int, int, bytes, bytes | None]]


@pytest.fixture
def admin(broker: str) -> Admin:
    return Admin(Cluster(bootstrap=broker))


@pytest.fixture
def topic(admin: Admin, broker: str) -> str:
    """A topic of six partitions with a record in each."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    assert not admin.create([NewTopic(name, PARTITIONS, 1)])
    producer = Producer({"bootstrap.servers": broker})
    for partition in range(PARTITIONS):
        producer.produce(name, b"x", partition=partition)
    assert producer.flush(30) == 0
    return name


def consumer(broker: str, group: str, client: str, **more: Any) -> Consumer:
    config = {
        "bootstrap.servers": broker,
        "group.id": group,
        "client.id": client,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **more,
    }
    return Consumer(config)


@contextmanager
def members(broker: str, group: str, topic: str, count: int, **more: Any) -> Iterator[list[Consumer]]:
    """Members of a group that between them hold all partitions, have read and committed them."""
    with ExitStack() as stack:
        joined = [consumer(broker, group, f"client-{n}", **more) for n in range(count)]
        for member in joined:
            stack.callback(member.close)
            member.subscribe([topic])

        def settled() -> bool | None:
            for member in joined:
                member.poll(0.1)
            held = [member.assignment() for member in joined]
            return True if all(held) and sum(map(len, held)) == PARTITIONS else None

        until(settled, f"{count} members of {group} hold {PARTITIONS} partitions")
        for member in joined:
            offsets = [TopicPartition(tp.topic, tp.partition, tp.partition + 1) for tp in member.assignment()]
            member.commit(offsets=offsets, asynchronous=False)
        yield joined


def log(broker: str, admin: Admin) -> Log:
    """The whole of the source as read_committed delivers it: partition, offset, time, key, value."""
    config = {"isolation.level": "read_committed", "enable.partition.eof": True}
    reader = consumer(broker, "reader-of-offsets", "reader", **config)
    try:
        waited_for = set(range(admin.topic_names()[OFFSETS_TOPIC]))
        reader.assign([TopicPartition(OFFSETS_TOPIC, p, 0) for p in waited_for])
        found: Log = []

        def caught_up() -> bool | None:
            for m in reader.consume(1000, 0.2):
                if m.error() is None:
                    record: Any = (m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value())
                    found.append(record)
                else:
                    error = m.error()
                    assert error is not None
                    assert error.code() == KafkaError._PARTITION_EOF
                    waited_for.discard(m.partition())
            return None if waited_for else True

        until(caught_up, "the reader has reached the last stable offsets")
        return found
    finally:
        reader.close()


def folded(found: Log, admin: Admin, group: str, topic: str) -> GroupView:
    state: KnownRecords | None = None
    for _, offset, at, key, value in found:
        record = decode(key, value)
        if record.group == group and record.type > 1:
            passed_on = Record.from_json(json.loads(json.dumps(record.slim().to_json())))
            state = apply(state, passed_on, offset, at)
    return view(state, {t.id: t.name for t in admin.topics([topic]).values()}, group)


def committed(found: Log, group: str) -> dict[tuple[str, int], int]:
    keys, values = (pa.array([row[at] for row in found], pa.binary()) for at in (3, 4))
    mask = pa.array(record_types(keys) == 1)
    columns = decode_commits(keys.filter(mask), values.filter(mask))
    held: dict[tuple[str, int], int] = {}
    for row in range(len(columns)):
        if columns.group[row].as_py() == group:
            key = columns.topic[row].as_py(), int(columns.partition[row])
            held[key] = int(columns.offset[row])
            if columns.tombstone[row]:
                del held[key]
    return held


def assert_same(mine: GroupView, described: GroupDescription) -> None:
    assert (mine.type, mine.state.lower()) == (described.type, described.state)
    theirs = {m.member_id: m for m in described.members}
    assert {m.member_id for m in mine.members} == set(theirs)
    for member in mine.members:
        other = theirs[member.member_id]
        assert (member.instance_id, member.client_id, member.host) == (
            other.instance_id,
            other.client_id,
            other.host,
        )
        assert {(t, p) for t, ps in member.assigned.items() for p in ps} == other.assigned
        if other.target is not None:
            assert {(t, p) for t, ps in (member.target or {}).items() for p in ps} == other.target


def stable(admin: Admin, group: str, count: int) -> GroupDescription:
    def look() -> GroupDescription | None:
        found = admin.describe([group]).get(group)
        return found if found and found.state == "stable" and len(found.members) == count else None

    return until(look, f"{group} is stable with {count} members")


@pytest.mark.parametrize(
    ("settings", "library"),
    [
        ({"group.protocol": "classic", "partition.assignment.strategy": "range"}, "librdkafka"),
        ({"group.protocol": "classic", "partition.assignment.strategy": "cooperative-sticky"}, "librdkafka"),
        ({"group.protocol": "consumer"}, None),
    ],
    ids=["classic", "cooperative", "KIP-848"],
)
def test_a_group_is_what_the_coordinator_describes(
    broker: str, admin: Admin, topic: str, settings: dict[str, str], library: str | None
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    with members(broker, group, topic, 3, **settings):
        described = stable(admin, group, 3)
        found = log(broker, admin)

        mine = folded(found, admin, group, topic)

        assert_same(mine, described)
        assert mine.unresolved == ()
        assert {m.library for m in mine.members} == {library}
        assert {m.subscriptions for m in mine.members} == {(topic,)}
        assert committed(found, group) == admin.committed([group])[group]
    until(lambda: True if admin.describe([group])[group].state == "empty" else None, f"{group} is empty")
    assert folded(log(broker, admin), admin, group, topic).state == "Empty"


def test_only_the_commits_of_committed_transactions_count(broker: str, admin: Admin, topic: str) -> None:
    group = f"txn-{uuid.uuid4().hex[:8]}"
    with members(broker, group, topic, 1, **{"group.protocol": "classic"}) as (member,):
        producer = Producer({"bootstrap.servers": broker, "transactional.id": group})
        producer.init_transactions(30)
        for offset, commits in ((11, True), (999, False), (22, True)):
            producer.begin_transaction()
            where = [TopicPartition(topic, 0 if commits else 1, offset)]
            producer.send_offsets_to_transaction(where, member.consumer_group_metadata(), 30)
            producer.commit_transaction(30) if commits else producer.abort_transaction(30)
        expected = {(topic, p): p + 1 for p in range(PARTITIONS)} | {(topic, 0): 22}

        found = until(
            lambda: c if (c := committed(log(broker, admin), group)) == expected else None,
            "the commits are stable",
        )

        assert found == admin.committed([group])[group]


def test_the_live_topic_is_followed(broker: str, admin: Admin, topic: str) -> None:
    group = f"live-{uuid.uuid4().hex[:8]}"
    with members(broker, group, topic, 1, **{"group.protocol": "classic"}):
        command = [
            sys.executable,
            "-m",
            "kagent",
            "--bootstrap",
            broker,
            "decode",
            "--follow",
            "--from-beginning",
        ]
        with subprocess.Popen([*command, "--group", group], stdout=subprocess.PIPE, text=True) as follower:
            try:
                assert follower.stdout is not None
                said = [json.loads(follower.stdout.readline()) for _ in range(2 + PARTITIONS)]
            finally:
                follower.terminate()

    assert {line["key"]["group"] for line in said} == {group}
    assert [line["record"] for line in said] == ["GroupMetadata"] * 2 + ["OffsetCommit"] * PARTITIONS
    assert [line["offset"] for line in said] == sorted(line["offset"] for line in said)
