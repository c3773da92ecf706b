"""What waits is committed before it is acknowledged, and a process that is told to end does end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from kagent.settings import Cluster
from kagent.worker import outbox
from kagent.worker.fence import PartitionProducers
from kagent.worker.outbox import Outbox
from tests.fixtures.waiting import until_async


class Producers(PartitionProducers):
    """Commits when it is told to."""

    def __init__(self) -> None:
        super().__init__(Cluster(bootstrap="127.0.0.1:9"), "app", 15)
        self.go_on, self.began, self.committed, self.stopped_within = asyncio.Event(), 0, 0, 0

    def owns(self, partition: int) -> bool:
        return True

    async def write(
        self, partition: int, rows: Mapping[str, Sequence[Any]], messages: Sequence[Any]
    ) -> dict[str, list[int]]:
        self.began += 1
        await self.go_on.wait()
        self.committed += 1
        return {}

    async def take_over(self, partitions: Any) -> None:
        pass

    async def stop(self) -> None:
        self.stopped_within = self.began - self.committed


async def under_way() -> tuple[Producers, Outbox, list[Any]]:
    """A flush of partition 1 that waits for the broker, and nothing else that waits."""
    producers, acknowledged = Producers(), list[Any]()
    made = Outbox(producers, acknowledged.append)
    await made.take_over([1])
    made.publish(1, "topic", b"key", b"value")
    made.hold(1, "event")
    asyncio.get_running_loop().create_task(made.flush(1))
    await until_async(lambda: producers.began)
    return producers, made, acknowledged


@pytest.mark.parametrize("ends", [Outbox.close, Outbox.revoke])
def test_nothing_is_closed_or_given_away_in_the_middle_of_a_transaction(ends: Any) -> None:
    async def run() -> None:
        producers, made, acknowledged = await under_way()

        ending = asyncio.get_running_loop().create_task(ends(made))
        await asyncio.sleep(0)
        producers.go_on.set()
        await ending

        assert (producers.committed, producers.stopped_within, acknowledged) == (1, 0, ["event"])

    asyncio.run(run())


def test_a_cluster_that_does_not_answer_does_not_keep_a_process_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "LAST_FLUSH_WITHIN_S", 0.05)

    async def run() -> None:
        _, made, acknowledged = await under_way()

        await made.close()

        assert acknowledged == []  # so it comes again

    asyncio.run(run())


def test_a_transaction_that_fails_while_the_process_ends_starts_nothing_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("a new process, which nobody told to end"))

    async def run() -> None:
        producers = PartitionProducers(Cluster(bootstrap="127.0.0.1:9"), "app", 15)
        producers._producers[1] = cast(Any, Closed())
        acknowledged = list[Any]()
        made = Outbox(producers, acknowledged.append)
        made._open = True
        made.publish(1, "topic", b"key", b"value")
        made.hold(1, "event")

        await made.close()

        assert acknowledged == []  # so it comes again

    asyncio.run(run())


class Closed:
    """A producer that was fenced off or closed."""

    async def begin_transaction(self) -> None:
        raise RuntimeError("ProducerClosed")

    async def stop(self) -> None:
        pass
