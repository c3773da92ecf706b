"""On a broker that enforces logins and rights: what is printed suffices, the rest is refused, and it is said why."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka import KafkaError as Code
from confluent_kafka.admin import AdminClient, NewTopic
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from kagent.alert.delivery_log import DeliveryLog
from kagent.capture.folder import read_folder
from kagent.capture.folder_writer import FolderWriter
from kagent.capture.recorder import CapturedGroups, Recorder
from kagent.cli import root
from kagent.client.client import current
from kagent.embedded.broker import free_port
from kagent.errors import KafkaError
from kagent.kafka.acls import Rule, rules
from kagent.kafka.admin import Admin
from kagent.kafka.clients import confluent
from kagent.kafka.rights import lacking
from kagent.kafka.rights_watch import RightsWatch, of_pipeline
from kagent.kafka.topics import delivery_log, ensure, wanted
from kagent.pipeline.source import OffsetsSource
from kagent.settings import Cluster, Settings, Topics
from tests.conftest import guarded_broker
from tests.fixtures.waiting import PATIENCE_S, until

if TYPE_CHECKING:
    from tests.conftest import Guarded

pytestmark = [pytest.mark.kafka]

TOPICS = Topics(partitions=1)
SECRET = "users-records"
CHANGELOG = "kagent-coverage-changelog"


@pytest.fixture(scope="session")
def estate(guarded: Guarded) -> Guarded:
    """kagent's topics, a user's topic and a group with a commit; the four principals with the printed rights."""
    ensure(Admin(Cluster(bootstrap=guarded.root)), TOPICS, needed=[*wanted(TOPICS), delivery_log(TOPICS)])
    users_group(guarded)
    for role, rights in rules(TOPICS).items():
        guarded.allow(role, rights)
    return guarded


def users_group(place: Guarded) -> None:
    """A user's topic with one record, and a group that has read it."""
    client = AdminClient({"bootstrap.servers": place.root, "log_level": 0})
    client.create_topics([NewTopic(SECRET, 1, 1)])[SECRET].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": place.root, "log_level": 0})
    producer.produce(SECRET, b"x")
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({"bootstrap.servers": place.root, "group.id": "users", "log_level": 0})
    _commit(consumer, TopicPartition(SECRET, 0, 1))
    consumer.close()


@retry(
    retry=retry_if_exception_type(KafkaException),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.5),
    reraise=True,
)
def _commit(consumer: Consumer, place: TopicPartition) -> None:
    """The coordinator of a new cluster loads for a moment."""
    consumer.commit(offsets=[place], asynchronous=False)


def reads(cluster: Cluster, topic: str, group: str) -> int | None:
    """The code of the first error of reading this topic from its start; None if a record came."""
    config = {"group.id": group, "auto.offset.reset": "earliest", "log_level": 0, "enable.auto.commit": False}
    consumer = Consumer(confluent(cluster, **config))
    try:
        unseen = consumer.list_topics(topic, timeout=15).topics[topic].error
        if unseen is not None:
            return int(unseen.code())
        consumer.assign([TopicPartition(topic, p, 0) for p in range(4 if topic.startswith("__") else 1)])
        for _ in range(100):
            message = consumer.poll(0.2)
            error = message.error() if message is not None else None
            if error is not None:
                return int(error.code())
            if message is not None:
                return None
        raise AssertionError("neither a record nor an error")
    finally:
        consumer.close()


def writes(cluster: Cluster, topic: str) -> int | None:
    """The code with which this write was refused; None if it was taken."""
    said: list[Any] = []
    producer = Producer(confluent(cluster, log_level=0))
    producer.produce(topic, b"x", key=b"k", on_delivery=lambda error, _: said.append(error))
    assert producer.flush(PATIENCE_S) == 0
    return int(said[0].code()) if said[0] is not None else None


def test_the_pipeline_reads_the_offsets_and_writes_events_and_no_more(estate: Guarded) -> None:
    pipeline = estate.cluster("pipeline")

    assert reads(pipeline, "__consumer_offsets", "kagent-pipeline-1") is None
    assert writes(pipeline, TOPICS.events) is None
    assert writes(pipeline, TOPICS.dead_letters) is None
    assert {finding.state for finding in ensure(Admin(pipeline), TOPICS)} == {"ok"}
    refused = Code.TOPIC_AUTHORIZATION_FAILED
    assert reads(pipeline, SECRET, "kagent-pipeline-1") == refused
    assert writes(pipeline, TOPICS.recommendations) == refused


def printed_rights(file: Path, cluster: str) -> Iterator[tuple[str, str, Rule]]:
    """Cluster, user and right of each line of ``kagent acls --json``."""
    arguments = ["--config", str(file), "--cluster", cluster, "acls", "--json", "--principals", "{role}"]
    answer = CliRunner().invoke(root, arguments)
    assert answer.exit_code == 0, answer.output
    for line in answer.stdout.splitlines():
        row = json.loads(line)
        yield (
            row["cluster"],
            row["principal"],
            Rule(row["operation"], row["resource"], row["name"], row["pattern"]),
        )


def test_with_a_home_on_another_cluster_the_rights_printed_for_each_suffice(
    own_guarded: Guarded, tmp_path: Path
) -> None:
    shop = guarded_broker(tmp_path / "shop")
    try:
        places = {"hub": own_guarded, "shop": shop}
        file = tmp_path / "kagent.yaml"
        addresses = {name: {"bootstrap": place.root} for name, place in places.items()}
        file.write_text(
            yaml.safe_dump({"home": "hub", "clusters": addresses, "topics": {"partitions": 1}}), "utf-8"
        )
        ensure(Admin(Cluster(bootstrap=own_guarded.root)), TOPICS, needed=wanted(TOPICS))
        users_group(shop)
        given: dict[tuple[str, str], list[Rule]] = {}
        for cluster, role, rule in printed_rights(file, "shop"):
            given.setdefault((cluster, role), []).append(rule)
        for (cluster, role), rights in given.items():
            places[cluster].allow(role, rights)
        for (cluster, role), rights in given.items():
            if (cluster, role) != ("hub", "alert"):  # its topic is made by the bridge's own command
                admin = Admin(places[cluster].cluster(role))
                assert lacking(admin, rights, [SECRET] if cluster == "shop" else []) == []

        assert reads(shop.cluster("pipeline"), "__consumer_offsets", "kagent-pipeline-1") is None
        assert writes(own_guarded.cluster("pipeline"), TOPICS.events) is None
        assert reads(own_guarded.cluster("worker"), TOPICS.events, TOPICS.app) is None
        worker = Admin(shop.cluster("worker"))
        assert worker.log_end([(SECRET, 0)]).found == {(SECRET, 0): 1}
        assert set(worker.described(["users"])) == {"users"}
        assert ("shop", "subscriber") not in given
        assert reads(shop.cluster("worker"), SECRET, TOPICS.app) == Code.TOPIC_AUTHORIZATION_FAILED
    finally:
        shop.broker.stop()


def test_a_pipeline_that_may_not_see_the_offsets_says_so_at_once(estate: Guarded) -> None:
    source = OffsetsSource(Admin(estate.cluster("subscriber")), threading.Event(), patient=False)

    with pytest.raises(KafkaError, match=r"__consumer_offsets .* may not be seen .`kagent acls` prints"):
        source.wait()


def capture(cluster: Cluster, folder: Path) -> Recorder:
    with FolderWriter(folder) as writer:
        wanted = CapturedGroups(lambda group: group == "users")
        recorder = Recorder(Admin(cluster), wanted, writer, 3.0, threading.Event(), lambda line: None)
        recorder.run()
    return recorder


def test_four_rights_on_topics_suffice_for_a_capture(estate: Guarded, tmp_path: Path) -> None:
    source = [Rule(operation, "topic", "__consumer_offsets") for operation in ("read", "describe")]
    topics = [Rule(operation, "topic", SECRET) for operation in ("describe", "describe_configs")]
    estate.allow("recorder", [*source, *topics])

    recorder = capture(estate.cluster("recorder"), tmp_path)

    assert (recorder.groups.names, recorder.failures) == ({"users"}, 0)
    assert read_folder(tmp_path).samples[-1].ends == {SECRET: [1]}


def test_a_capture_without_the_right_to_read_the_offsets_says_so(estate: Guarded, tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match=r"shows no __consumer_offsets.*`kagent acls` prints"):
        capture(estate.cluster("subscriber"), tmp_path)


def test_the_worker_sees_every_group_and_log_but_no_record_of_a_user(estate: Guarded) -> None:
    worker = estate.cluster("worker")
    admin = Admin(worker)

    assert "users" in admin.groups()
    assert Admin(worker).listed().kinds["users"] == ""
    assert admin.committed(["users"]) == {"users": {(SECRET, 0): 1}}
    assert admin.log_end([(SECRET, 0)]).found == {(SECRET, 0): 1}
    assert admin.topic_configs([SECRET])[SECRET]["cleanup.policy"] == "delete"
    assert writes(worker, TOPICS.recommendations) is None
    refused = Code.TOPIC_AUTHORIZATION_FAILED
    assert reads(worker, SECRET, "kagent") == refused
    assert reads(worker, "__consumer_offsets", "kagent") == refused
    assert writes(worker, TOPICS.mutes) == refused


def test_the_worker_may_create_its_changelogs_and_nothing_else(estate: Guarded) -> None:
    client = AdminClient(confluent(estate.cluster("worker"), log_level=0))
    futures = client.create_topics([NewTopic("kagent-lag-changelog", 1, 1), NewTopic("other", 1, 1)])

    futures["kagent-lag-changelog"].result(PATIENCE_S)
    with pytest.raises(Exception, match=r"TOPIC_AUTHORIZATION_FAILED|authorization"):
        futures["other"].result(PATIENCE_S)


def test_a_subscriber_reads_recommendations_and_writes_none(estate: Guarded) -> None:
    assert writes(Cluster(bootstrap=estate.root), TOPICS.recommendations) is None
    subscriber = estate.cluster("subscriber")

    assert reads(subscriber, TOPICS.recommendations, "kagent-subscriber-1") is None
    assert writes(subscriber, TOPICS.recommendations) == Code.TOPIC_AUTHORIZATION_FAILED
    assert reads(subscriber, TOPICS.events, "kagent-subscriber-1") == Code.TOPIC_AUTHORIZATION_FAILED


def test_the_bridge_reads_recommendations_and_keeps_its_positions_alone(estate: Guarded) -> None:
    bridge = estate.cluster("alert")

    assert {f.state for f in ensure(Admin(bridge), TOPICS, needed=[delivery_log(TOPICS)])} == {"ok"}
    assert writes(bridge, TOPICS.alerts) is None
    assert list(asyncio.run(DeliveryLog(bridge, TOPICS).load())) == ["k"]
    asyncio.run(current(bridge, TOPICS.recommendations))
    assert writes(bridge, TOPICS.recommendations) == Code.TOPIC_AUTHORIZATION_FAILED
    assert reads(bridge, TOPICS.events, "none") == Code.TOPIC_AUTHORIZATION_FAILED


def test_a_wrong_password_is_one_sentence(guarded: Guarded) -> None:
    with pytest.raises(KafkaError, match=r"refuses the login \(.*\): check security in the settings\."):
        Admin(guarded.cluster("worker", "wrong"), deadline=5).cluster_id()
    with pytest.raises(KafkaError, match="refuses the login"):
        Admin(guarded.cluster("worker", "wrong"), deadline=5).listed()


COMMANDS = [
    "status", "watch --open", "lag", "lag users", "check --for 1s", "explain users --live --for 1s", "keys users-records",
    "plan users --live", "assign users", "apply users", "mute users", "mutes", "topics --check", "topics", "alert",
    "capture FOLDER users --for 1s", "history write --path FOLDER --available-now", "pipeline --available-now",
]  # fmt: skip
SEEN = {"lag", "check --for 1s", "topics --check"}
"""Their answer to somebody without rights is an answer too: there is nothing to be seen, or the topics are missing."""
WAITS = "alert"
"""A service: it waits for a right that it lacks, as somebody may give it. Those with --available-now do not."""


def kagent_as(estate: Guarded, user: str, password: str, folder: Path) -> list[str]:
    """The start of a command line, for a user of the guarded broker."""
    security = {**estate.security, "username": user, "password": password}
    settings = {
        "clusters": {"main": {"bootstrap": estate.bootstrap, "security": security}},
        "alert": {"destinations": {"x": {"type": "webhook", "url": "http://127.0.0.1:9/x"}}},
        "worker": {"web_port": 0},
    }
    file = folder / "kagent.yaml"
    file.write_text(yaml.safe_dump(settings))
    return [sys.executable, "-m", "kagent", "--config", str(file)]


@pytest.mark.slow
def test_a_service_without_a_right_names_it_and_waits(estate: Guarded, tmp_path: Path) -> None:
    argv = [*kagent_as(estate, "owner", estate.password, tmp_path), WAITS]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        end = threading.Timer(60, running.kill)
        end.start()
        assert running.stderr
        said = next((line for line in running.stderr if "not started yet" in line), "")
        waits = running.poll() is None
        running.terminate()
        rest = running.stderr.read()
        end.cancel()

    assert "the user lacks CREATE on it" in said
    assert waits
    assert "Traceback" not in rest


@pytest.mark.slow
@pytest.mark.parametrize("user", ["worker", "owner"], ids=["wrong password", "no rights"])
def test_a_refused_login_or_right_is_one_sentence_in_every_command(
    estate: Guarded, user: str, tmp_path: Path
) -> None:
    password = "wrong" if user == "worker" else estate.password
    argv = kagent_as(estate, user, password, tmp_path)
    commands = [command for command in COMMANDS if password == "wrong" or command != WAITS]
    # By fours: each is a Python that loads for a second.
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(
            lambda n: subprocess.run(
                [*argv, *commands[n].replace("FOLDER", str(tmp_path / f"f{n}")).split()],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
            ),
            range(len(commands)),
        )  # fmt: skip
        for command, answer in zip(commands, answers, strict=True):
            if password != "wrong" and command in SEEN:
                assert "Traceback" not in answer.stderr, command
                continue
            said = [line for line in answer.stderr.splitlines() if line.startswith("kagent: ")]
            assert (answer.returncode, len(said), "Traceback" in answer.stderr) == (2, 1, False), (
                command,
                answer,
            )
            assert password != "wrong" or "refuses the login" in said[0], (command, said)


def test_a_lacking_right_is_named(estate: Guarded) -> None:
    with pytest.raises(KafkaError, match=r"the user lacks CREATE on it"):
        ensure(Admin(estate.cluster("owner")), Topics(prefix="other-", partitions=1))


def test_an_unreachable_broker_is_one_sentence() -> None:
    port = free_port()

    with pytest.raises(
        KafkaError, match=rf"127\.0\.0\.1:{port} cannot be reached when asked for its metadata"
    ):
        Admin(Cluster(bootstrap=f"127.0.0.1:{port}"), deadline=2).cluster_id()
    with pytest.raises(KafkaError, match=rf"127\.0\.0\.1:{port} cannot be reached"):
        Admin(Cluster(bootstrap=f"127.0.0.1:{port}"), deadline=2).listed()


def test_each_right_that_is_taken_away_is_found_and_named(estate: Guarded) -> None:
    client = AdminClient({"bootstrap.servers": estate.root, "log_level": 0})
    client.create_topics([NewTopic(CHANGELOG, 1, 1)])[CHANGELOG].result(PATIENCE_S)
    admin = Admin(estate.cluster("worker"))
    rights = [
        rule
        for rule in rules(TOPICS)["worker"]
        if not rule.name.endswith("-changelog") or rule.name == CHANGELOG
    ]
    assert lacking(admin, rights, [SECRET], ["users"]) == []

    for rule in rights:
        if rule.operation == "create":
            continue  # the topic is there already
        estate.forbid("worker", rule)
        found = until(lambda: lacking(admin, rights, [SECRET], ["users"]))
        estate.allow("worker", [rule])
        assert [lack.rule for lack in found] == [rule], rule
        assert f"worker lacks {rule.operation.upper()} on the" in str(found[0])
        assert until(lambda: not lacking(admin, rights, [SECRET], ["users"]))


@pytest.mark.parametrize("role", ["pipeline", "alert"])
def test_a_right_that_is_taken_away_is_said_and_that_it_is_back(
    estate: Guarded, role: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = estate.cluster(role)
    settings = Settings(clusters={"main": cluster}, topics=TOPICS)
    needed = {
        "pipeline": of_pipeline(settings, "main", cluster),
        "alert": [(cluster, rules(TOPICS)["alert"])],
    }
    watch = RightsWatch(needed[role], logging.getLogger("kagent.pipeline"))
    caplog.set_level("INFO", "kagent.pipeline")

    def said() -> str:
        watch.look()
        return "".join(caplog.messages)

    assert said() == ""
    for rule in rules(TOPICS)[role]:
        sentence = f"lacks {rule.operation.upper()} on the {rule.resource} {rule.name};"
        estate.forbid(role, rule)
        until(lambda: sentence in said(), sentence)  # noqa: B023
        estate.allow(role, [rule])
        until(lambda: said().endswith("No right is lacking any more."), sentence)
        caplog.clear()
