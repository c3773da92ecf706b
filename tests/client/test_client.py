"""The Python client and ``kagent watch`` on a real broker, which is killed and started again under them."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError as ClientError
from confluent_kafka import Producer

import kagent
from kagent.client import client
from kagent.contract.mute import MuteRecord
from kagent.contract.recommendation import Recommendation, State, to_bytes
from kagent.embedded.broker import Broker, die_with_parent, free_port
from kagent.embedded.jars import broker_jars
from kagent.embedded.java import java
from kagent.errors import KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.topic_reader import ReadMark
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, Topics
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOPIC = "kagent-recommendations"
DOCS = Path(__file__).parents[2] / "docs" / "subscribe.md"


class Home:
    """A broker with kagent's topics, and what is published on them."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.bootstrap = broker, broker.bootstrap
        self.thread = ThreadPoolExecutor(1)  # one for all: the broker dies with the thread that started it
        ensure(Admin(Cluster(bootstrap=broker.bootstrap)), Topics(partitions=2))

    def send(self, key: str, value: bytes | None, topic: str = TOPIC) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        producer.produce(topic, value, key)
        assert producer.flush(60) == 0

    def publish(self, *messages: Recommendation) -> None:
        for message in messages:
            self.send(f"{message.cluster}/{message.group}", to_bytes(message))

    async def power_cut(self) -> None:
        """Gone for three seconds."""
        self.broker.kill()
        await asyncio.sleep(3)
        await asyncio.get_running_loop().run_in_executor(self.thread, self.broker.start, PATIENCE_S)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections and answers nothing."""
        assert self.broker.pid is not None
        os.killpg(self.broker.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.broker.pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with Broker(tmp_path_factory.mktemp("home")) as running:
        made = Home(running)
        with made.thread:
            yield made


class Heard:
    """A subscriber at work in the background."""

    def __init__(self, messages: AsyncIterator[Any]) -> None:
        self.got: list[Any] = []
        self.task = asyncio.ensure_future(self._run(messages))

    async def _run(self, messages: Any) -> None:
        async with aclosing(messages):
            async for message in messages:
                self.got.append(message)

    def groups(self, start: str) -> list[str]:
        return [m.group for m in self.got if m.group.startswith(start)]

    async def until(self, check: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not check():
                assert not self.task.done(), self.task
                await asyncio.sleep(0.1)

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def test_a_cluster_that_answers_nothing_is_told_in_a_sentence_not_waited_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_WITHIN_S", 3)
    with (
        home.frozen(),
        pytest.raises(KafkaError, match=r"nothing came within 3 s\): brokers that lead it may be away\."),
    ):
        await client.current(Cluster(bootstrap=home.bootstrap), TOPIC)


async def test_a_subscriber_without_a_group_begins_with_what_stands_and_survives_the_broker(
    home: Home, rec: Any
) -> None:
    home.publish(rec("a-open"), rec("a-over"), rec("a-over", status="resolved"))
    home.publish(
        rec("a-zombie", revision=2, reason="the owner"),
        rec("a-zombie", revision=2),
        rec("a-zombie", revision=1),
    )
    home.send("main/a-unreadable", b"{not json")
    home.send("main/a-gone", None)
    newer = json.loads(to_bytes(rec("a-newer"))) | {"schema": 7, "mood": "blue"}
    home.send("main/a-newer", json.dumps(newer).encode())
    home.send(
        "main",
        State(cluster="main", version="1", time=1, status="watching").model_dump_json(by_alias=True).encode(),
    )
    heard = Heard(kagent.recommendations(home.bootstrap, only=lambda r: r.group.startswith("a-")))

    await heard.until(lambda: {"a-open", "a-over", "a-zombie", "a-newer"} <= set(heard.groups("a-")))
    await home.power_cut()
    await asyncio.to_thread(home.publish, rec("a-after"))
    await heard.until(lambda: "a-after" in heard.groups("a-"))
    await heard.stop()

    assert all(isinstance(m, Recommendation) for m in heard.got)
    latest = {m.group: m for m in heard.got}
    assert set(latest) == {"a-open", "a-over", "a-zombie", "a-newer", "a-after"}
    assert latest["a-zombie"].reason == "the owner"
    assert latest["a-over"].status == "resolved"
    assert (latest["a-newer"].schema_version, latest["a-newer"].model_extra) == (7, {"mood": "blue"})
    assert len(heard.groups("a-")) == len(set(heard.groups("a-"))) + 1  # a-over: opened and resolved


async def test_a_group_resumes_where_it_left_off_also_over_a_restart(home: Home, rec: Any) -> None:
    def subscriber() -> Heard:
        return Heard(kagent.recommendations(home.bootstrap, group_id="kagent-subscriber-test"))

    home.publish(rec("b-1"), rec("b-2"))
    first = subscriber()
    await first.until(lambda: set(first.groups("b-")) == {"b-1", "b-2"})
    await first.stop()
    await asyncio.to_thread(home.publish, rec("b-3"))
    await home.power_cut()

    second = subscriber()
    await second.until(lambda: "b-3" in second.groups("b-"))
    await home.power_cut()
    await asyncio.to_thread(home.publish, rec("b-4"))
    await second.until(lambda: "b-4" in second.groups("b-"))
    await second.stop()

    assert set(second.groups("b-")) == {"b-3", "b-4"}


@pytest.mark.parametrize("group_id", [None, "kagent-subscriber-errors"])
async def test_what_the_client_library_gives_up_on_is_tried_again_from_the_same_place(
    home: Home, rec: Any, group_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiokafka raises, for one, where a coordinator that is starting answers a member unusually."""
    name = f"e-{group_id is None}-"
    raised: list[str] = []
    method = "getmany" if group_id is None else "getone"
    asked = getattr(AIOKafkaConsumer, method)

    async def failing(self: Any, *partitions: Any, **options: Any) -> Any:
        if f"{name}1" in heard.groups("e-") and not raised:
            raised.append(name)
            raise ClientError("Unexpected error during coordination")
        return await asked(self, *partitions, **options)

    monkeypatch.setattr(AIOKafkaConsumer, method, failing)
    home.publish(rec(f"{name}1"))
    heard = Heard(kagent.recommendations(home.bootstrap, group_id=group_id))

    await heard.until(lambda: f"{name}1" in heard.groups("e-"))
    # The request that was under way meanwhile does not fail: a message that it brings would be heard without a failure.
    await heard.until(lambda: bool(raised))
    home.publish(rec(f"{name}2"))
    await heard.until(lambda: f"{name}2" in heard.groups("e-"))
    await heard.stop()

    assert raised == [name]
    if group_id is None:  # a group may hear twice what it had not committed
        assert len(heard.got) == len({(m.group, m.status) for m in heard.got})


async def test_what_cannot_be_read_at_the_start_is_one_sentence(home: Home) -> None:
    with pytest.raises(KafkaError, match="The topic nowhere does not exist"):
        await anext(kagent.recommendations(home.bootstrap, topic="nowhere"))
    with pytest.raises(KafkaError, match="cannot be reached"):
        await anext(kagent.recommendations(f"127.0.0.1:{free_port()}"))


def test_watch_is_lines_in_a_pipe_and_a_table_on_a_terminal(home: Home, rec: Any, tmp_path: Path) -> None:
    evil = "c-<script>\x1b[2J"
    home.publish(rec(evil, severity="page"), rec("c-plain"), rec("c-over"), rec("c-over", status="resolved"))
    command = [sys.executable, "-m", "kagent", "--bootstrap", home.bootstrap, "watch", "--open"]

    piped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
    objects = subprocess.run([*command, "--json"], capture_output=True, check=True, timeout=PATIENCE_S).stdout
    terminal = on_a_terminal(command)

    assert "\x1b" not in piped
    assert "OPEN       c-<script>\\x1b[2J  uneven work  page  skew 2.50  none" in piped
    assert "c-over" not in piped
    assert {json.loads(line)["group"] for line in objects.splitlines() if b'"group":"c-' in line} == {
        evil,
        "c-plain",
    }
    assert "FIRST ACTION" in terminal
    assert "\x1b[1;31m" in terminal
    assert "\x1b[2J" not in terminal


def first_line(home: Home, about: str) -> str:
    """The first line of a piped ``kagent watch`` that has this text."""
    command = [sys.executable, "-m", "kagent", "--bootstrap", home.bootstrap, "watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        ending = threading.Timer(PATIENCE_S, watch.kill)
        ending.start()
        line = next((line for line in watch.stdout if about in line), "")
        ending.cancel()
        watch.send_signal(signal.SIGINT)
    assert watch.returncode == 0
    return line


def test_watch_in_a_pipe_says_until_when_a_group_is_muted(home: Home, rec: Any) -> None:
    home.send("main/e-muted", MuteRecord(until=4_000_000_000_000).to_bytes(), Topics().mutes)
    home.publish(rec("e-muted"))

    assert "muted until" in first_line(home, "e-muted")


def test_watch_in_a_pipe_begins_with_the_newest_state_not_with_those_it_replaced(home: Home) -> None:
    now = int(time.time() * 1000)
    for ago_s in (500, 470, 5):
        state = State(cluster="f-main", version="1", time=now - ago_s * 1000, status="watching")
        home.send("f-main", to_bytes(state))

    assert first_line(home, "f-main").startswith("f-main is watched: ")


async def test_of_the_states_that_stand_only_the_newest_counts_and_then_each(rec: Any) -> None:
    def state(ms: int) -> State:
        return State(cluster="main", version="1", time=ms, status="watching")

    async def messages() -> AsyncGenerator[Any, None]:
        before = [ReadMark.BEGIN, state(1), rec("a"), state(2), state(3)]
        for each in (*before, ReadMark.CAUGHT_UP, state(4), state(5)):
            yield each

    got = [message async for message in client.newest_states(messages())]

    assert [m.time if isinstance(m, State) else m.group for m in got] == ["a", 3, 4, 5]


def test_the_java_example_of_the_docs_runs_as_it_stands(home: Home, rec: Any, tmp_path: Path) -> None:
    modules = subprocess.run([java(), "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler@" not in modules:
        pytest.skip("this Java is a runtime without a compiler")
    home.publish(rec("d-java", reason="one is late"))
    home.send("main/d-unreadable", b"{not json")
    home.send("main/d-gone", None)
    home.publish(rec("d-late", status="resolved", valid_until=1))
    source = tmp_path / "Subscriber.java"
    source.write_text(DOCS.read_text().split("```java\n")[1].split("```")[0])
    path = os.pathsep.join(map(str, broker_jars()))

    with subprocess.Popen(
        [java(), "-cp", path, str(source), home.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=die_with_parent,
    ) as process:
        timer = threading.Timer(PATIENCE_S, process.kill)
        timer.start()
        assert process.stdout is not None
        said: set[str] = set()
        for line in process.stdout:
            said |= {line.strip()} if line.startswith("d-") else set()
            if len(said) == 2:
                break
        process.kill()
        timer.cancel()

    assert said == {
        "d-java open rebalance: one is late",
        "d-late resolved rebalance: d-late: one member is far behind. (do not act on it any more)",
    }


def on_a_terminal(command: list[str]) -> str:
    """What it prints where there is a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "60"}
    process = subprocess.Popen(command, stdout=theirs, stdin=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # Linux says so when the other side is closed
        while chunk := os.read(ours, 65_536):
            said += chunk
    os.close(ours)
    assert process.wait(PATIENCE_S) == 0
    return said.decode()
