"""A whole kagent for one test: its own broker, pipeline and worker as processes, and consumers that commit for real."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
import yaml
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.client.client import Message, current
from kagent.contract.recommendation import Recommendation, State
from kagent.demo.topology import DemoMember
from kagent.embedded.broker import Broker, die_with_parent, free_port
from kagent.errors import KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Key
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, load
from tests.fixtures.cast import commit_when_loaded
from tests.fixtures.waiting import PATIENCE_S

POLICY = {
    "settle": 3,
    "min_behind": 3,
    "hold": 3,
    "cooldown": 5,
    "update_every": 3,
    "cadence": 1,
}


LOG_LINES = 15
# A short life: Java's second compiler and its parallel collector cost more than they give back within minutes. Measured, each alone, in
# CPU seconds of Java from the process's start to its first batch: without the second compiler 31 → 19, with the serial collector 36 → 28.
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Same(NamedTuple):
    """Two things that a test waits to become equal; if they do not, the failure shows both."""

    found: Any
    expected: Any

    def __bool__(self) -> bool:
        return bool(self.found == self.expected)


@dataclass
class Kagent:
    """Processes of one kagent around one broker. Groups and loads are made by the test."""

    folder: Path
    broker: Broker
    worker_settings: dict[str, Any] = field(default_factory=dict)
    topic_settings: dict[str, Any] = field(default_factory=dict)
    logins: dict[str, dict[str, str]] = field(default_factory=dict)
    """Process → variables with its own way to the broker."""
    releases: dict[str, Path] = field(default_factory=dict)
    """Process → folder with the package that it runs; this tree's where nothing is said."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "kagent.yaml"

    @property
    def cluster(self) -> Cluster:
        return Cluster(bootstrap=self.broker.bootstrap)

    def configure(self, policy: dict[str, Any] = POLICY) -> None:
        worker = {
            "tick": 1,
            "flush": 1,
            "sample": 0.5,
            "state_interval": 1,
            "web_port": free_port(),
            "web_host": "127.0.0.1",
        }
        values = {
            "clusters": {"main": {"bootstrap": self.broker.bootstrap}},
            "topics": {"partitions": 2, **self.topic_settings},
            "pipeline": {
                "trigger": 1,
                "checkpoint": str(self.folder / "checkpoint"),
                "driver_memory": "512m",
                "options": {"spark.driver.defaultJavaOptions": SHORT_LIVED_JAVA},
            },
            "worker": {**worker, "data": str(self.folder / "data"), **self.worker_settings},
            "policy": policy,
        }
        self.config.write_text(yaml.safe_dump(values))

    def start(self, name: str, *arguments: str) -> None:
        """``kagent ARGUMENTS`` as a process of its own."""
        self.start_module(name, "kagent", "--config", str(self.config), *arguments)

    def start_module(self, name: str, module: str, *arguments: str) -> None:
        """``python -m MODULE ARGUMENTS``, with the login of this name if there is one."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
                env={**os.environ, "PYTHONWARNINGS": "default", **self.logins.get(name, {})},
                cwd=self.releases.get(name),  # Python and Faust look for modules there first
            )

    def start_pipeline(self) -> None:
        self.start("pipeline", "pipeline", "--master", "local[1]")

    def start_worker(self) -> None:
        self.start("worker", "worker")

    def kill(self, name: str) -> None:
        """kill -9, with all that it started."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):  # it ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)

    def stop(self, name: str) -> int:
        """SIGTERM; the exit code."""
        process = self.processes.pop(name)
        process.terminate()
        return process.wait(120)

    def member(self, group: str, place: int, topics: tuple[str, ...], **said: Any) -> None:
        """A consumer process of aiokafka: ``start`` (what each place holds), ``cost`` and ``commit`` in seconds."""
        member = DemoMember(self.broker.bootstrap, group, place, topics, **said)
        self.start_module(member.client_id, "kagent.demo.member", orjson.dumps(member).decode())

    def load(self, topic: str, rates: list[float]) -> None:
        """A producer process: so many records/s into each partition."""
        loads = [{"topic": topic, "rates": rates, "backlog": []}]
        self.start_module(
            f"load-{topic}", "kagent.demo.producer", self.broker.bootstrap, orjson.dumps(loads).decode()
        )

    def eventually(self, what: str, check: Callable[[], Any], deadline: float = PATIENCE_S) -> Any:
        """Wait until ``check`` returns something true; fail with what it last returned and the ends of the logs.

        A broker that does not answer yet is one more thing to wait for.
        """
        until = time.monotonic() + deadline
        while True:
            try:
                found = check()
            except (KafkaError, KafkaException) as error:
                found = None
                last = error
            else:
                last = found
            if found:
                return found
            if time.monotonic() > until:
                pytest.fail(f"not within {deadline:.0f} s: {what} (last seen: {last!r})\n{self.ends()}")
            dead = [name for name in self.processes if self.ended(name)]
            if dead:
                pytest.fail(f"while waiting ({what}) these ended: {', '.join(dead)}\n{self.ends()}")
            time.sleep(0.25)

    def ended(self, name: str) -> bool:
        process = self.processes.get(name)
        return process is not None and process.poll() is not None

    def ends(self) -> str:
        """The last lines of each process's log."""
        return "\n".join(
            f"--- {name} ({process.poll()}):\n" + "\n".join(self.log(name).splitlines()[-LOG_LINES:])
            for name, process in self.processes.items()
        )

    @contextmanager
    def ended_if_it_fails(self) -> Iterator[None]:
        """A second try beside what the first one left running would share its consumer groups."""
        try:
            yield
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def published(self) -> dict[str, Message]:
        """The compacted state of the recommendations topic."""
        # In a thread of its own: Playwright's event loop runs in the one of a test that has a page open.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, current(self.cluster, "kagent-recommendations")).result()

    def state(self, since: float = 0.0) -> State | None:
        """The latest state message, if it is young and not older than ``since`` (seconds of the epoch)."""
        found = self.published().get("main")
        oldest = max(since, time.time() - 10) * 1000
        return found if isinstance(found, State) and found.time >= oldest else None

    def wait_until_watching(self, deadline: float = PATIENCE_S) -> None:
        def watching() -> bool:
            state = self.state()
            return state is not None and state.status == "watching"

        self.eventually("kagent watches", watching, deadline)

    def incident(self, group: str) -> Recommendation | None:
        found = self.published().get(f"main/{group}")
        return found if isinstance(found, Recommendation) else None

    def history(self) -> list[Recommendation]:
        """Every message about incidents that was ever sent, in order."""
        return [
            m
            for m in (message_of(v) for v in self.read("kagent-recommendations"))
            if isinstance(m, Recommendation)
        ]

    def read(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """All records of a topic, key and value."""
        config = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.id": "kagent-test-reader",
            "enable.auto.commit": False,
        }
        consumer = Consumer({**config, "enable.partition.eof": True})
        partitions = len(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        found, ended = [], 0
        until = time.monotonic() + 30
        while ended < partitions and time.monotonic() < until:
            record = consumer.poll(1)
            if record is None:
                continue
            if record.error():
                ended += 1
                continue
            found.append((record.key(), record.value()))
        consumer.close()
        return found

    def lag_table(self) -> dict[str, dict[Key, int]]:
        """The committed offsets that the worker's lag table holds, from its changelog: group → (topic, partition)."""
        rows: dict[bytes, dict[str, Any] | None] = {}
        for key, value in self.read("kagent-lag-changelog"):
            rows[key or b""] = orjson.loads(value) if value else None
        found: dict[str, dict[Key, int]] = {}
        for row in rows.values():
            if row is None:
                continue
            commits = row["commits"]
            held = found.setdefault(row["group"], {})
            columns = zip(commits["partition"], commits["committed"], strict=True)
            held |= {(row["topic"], p): offset for p, offset in columns if offset >= 0}
        return {group: held for group, held in found.items() if held}

    def committed(self) -> dict[str, dict[Key, int]]:
        """What the broker's admin API says: group → (topic, partition) → offset, without kagent's own groups."""
        admin = Admin(self.cluster)
        names = [name for name in admin.groups() if not name.startswith("kagent")]
        return {group: held for group, held in admin.committed(names).items() if held}

    def assert_table_equals_admin(self, groups: Collection[str] | None = None) -> None:
        """The lag table equals what the broker says, for every partition of these groups (of every group)."""

        def same() -> Same:
            sides = self.lag_table(), self.committed()
            return Same(*({g: h for g, h in side.items() if groups is None or g in groups} for side in sides))

        self.eventually("the lag table equals the admin API", same)

    def topic(self, name: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        # Without a number of replicas: as many as the broker makes by default.
        admin.create_topics([NewTopic(name, partitions)])[name].result(PATIENCE_S)

    def produce(self, topic: str, counts: dict[int, int]) -> None:
        """So many records into each partition."""
        # Idempotent: a retry of what a dying broker had taken would make the log longer than was asked for.
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True})
        for partition, count in counts.items():
            for _ in range(count):
                producer.produce(topic, b"x", partition=partition)
        assert producer.flush(PATIENCE_S) == 0

    def commit(self, group: str, offsets: dict[Key, int]) -> None:
        """Commit as a group without members does."""
        config = {"bootstrap.servers": self.broker.bootstrap, "group.id": group, "enable.auto.commit": False}
        consumer = Consumer(config)
        parts = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]

        def taken() -> bool:
            commit_when_loaded(consumer, parts)
            return True

        self.eventually("the commit is taken", taken)
        consumer.close()


@pytest.fixture(scope="module")
def policy() -> dict[str, Any]:
    """Waits that are short enough for a test; only what lasts a minute opens, so that its backlog outlasts every starved moment."""
    return {**POLICY, "hold": 60}


def message_of(record: tuple[bytes | None, bytes | None]) -> Message | None:
    from kagent.client.client import parsed

    return parsed(*record)


@pytest.fixture(scope="module")
def kagent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Kagent]]:
    """Makes a kagent around a broker of its own; all is stopped after the module's tests."""
    made: list[Kagent] = []

    def make(policy: dict[str, Any] = POLICY, extra: dict[str, str] | None = None, **options: Any) -> Kagent:
        folder = tmp_path_factory.mktemp("kagent")
        running = options.pop("broker", None) or Broker(folder / "broker", extra=extra or {}).start()
        found = Kagent(folder, running, **options)
        made.append(found)
        found.configure(policy)
        ensure(Admin(found.cluster), load(found.config).topics)
        return found

    yield make
    for one in made:
        one.end()
        one.broker.stop()
