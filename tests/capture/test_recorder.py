"""Real groups on a real broker, captured and replayed."""

from __future__ import annotations

import os
import signal
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from kagent.capture.folder import read_folder
from kagent.cli import root
from kagent.errors import InputError
from kagent.replay.captured_events import recording
from kagent.replay.driver import TICK_MS, RecordedCluster
from tests.fixtures.stage import wait_for_members
from tests.fixtures.waiting import PATIENCE_S, until

pytestmark = pytest.mark.kafka


def run(broker: str, *args: str) -> Result:
    result = CliRunner().invoke(root, ["--bootstrap", broker, *args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def committed_by_admin(broker: str, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": broker})
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(
        PATIENCE_S
    )
    return {tp.partition: tp.offset for tp in answer.topic_partitions}


def replayed(folder: Path) -> RecordedCluster:
    record = recording(read_folder(folder))
    assert record.unreadable == 0
    cluster = RecordedCluster(record)
    cluster.advance(record.end_ms + 2 * TICK_MS)
    return cluster


@pytest.fixture
def groups(stage: Any, broker: str) -> list[str]:
    """Two groups of two consumers each, classic and KIP-848, that have all their members; a third that nobody asks for."""
    tag = uuid.uuid4().hex[:8]
    topic = f"payments-{tag}"
    stage.topic(topic, 4)
    stage.produce(topic, {0: 100.0, 1: 50.0, 2: 20.0, 3: 5.0})
    names = [f"captured-{tag}-{kind}" for kind in ("classic", "consumer")]
    for number in range(2):
        stage.consume(topic, names[0], f"invoicer-{number}")
        stage.consume(topic, names[1], f"invoicer-{number}", **{"group.protocol": "consumer"})
    stage.consume(topic, f"other-{tag}", "other")
    wait_for_members(broker, dict.fromkeys(names, 2))
    return names


def test_a_captured_group_has_the_offsets_members_and_log_ends_of_the_admin_api(
    stage: Any, broker: str, groups: list[str], tmp_path: Path
) -> None:
    tag = groups[0].split("-")[1]
    ended = threading.Timer(6, stage.end)  # so that the last commits are in the capture
    ended.start()
    result = run(broker, "capture", str(tmp_path / "out"), "--group", f"captured-{tag}-*", "--for", "14s")
    ended.join()
    assert "2 groups" in result.stdout
    cluster = replayed(tmp_path / "out")
    assert sorted(cluster.groups) == groups
    for name in groups:
        (commits,) = cluster.groups[name].commits.values()
        offsets = dict(zip(commits.partition, commits.committed, strict=True))
        assert offsets == committed_by_admin(broker, name)
        assert sum(offsets.values()) > 0
        assert cluster.ends[commits.topic].end.tolist() == _log_ends(broker, commits.topic)
        assert cluster.topics[commits.topic].leaders == (1, 1, 1, 1)
    assert any(sample.stables[commits.topic] for sample in cluster.recording.samples)


def _log_ends(broker: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "asks-only"})
    try:
        return [consumer.get_watermark_offsets(TopicPartition(topic, p), 20)[1] for p in range(4)]
    finally:
        consumer.close()


def test_members_that_joined_before_the_capture_are_in_it_and_redaction_leaves_no_name(
    broker: str, groups: list[str], tmp_path: Path
) -> None:
    tag = groups[0].split("-")[1]
    out = tmp_path / "out"
    run(broker, "capture", str(out), "--group", f"captured-{tag}-*", "--for", "7s", "--redact")
    cluster = replayed(out)
    assert len(cluster.groups) == 2
    for name, group in cluster.groups.items():
        roster = group.roster(cluster.topic_names)
        assert name.startswith("group-")
        assert [len(m.assigned[topic]) for m in roster.members for topic in m.assigned] == [2, 2]
        assert (
            {topic for m in roster.members for topic in m.assigned} == set(group.commits) == set(cluster.ends)
        )
    folder = read_folder(out)
    content = b"".join(record.key + (record.value or b"") for record in folder.records if record.key)
    content += (out / "capture.json").read_bytes() + b"".join(sample.line() for sample in folder.samples)
    for secret in (tag, "payments", "invoicer", "captured", "127.0.0.1"):
        assert secret.encode() not in content
    assert b"topic-" in content


def test_ctrl_c_ends_a_capture_that_can_be_replayed(broker: str, groups: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"

    def interrupt() -> None:
        until(lambda: (out / "capture.json").exists(), "no sample was written")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = run(broker, "capture", str(out), "--group", groups[0], "--for", "1h")
    thread.join()
    assert result.exit_code == 0
    assert sorted(replayed(out).groups) == [groups[0]]
    with pytest.raises(InputError, match="is not empty"):
        run(broker, "capture", str(out), "--group", groups[0])


def test_a_group_that_is_not_there_leaves_an_empty_capture_and_says_so(
    broker: str, groups: list[str], tmp_path: Path
) -> None:
    result = run(broker, "capture", str(tmp_path), "--group", "no-such-group", "--for", "1s")
    assert "nothing to replay" in result.stderr
    assert "0 groups, 0 records" in result.stdout
