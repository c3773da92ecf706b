"""The admin client: one that reaches no broker any more is made anew, and none outlives who asks."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kagent.embedded.broker import free_port
from kagent.errors import KafkaError
from kagent.kafka.admin import RENEW_AFTER, RENEW_WAITED_S, Admin
from kagent.kafka.reach import check
from kagent.settings import Cluster
from tests.fixtures.waiting import until


@pytest.mark.slow
def test_a_client_that_reaches_no_broker_time_and_again_is_made_anew() -> None:
    admin = Admin(Cluster(bootstrap=f"127.0.0.1:{free_port()}"), deadline=0.2)
    clients = []

    for _ in range(RENEW_AFTER + 1):
        clients.append(admin._client)
        with pytest.raises(KafkaError, match="cannot be reached"):
            admin.cluster_id()

    assert len({id(client) for client in clients[:RENEW_AFTER]}) == 1
    assert clients[-1] is not clients[0]


def test_a_client_that_was_answered_is_made_anew_after_one_question_that_waited_long_in_vain() -> None:
    admin = Admin(Cluster(bootstrap="127.0.0.1:1"))
    first = admin._client

    admin.note(reached=False, waited_s=RENEW_WAITED_S)  # it has not found its brokers yet
    admin.note(reached=True, waited_s=RENEW_WAITED_S)
    assert admin._client is first
    admin.note(reached=False, waited_s=RENEW_WAITED_S)
    assert admin._client is not first


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nothing is freed but what nobody refers to."""
    gc.disable()
    yield
    gc.enable()


def client_threads() -> set[str]:
    """Threads of librdkafka in this process."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text()
        except OSError:
            continue  # it has just ended
        if name.startswith("rdk:"):
            found.add(task.name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for threads")
@pytest.mark.usefixtures("uncollected")
def test_a_question_that_fails_leaves_no_client_behind() -> None:
    cluster, before = Cluster(bootstrap=f"127.0.0.1:{free_port()}"), client_threads()

    with Admin(cluster, deadline=0.2) as admin:
        made = client_threads() - before
        assert made
        with pytest.raises(KafkaError, match="cannot be reached"):
            admin.cluster_id()

    until(lambda: not client_threads() & made, "the client's threads end")


@pytest.mark.usefixtures("uncollected")
def test_a_connection_that_fails_keeps_nothing_of_its_caller() -> None:
    class Held: ...

    def asks() -> None:
        _held = Held()
        assert not check(Cluster(bootstrap=f"127.0.0.1:{free_port()}"))

    asks()
    assert not [each for each in gc.get_objects() if isinstance(each, Held)]


@pytest.mark.kafka
def test_an_answer_ends_the_count(broker: str) -> None:
    admin = Admin(Cluster(bootstrap=broker))
    first = admin._client

    for _ in range(RENEW_AFTER):
        admin.note(reached=False)
        admin.cluster_id()

    assert admin._client is first
