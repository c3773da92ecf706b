"""What stands in the events topic is what the broker itself says, whoever committed and however."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition

from kagent.contract.admission import decode_all
from kagent.contract.events import GroupEvent
from kagent.errors import KafkaError
from kagent.group_key import source_partition
from kagent.groups import apply, view
from kagent.offsets import Record
from kagent.strategies.partitioner import partition_for
from tests.fixtures.small_disk import filled, small_disk
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def joined(consumer: Any, topic: str) -> None:
    consumer.subscribe([topic])
    for _ in range(60):
        consumer.poll(0.5)
        if consumer.assignment():
            return
    raise AssertionError("the consumer got no partition")


def transaction(kafka: Any, group: str, topic: str, offset: int, commit: bool) -> None:
    producer = Producer(
        {"bootstrap.servers": kafka.broker.bootstrap, "transactional.id": f"{group}-{offset}-{commit}"}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    reader = kafka.consumer(group)
    producer.send_offsets_to_transaction(
        [TopicPartition(topic, 0, offset)], reader.consumer_group_metadata(), 20
    )
    producer.commit_transaction(20) if commit else producer.abort_transaction(20)
    reader.close()


def test_events_equal_what_the_admin_api_says(runs: Callable[[], Any], kafka: Any) -> None:
    topic = kafka.topic("orders")
    kafka.fill(topic, 20)
    classic, modern = (
        kafka.consumer("classic", **{"session.timeout.ms": 6000}),
        kafka.consumer("modern", **{"group.protocol": "consumer"}),
    )
    for consumer in (classic, modern):
        joined(consumer, topic)
        consumer.commit(offsets=[TopicPartition(topic, p, 5 + p) for p in range(4)], asynchronous=False)
        consumer.commit(offsets=[TopicPartition(topic, 1, 9)], asynchronous=False)
    transaction(kafka, "exact", topic, 7, commit=True)
    transaction(kafka, "exact", topic, 15, commit=False)
    transaction(kafka, "never", topic, 3, commit=False)
    odd = "<script>\x1b[2J grüppe/日本"
    kafka.commit(odd, topic, {2: 11})
    kafka.commit("removed", topic, {0: 1, 3: 2})
    kafka.admin.delete_consumer_groups(["removed"])["removed"].result(PATIENCE_S)
    kafka.commit("partly", topic, {0: 4, 1: 5})
    reset = ConsumerGroupTopicPartitions("partly", [TopicPartition(topic, 1, 3)])
    kafka.admin.alter_consumer_group_offsets([reset])["partly"].result(PATIENCE_S)
    run = runs()

    run.catch_up()

    groups = ["classic", "modern", "exact", "never", odd, "removed", "partly"]
    said = {group: found for group, found in kafka.asked.committed(groups).items() if found}
    told = {group: found for group, found in run.committed().items() if group in groups}
    assert told == said
    assert told["exact"] == {(topic, 0): 7}
    assert "never" not in told
    assert {e.group for _, e in run.events()} >= {group for group in groups if group != "never"}
    described = kafka.asked.describe(["classic", "modern"])
    names = {kafka.asked.topics([topic])[topic].id: topic}
    for name in ("classic", "modern"):
        state = None
        for record in (r for _, e in run.events() if e.group == name for r in e.records):
            state = apply(state, Record.from_json(record.record), record.source_offset, record.time)
        held = {
            m.member_id: {(t, p) for t, ps in m.assigned.items() for p in ps}
            for m in view(state, names).members
        }
        assert held == {m.member_id: set(m.assigned) for m in described[name].members}
        assert sum(map(len, held.values())) == 4
    for consumer in (classic, modern):
        consumer.close()


def test_all_of_a_group_is_in_one_partition_and_its_source_is_told(
    runs: Callable[[], Any], kafka: Any
) -> None:
    topic = kafka.topic("placed")
    for n in range(12):
        kafka.commit(f"placed-{n}", topic, {0: n})
    run = runs()

    run.catch_up()

    partitions = kafka.asked.topic_names()["__consumer_offsets"]
    events = [e for _, e in run.events() if e.group.startswith("placed-")]
    assert {e.source for e in events} == {source_partition(e.group, partitions) for e in events}
    assert all(e.source == source_partition(e.group, partitions) for e in events)


@pytest.mark.parametrize("most", [1, 5, 50])
def test_events_of_several_groups_share_a_message_on_the_partition_of_their_own_keys(
    runs: Callable[[], Any], kafka: Any, most: int
) -> None:
    topic, names = kafka.topic("shared"), {f"shared-{most}-{n}" for n in range(24)}
    for n, name in enumerate(sorted(names)):
        kafka.commit(name, topic, {0: n})
    run = runs()
    run.settings = run.settings.model_copy(
        update={"pipeline": run.settings.pipeline.model_copy(update={"events_per_message": most})}
    )

    run.catch_up()

    found = kafka.read(run.settings.topics.events)
    groups = [
        (m.partition(), [e.group for e in decode_all(m.value()) if isinstance(e, GroupEvent)]) for m in found
    ]
    assert {group for _, held in groups for group in held} >= names
    assert all(partition_for(f"main/{g}".encode(), 3) == at for at, held in groups for g in held)
    # One task makes few messages of many groups, and none is larger than was asked for.
    assert max(len(held) for _, held in groups) in range(min(most, 2), most + 1)


def test_what_no_decoder_knows_becomes_a_dead_letter_and_the_rest_goes_on(
    runs: Callable[[], Any], kafka: Any
) -> None:
    topic = kafka.topic("letters")
    key, value = bytes.fromhex("0063") + b"\x00\x01g", b"\x00\x00" + b"z" * 300
    producer = Producer({"bootstrap.servers": kafka.broker.bootstrap, "client.id": "__admin_client"})
    producer.produce("__consumer_offsets", value, key=key, partition=1)
    assert producer.flush(PATIENCE_S) == 0
    kafka.commit("after-it", topic, {0: 6})
    counted: list[int] = []
    run = runs()

    run.catch_up(on_batch=lambda p: counted.append(p["observedMetrics"]["kagent"]["dead"]))

    letters = [json.loads(m.value()) for m in kafka.read(run.settings.topics.dead_letters)]
    mine = [letter for letter in letters if letter["key_hex"] == key.hex()]
    assert len(mine) == 1
    assert mine[0]["from"].startswith("__consumer_offsets-1@")
    assert mine[0]["kind"] == "UnknownRecordType"
    assert mine[0]["value_hex"] == value[:256].hex()
    assert sum(counted) == len(letters)
    assert run.committed()["after-it"] == {(topic, 0): 6}


def test_own_groups_are_not_fed_back(runs: Callable[[], Any], kafka: Any) -> None:
    topic, run = kafka.topic("own"), runs()
    own = run.settings.topics.app
    for group in (own, f"{own}-subscriber-1", f"{own}-orders"):
        kafka.commit(group, topic, {0: 1})

    run.catch_up()

    assert {e.group for _, e in run.events() if e.group.startswith(own)} == {f"{own}-orders"}


def test_the_stream_goes_on_from_its_checkpoint_and_without_one_from_the_beginning(
    runs: Callable[[], Any], kafka: Any
) -> None:
    topic, run = kafka.topic("resumed"), runs()
    kafka.commit("resumed", topic, {0: 1})
    run.catch_up()
    before = len(run.messages())

    kafka.commit("resumed", topic, {0: 2})
    run.catch_up()
    new = run.messages()
    seen = [
        list(o.committed) for _, m in new if hasattr(m, "offsets") and m.group == "resumed" for o in m.offsets
    ]
    run.catch_up(checkpoint=str(run.folder / "another"))

    assert len(new) > before
    assert sorted(seen) == [[1], [2]]
    assert run.committed()["resumed"] == {(topic, 0): 2}
    assert len([e for _, e in run.events() if e.group == "resumed"]) == 3


def test_progress_covers_the_source_without_a_hole_over_restarts(runs: Callable[[], Any], kafka: Any) -> None:
    topic, run = kafka.topic("covered"), runs()
    for n in range(3):
        kafka.commit("covered", topic, {0: n})
        run.catch_up()

    covered = dict.fromkeys(range(4), 0)
    for beat in sorted(run.beats(), key=lambda beat: beat.time):
        for p in beat.each():
            assert p.start <= covered[p.source]
            assert p.offset <= p.stable_end <= p.log_end
            covered[p.source] = max(covered[p.source], p.offset)
    assert len(run.beats()) % run.settings.topics.partitions == 0
    assert len({b.run_id for b in run.beats()}) == 3
    assert not any(b.replay for b in run.beats())


def test_a_replay_reads_all_and_says_so_and_leaves_the_checkpoint_alone(
    runs: Callable[[], Any], kafka: Any
) -> None:
    topic, run = kafka.topic("replayed"), runs()
    kafka.commit("replayed", topic, {0: 5})

    run.catch_up(replay=True, available_now=False)

    beats = run.beats()
    first = min(beats, key=lambda beat: beat.time)
    assert all(beat.replay for beat in beats)
    assert set(first.start) == {0}
    assert run.committed()["replayed"] == {(topic, 0): 5}
    assert not (run.folder / "checkpoint").exists()


def test_a_full_disk_is_one_sentence_and_costs_no_record(
    runs: Callable[[], Any], kafka: Any, tmp_path: Path
) -> None:
    topic, run = kafka.topic("full"), runs()
    kafka.commit(topic, topic, {0: 1})
    with small_disk(tmp_path / "small", "400k") as disk:
        place = str(disk / "checkpoint")
        run.catch_up(checkpoint=place)
        with filled(disk):
            kafka.commit(topic, topic, {0: 2})
            with pytest.raises(KafkaError, match="The disk is full"):
                run.catch_up(checkpoint=place)
        run.catch_up(checkpoint=place)

    assert run.committed()[topic] == {(topic, 0): 2}
