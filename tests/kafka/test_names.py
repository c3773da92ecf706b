"""While a name server hangs or is away, connections go where it last said, and nothing waits for it twice."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from kagent import commands
from kagent.errors import KafkaError
from kagent.kafka import names
from kagent.kafka.admin import Admin
from kagent.kafka.names import Names
from kagent.settings import Cluster
from tests.fixtures.waiting import PATIENCE_S

ANSWER = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9092))]
QUESTION = ("broker.example", 9092, 0, socket.SOCK_STREAM)


class NameServer:
    """Answers, fails with ``error``, or hangs until it is told to go on."""

    def __init__(self) -> None:
        self.asked, self.error = 0, 0
        self.goes_on = threading.Event()
        self.goes_on.set()

    def __call__(self, *question: Any) -> Any:
        self.asked += 1
        assert self.goes_on.wait(PATIENCE_S)
        if self.error:
            raise socket.gaierror(self.error, "no address")
        return ANSWER


@pytest.fixture
def server() -> NameServer:
    return NameServer()


@pytest.fixture
def known(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> Names:
    monkeypatch.setattr(names, "PATIENCE_S", 0.05)
    found = Names(server)
    asyncio.run(found.answer(*QUESTION))
    return found


async def test_the_last_answer_stands_while_the_name_server_hangs(known: Names, server: NameServer) -> None:
    server.goes_on.clear()

    answers = await asyncio.gather(*(known.answer(*QUESTION) for _ in range(100)))

    assert answers == [ANSWER] * 100
    assert server.asked == 2  # for all of them once
    server.goes_on.set()


def test_the_last_answer_stands_while_no_name_server_answers(known: Names, server: NameServer) -> None:
    server.error = socket.EAI_AGAIN

    assert asyncio.run(known.answer(*QUESTION)) == ANSWER
    assert known.answer_within(PATIENCE_S, *QUESTION) == ANSWER


def test_a_name_that_is_gone_is_gone(known: Names, server: NameServer) -> None:
    server.error = socket.EAI_NONAME

    with pytest.raises(socket.gaierror):
        asyncio.run(known.answer(*QUESTION))
    with pytest.raises(socket.gaierror):
        known.answer_within(PATIENCE_S, *QUESTION)


def test_a_name_without_an_answer_is_waited_for_no_longer_than_one_says(server: NameServer) -> None:
    server.goes_on.clear()

    with pytest.raises(TimeoutError):
        Names(server).answer_within(0.05, *QUESTION)

    server.goes_on.set()


async def test_who_ceases_to_wait_takes_the_answer_from_nobody(server: NameServer) -> None:
    server.goes_on.clear()
    waited_for = Names(server)
    impatient, patient = (asyncio.ensure_future(waited_for.answer(*QUESTION)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    server.goes_on.set()

    assert await patient == ANSWER


@pytest.mark.slow
def test_that_a_name_has_no_address_is_said_with_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    server = NameServer()
    server.error = socket.EAI_AGAIN
    monkeypatch.setattr(names, "NAMES", Names(server))
    monkeypatch.setattr(names, "PATIENCE_S", 0.05)
    admin = Admin(Cluster(bootstrap="broker.example:9092"), deadline=1)

    with pytest.raises(KafkaError, match=r"the name broker.example has no address \(no address\)"):
        admin.topics(["orders"])

    server.error = 0
    names.NAMES.answer_within(PATIENCE_S, *QUESTION)
    assert names.lacking(["broker.example"]) is None


def test_a_loop_ends_though_the_name_server_hangs(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.goes_on.clear()
    monkeypatch.setattr(names, "NAMES", Names(server))

    async def connect() -> None:
        async with asyncio.timeout(0.05):
            await asyncio.open_connection("broker.example", 9092)

    with pytest.raises(TimeoutError):
        names.run(connect())

    assert not server.goes_on.is_set()
    server.goes_on.set()


def test_a_name_is_connected_to_at_any_of_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # nothing listens there
        addresses = [(*ANSWER[0][:4], s.getsockname()) for s in (other, listening)]
        monkeypatch.setattr(names, "NAMES", Names(lambda *_: addresses))

        with names.connected("broker.example", 9092, PATIENCE_S) as made:
            assert made.getpeername() == listening.getsockname()


def test_no_command_waits_at_its_end_for_a_name_server_that_hangs() -> None:
    """As asyncio's own pool of threads does."""
    folder = Path(commands.__file__).parent
    assert [path.name for path in folder.glob("*.py") if "asyncio.run(" in path.read_text("utf-8")] == []
