"""What a coordinator describes makes the same group as its records in ``__consumer_offsets``: on a real broker."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import ShareConsumer

from kagent.groups import GroupView, KnownRecords, apply, view
from kagent.kafka.described_records import records_of
from kagent.kafka.descriptions import Described, GroupDescription, MemberDescription
from kagent.kafka.offsets_topic import partitions, polled, reader
from kagent.lag.membership import Roster
from kagent.offsets import DecodeError, decode
from tests.fixtures.streams_app import start_streams
from tests.fixtures.waiting import until

if TYPE_CHECKING:
    from tests.fixtures.cast import Cast


def described(found: Described) -> GroupView:
    """The group by its description, after a row was written and read."""
    state: KnownRecords | None = None
    for record in records_of(found) or ():
        state = apply(state, record, -1, 5)
    if state is not None:
        state = KnownRecords.from_json(state.to_json())
    return view(state, {id_: name for name, id_ in found.topic_ids.items()}, found.group.group)


def recorded(cast: Cast, group: str, names: dict[str, str]) -> GroupView:
    """The group by its records."""
    state: KnownRecords | None = None
    count, ended = partitions(cast.admin), set[int]()
    with reader(cast.admin.cluster, count, True, **{"enable.partition.eof": True}) as consumer:
        while len(ended) < count:
            for message in polled(consumer, 1.0, ended):
                try:
                    record = decode(message.key(), message.value())
                except DecodeError:
                    continue
                if record.group == group:
                    state = apply(state, record, message.offset() or 0, 5)
    return view(state, names, group)


@pytest.mark.kafka
@pytest.mark.parametrize(
    "config",
    [
        {"partition.assignment.strategy": "range"},
        {"partition.assignment.strategy": "cooperative-sticky"},
        {"group.instance.id": "static-1"},
        {"group.protocol": "consumer"},
    ],
    ids=str,
)
def test_a_description_makes_the_group_that_its_records_make(cast: Cast, config: dict[str, Any]) -> None:
    topic = group = f"described-{uuid.uuid4().hex[:8]}"
    cast.topic(topic, 3)
    one = cast.join(group, [topic], **config)
    cast.settle(group, one)

    found = cast.admin.described([group])[group]
    names = {cast.admin.topics([topic])[topic].id: topic}
    by_records = recorded(cast, group, names)

    # No coordinator tells a classic group's generation, nor the time that it gives a member to rebalance.
    untold: dict[str, Any] = {"rebalance_timeout_ms": None}
    if by_records.type == "classic":
        untold["epoch"] = None
        by_records = replace(by_records, generation=None)
    members = tuple(replace(m, **untold) for m in by_records.members)
    made = described(found)
    if by_records.type != "classic":
        # It tells the assignor that the group has, not which one its members ask for.
        by_records = replace(by_records, protocol=made.protocol)
    assert made == replace(by_records, members=members)
    assert Roster.of(made).assignment == Roster.of(by_records).assignment


@pytest.mark.kafka
def test_a_share_groups_description_makes_the_group_that_its_records_make(cast: Cast) -> None:
    topic = group = f"described-{uuid.uuid4().hex[:8]}"
    cast.topic(topic, 3)
    consumer = ShareConsumer({"bootstrap.servers": cast.bootstrap, "group.id": group, "log_level": 0})
    consumer.subscribe([topic])

    def held() -> Described | None:
        consumer.poll(0.5)
        found = cast.admin.described([group])[group]
        return found if any(member.assigned for member in found.group.members) else None

    try:
        made = described(until(held))
        by_records = recorded(cast, group, {cast.admin.topics([topic])[topic].id: topic})
    finally:
        consumer.close()

    assert made == by_records
    assert Roster.of(made).assignment == Roster.of(by_records).assignment
    assert group in cast.admin.groups()


@pytest.mark.kafka
def test_a_streams_groups_description_makes_the_group_that_its_records_make(
    cast: Cast, tmp_path: Path
) -> None:
    topic = group = f"described-{uuid.uuid4().hex[:8]}"
    cast.topic(topic, 3)
    application = start_streams(cast.bootstrap, group, "one", tmp_path, topic, ms=1)

    def settled() -> Described | None:
        found = cast.admin.described([group])[group]
        return found if found.group.state == "stable" and records_of(found) else None

    try:
        made = described(until(settled))
        by_records = recorded(cast, group, {})
    finally:
        application.kill()
        application.wait(10)

    members = tuple(replace(member, rebalance_timeout_ms=None) for member in by_records.members)
    assert made == replace(by_records, members=members, topology=made.topology)
    assert Roster.of(made).assignment == Roster.of(by_records).assignment
    assert group in cast.admin.groups()


@pytest.mark.kafka
def test_a_group_that_only_commits_has_no_records(cast: Cast) -> None:
    topic = group = f"described-{uuid.uuid4().hex[:8]}"
    cast.topic(topic, 1)
    cast.commit(group, topic, 0)

    assert records_of(cast.admin.described([group])[group]) == []


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("classic", "preparingrebalance"),
        ("classic", "completingrebalance"),
        ("consumer", "reconciling"),
        ("consumer", "assigning"),
        ("streams", "notready"),
        ("share", "unknown"),
    ],
)
def test_a_group_that_rebalances_tells_nothing_yet(kind: str, state: str) -> None:
    member = MemberDescription("m", None, "app", "/10.0.0.1", frozenset())

    assert records_of(Described(GroupDescription("g", state, kind, "range", False, (member,)))) is None
