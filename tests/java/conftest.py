"""A broker with kagent's assignor, shared by the tests here; each uses topics and groups of its own."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.assignor import CLASS, JAR, SERVER_SIDE, UNIFORM_CLASS
from kagent.contract.recommendation import Recommendation, to_bytes
from kagent.embedded.broker import Broker, die_with_parent, free_port
from kagent.embedded.jars import broker_jars
from kagent.embedded.java import java
from kagent.group_key import group_key
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, Topics
from tests.fixtures.waiting import PATIENCE_S, until

RUNS = itertools.count()

Held = dict[str, frozenset[tuple[str, int]]]


def assignor_settings(port: int, apply: str = "follow") -> dict[str, str]:
    """kagent's assignor first, so that it decides for every group that names none; and as ``uniform`` too."""
    names = [CLASS, UNIFORM_CLASS, f"{SERVER_SIDE}.RangeAssignor"]
    return {
        "group.consumer.assignors": ",".join(names),
        "kagent.bootstrap.servers": f"127.0.0.1:{port}",
        "kagent.apply": apply,
        # 45 s by default: so long would a member stay whose process was killed.
        "group.consumer.session.timeout.ms": "10000",
    }


@dataclass
class Stage:
    """One topic and one group of three members on a broker with the assignor."""

    bootstrap: str
    name: str
    consumers: list[Consumer] = field(default_factory=list)

    @property
    def cluster(self) -> Cluster:
        return Cluster(bootstrap=self.bootstrap)

    def topic(self, partitions: int) -> None:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        client.create_topics([NewTopic(self.name, partitions, 1)])[self.name].result(PATIENCE_S)
        until(lambda: self.name in Admin(self.cluster).topics([self.name]))

    def join(self, count: int, **config: Any) -> None:
        for number in range(count):
            settings = {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.name,
                "group.protocol": "consumer",
            }
            consumer = Consumer({**settings, "client.id": f"c{number}", "log_level": 0, **config})
            consumer.subscribe([self.name])
            self.consumers.append(consumer)

    def poll(self) -> None:
        for consumer in self.consumers:
            consumer.poll(0.02)

    def targets(self) -> Held:
        """What the coordinator wants each member to hold."""
        group = Admin(self.cluster).describe([self.name])[self.name]
        return {m.member_id: m.target if m.target is not None else m.assigned for m in group.members}

    def held(self) -> Held:
        """What each member holds; empty while the group is not settled."""
        self.poll()
        group = Admin(self.cluster).describe([self.name])[self.name]
        settled = group.state == "stable" and all(m.target in (None, m.assigned) for m in group.members)
        return {m.member_id: m.assigned for m in group.members} if settled else {}

    def settled(self, members: int, partitions: int) -> Held:
        def whole() -> Held:
            held = self.held()
            full = len(held) == members and sum(map(len, held.values())) == partitions
            return held if full else {}

        found: Held = until(whole)
        return found

    def advise(
        self, before: Held, after: Mapping[str, frozenset[tuple[str, int]]], **fields: Any
    ) -> Recommendation:
        """Put a recommendation on the topic that turns one into the other."""
        topic = Admin(self.cluster).topics([self.name])[self.name]
        rec = recommendation(self.name, before, after).model_copy(
            update={"topic_ids": {self.name: topic.id}} | fields
        )
        self.write("kagent-recommendations", to_bytes(rec))
        return rec

    def write(self, topic: str, value: bytes | None) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        producer.produce(topic, value, group_key("main", self.name).encode())
        assert producer.flush(PATIENCE_S) == 0

    def until(self, condition: Callable[[], Any]) -> Any:
        """The condition's first true answer; fails after a deadline."""
        return until(condition)

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.close()


@dataclass
class Members:
    """Java consumers in a process of their own; ``lines`` is what they said so far (see Members.java)."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """(member, event, partition or error), in order."""
        parts = [line.split(" ", 3) for line in self.log.read_text().splitlines()]
        return [(p[1], p[2], p[3]) for p in parts if len(p) == 4]

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture(scope="session")
def members_program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """How Members.java is run: compiled once where there is a JDK, else by Java at every start."""
    path = os.pathsep.join(str(jar) for jar in (*broker_jars(), JAR))
    source, javac = Path(__file__).with_name("Members.java"), shutil.which("javac")
    options = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]
    if javac is None:
        return [*options, path, str(source)]
    folder = tmp_path_factory.mktemp("members")
    subprocess.run([javac, "-cp", path, "-d", str(folder), str(source)], check=True, timeout=120)
    return [*options, os.pathsep.join((str(folder), path)), "Members"]


@pytest.fixture
def members(stage: Stage, members_program: list[str], tmp_path: Path) -> Iterator[Callable[..., Members]]:
    """Starts so many Java consumers of the classic protocol with these settings; all are stopped after the test."""
    started: list[Members] = []

    def start(count: int, **config: str) -> Members:
        log = tmp_path / f"members-{len(started)}.log"
        usual = {"bootstrap.servers": stage.bootstrap, "group.id": stage.name, "heartbeat.interval.ms": "500"}
        pairs = [f"{name}={value}" for name, value in {**usual, **config}.items()]
        with log.open("w") as out, log.with_suffix(".err").open("w") as errors:
            process = subprocess.Popen(
                [*members_program, stage.name, str(count), *pairs],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=errors,
                text=True,
                preexec_fn=die_with_parent,
            )
        started.append(Members(process, log))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.stop()


def recommendation(
    group: str,
    before: Mapping[str, frozenset[tuple[str, int]]],
    after: Mapping[str, frozenset[tuple[str, int]]],
) -> Recommendation:
    """As the worker makes it for a KIP-848 group; members are named ``member of <id>``."""
    now = int(time.time() * 1000)
    holder = {pair: member for member, held in before.items() for pair in held}
    names = {member: f"member of {member}" for member in before}
    moves = [
        {"topic": t, "partition": p, "from": names[holder[t, p]], "to": names[member]}
        for member, held in after.items()
        for t, p in sorted(held)
        if holder[t, p] != member
    ]
    return Recommendation.model_validate(
        {
            "id": f"incident of {group}",
            "cluster": "main",
            "group": group,
            "status": "open",
            "verdict": "rebalance",
            "severity": "ticket",
            "confidence": "high",
            "reason": "One member holds most of the group's backlog.",
            "group_kind": "consumer",
            "opened_at": now,
            "as_of": now,
            "valid_until": now + 600_000,
            "skew": {"now": 2.5, "after": 1.1},
            "members": [
                {"member": names[m], "member_id": m, "partitions": len(h)} for m, h in before.items()
            ],
            "moves": moves,
            "move_count": len(moves),
            "assignment": {names[m]: sorted(h) for m, h in after.items()},
            "actions": [{"type": "follow_plan", "how": "Follow.", "feasible": "yes"}],
            "basis": {"generation": None, "digest": "d", "partitions": {group: len(holder)}},
        }
    )


@pytest.fixture(scope="session")
def assigning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker that the tests share."""
    port = free_port()
    folder = tmp_path_factory.mktemp("assigning")
    with Broker(folder, port=port, plugins=(JAR,), extra=assignor_settings(port)) as running:
        ensure(Admin(Cluster(bootstrap=running.bootstrap)), Topics())
        yield running


@pytest.fixture
def stage(assigning: Broker, request: pytest.FixtureRequest) -> Iterator[Stage]:
    # A number of its own: what a failed run left behind is not taken for this run's.
    name = f"{request.node.name.replace('[', '-').rstrip(']')[:80]}-{next(RUNS)}"
    made = Stage(assigning.bootstrap, name)
    yield made
    made.close()


@pytest.fixture
def settings_of() -> Callable[..., dict[str, str]]:
    """The broker settings with the assignor, for a broker of a test's own."""
    return assignor_settings


@pytest.fixture
def stage_on() -> Iterator[Callable[[str, str], Stage]]:
    """A stage on a broker of a test's own."""
    made: list[Stage] = []

    def on(bootstrap: str, name: str) -> Stage:
        made.append(Stage(bootstrap, name))
        return made[-1]

    yield on
    for one in made:
        one.close()
