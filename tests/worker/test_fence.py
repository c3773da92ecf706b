"""Producers of a takeover that does not succeed are stopped, whatever ended it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.errors import InvalidTimestampError

from kagent.settings import Cluster
from kagent.worker import fence
from kagent.worker.fence import PartitionProducers


class Producer:
    """Starts at once, never, or with an error, by its partition."""

    made: list[Producer]

    def __init__(self, **options: Any) -> None:
        self.partition, self.running = int(options["transactional_id"].rpartition("-")[2]), False
        Producer.made.append(self)

    async def start(self) -> None:
        self.running = True
        if self.partition == 1:
            await asyncio.Event().wait()
        if self.partition == 2:
            raise OSError("no such host")

    async def stop(self) -> None:
        self.running = False


@pytest.fixture(autouse=True)
def producers(monkeypatch: pytest.MonkeyPatch) -> None:
    Producer.made = []
    monkeypatch.setattr("kagent.worker.fence.AIOKafkaProducer", Producer)


def running() -> list[int]:
    return [producer.partition for producer in Producer.made if producer.running]


@pytest.mark.asyncio
async def test_a_takeover_that_is_cancelled_leaves_no_producer_running() -> None:
    fence = PartitionProducers(Cluster(bootstrap="127.0.0.1:1"), "kagent", 1)
    takeover = asyncio.create_task(fence.take_over([0, 1]))
    for _ in range(10):  # more turns of the loop than it takes to come to the wait
        await asyncio.sleep(0)
    assert running() == [0, 1]

    takeover.cancel()

    with pytest.raises(asyncio.CancelledError):
        await takeover
    assert running() == []


@pytest.mark.asyncio
async def test_a_takeover_of_which_one_producer_fails_leaves_none_running() -> None:
    fence = PartitionProducers(Cluster(bootstrap="127.0.0.1:1"), "kagent", 1)

    with pytest.raises(OSError, match="no such host"):
        await fence.take_over([0, 2, 3])

    assert running() == []


@pytest.mark.asyncio
async def test_a_takeover_that_succeeds_keeps_them_until_the_end() -> None:
    fence = PartitionProducers(Cluster(bootstrap="127.0.0.1:1"), "kagent", 1)

    await fence.take_over([0, 3])
    assert running() == [0, 3]
    await fence.stop()

    assert running() == []


def test_a_worker_whose_clock_the_broker_refuses_names_its_clock(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def ended(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr("logging.shutdown", lambda: None)
    monkeypatch.setattr("os.execv", ended)

    with pytest.raises(SystemExit):
        fence.leave(0, InvalidTimestampError())

    assert (
        "this host's clock is further ahead of the brokers' than message.timestamp.after.max.ms allows"
        in caplog.text
    )
