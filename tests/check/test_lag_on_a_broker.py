"""Rows of the lag table that a real broker can make."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.check.judge_cluster import Checkup
from kagent.detect.facts import at_stable
from kagent.detect.group_model import GroupModel
from kagent.kafka.admin import Admin
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.membership import NOBODY
from kagent.policy import Policies
from kagent.settings import Cluster
from tests.fixtures.waiting import PATIENCE_S, until

pytestmark = pytest.mark.kafka


class Logs:
    """Topics with records, and groups with commits but no members."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.tag = uuid.uuid4().hex[:8]

    def topic(self, name: str, records: int, **config: Any) -> str:
        topic = f"{name}-{self.tag}"
        self.create(topic, records, **config)
        return topic

    def create(self, topic: str, records: int, partitions: int = 1, **config: Any) -> None:
        for future in self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
            future.result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for n in range(records):
            producer.produce(topic, b"x", key=str(n).encode(), partition=n % partitions)
        assert producer.flush(30) == 0

    def recreate(self, topic: str, records: int) -> None:
        for future in self.admin.delete_topics([topic]).values():
            future.result(PATIENCE_S)
        until(lambda: topic not in self.admin.list_topics(timeout=10).topics)
        self.create(topic, records)

    def commit(self, topic: str, offset: int, group: str | None = None) -> str:
        group = group or f"g-{topic}"
        until(lambda: self._committed(group, TopicPartition(topic, 0, offset)))
        return group

    def _committed(self, group: str, what: TopicPartition) -> bool:
        """Whether a coordinator took it; a new broker's may still be loading."""
        asked = [ConsumerGroupTopicPartitions(group, [what])]
        try:
            answers = [f.result(PATIENCE_S) for f in self.admin.alter_consumer_group_offsets(asked).values()]
        except KafkaException:
            return False
        return all(p.error is None for a in answers for p in a.topic_partitions)

    def checkup(self, group: str, **policy: Any) -> Checkup:
        admin = Admin(Cluster(bootstrap=self.bootstrap))
        until(lambda: group in admin.groups())
        return Checkup(admin, "main", Policies(policy), 3, lambda name: name == group)

    def look(self, group: str, **policy: Any) -> GroupModel:
        checkup = self.checkup(group, **policy)
        checkup.look()
        checkup.look()
        return checkup.explained(group)[1][0]

    def member(self, group: str, topic: str) -> Consumer:
        """A member that holds something and commits nothing by itself."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([topic])
        until(lambda: consumer.poll(0.2) is not None)
        return consumer


@pytest.fixture
def logs(broker: str) -> Logs:
    return Logs(broker)


def test_records_that_retention_took_before_they_were_read_are_lost_and_not_lag(logs: Logs) -> None:
    topic = logs.topic("lost", 100)
    group = logs.commit(topic, 10)
    for future in logs.admin.delete_records([TopicPartition(topic, 0, 50)]).values():
        future.result(PATIENCE_S)

    lags = logs.look(group).lags

    assert (lags.shown.tolist(), lags.lost.tolist()) == ([50], [40])


def test_an_open_transaction_on_the_topic_holds_the_commit_at_the_last_stable_offset(logs: Logs) -> None:
    topic = logs.topic("open", 20)
    group = logs.commit(topic, 20)
    producer = Producer({"bootstrap.servers": logs.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(30):
        producer.produce(topic, b"x")
    producer.flush(30)

    look = logs.look(group)

    assert (look.lags.stable.tolist(), look.lags.end.tolist()) == ([20], [50])
    assert at_stable(look).tolist() == [True]
    producer.abort_transaction(30)


def test_offsets_of_an_aborted_transaction_are_never_seen(logs: Logs) -> None:
    topic = logs.topic("aborted", 20)
    group = logs.commit(topic, 5)
    producer = Producer({"bootstrap.servers": logs.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    metadata = _metadata(logs.bootstrap, group)
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 19)], metadata, 30)
    producer.abort_transaction(30)

    assert logs.look(group).lags.committed.tolist() == [5]


def _metadata(bootstrap: str, group: str) -> Any:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()


def test_a_compacted_topics_lag_is_at_most(logs: Logs) -> None:
    topic = logs.topic("compacted", 20, **{"cleanup.policy": "compact"})

    look = logs.look(logs.commit(topic, 5))

    assert look.lags.at_most.tolist() == [True]
    assert look.lags.shown.tolist() == [15]


def test_the_commit_of_a_topic_that_was_created_anew_is_void(logs: Logs) -> None:
    topic = logs.topic("anew", 40)
    group = logs.commit(topic, 30)
    checkup = logs.checkup(group)
    checkup.look()
    assert checkup.explained(group)[1][0].lags.shown.tolist() == [10]

    logs.recreate(topic, 5)

    def voided() -> bool:
        checkup.look()
        return not checkup.explained(group)[1][0].lags.known.any()

    until(voided)


def test_a_partition_without_a_commit_has_no_lag_unless_the_reset_policy_is_known(logs: Logs) -> None:
    topic = logs.topic("fresh", 25)
    member = logs.member(f"g-{topic}", topic)
    try:
        shown = [logs.look(f"g-{topic}", **policy).lags.shown.tolist() for policy in POLICIES]
    finally:
        member.close()

    assert shown == [[UNKNOWN], [0], [25]]


POLICIES: list[dict[str, str]] = [{}, {"reset_policy": "latest"}, {"reset_policy": "earliest"}]


def test_what_nobody_holds_is_no_members_and_a_topic_that_no_member_reads_is_never_summed(logs: Logs) -> None:
    read, left = logs.topic("read", 10), logs.topic("left", 10)
    group = logs.commit(left, 1)
    empty = logs.look(group).lags
    member = logs.member(group, read)
    try:
        member.commit(offsets=[TopicPartition(read, 0, 4)], asynchronous=False)
        joined = logs.look(group).lags
    finally:
        member.close()

    assert (empty.owner.tolist(), empty.orphaned.tolist()) == ([NOBODY], [False])
    held = dict(zip(map(joined.name, range(len(joined))), joined.counted.tolist(), strict=True))
    assert held == {(read, 0): True, (left, 0): False}
    assert joined.shown[joined.counted].tolist() == [6]


def test_the_marker_at_the_end_of_a_transaction_counts_as_caught_up(logs: Logs) -> None:
    topic = logs.topic("marked", 5)
    producer = Producer({"bootstrap.servers": logs.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x")
    producer.commit_transaction(30)

    lags = logs.look(logs.commit(topic, 6)).lags

    assert (lags.shown.tolist(), lags.low.tolist()) == ([1], [0])
