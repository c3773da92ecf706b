"""Reads what stands under one group's key on kagent's topics, in a thread of its own, so that no assignor has to.

Each time both topics were read to their ends there is a new Snapshot; while they cannot be, the last one grows old.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import replace

import orjson
from tenacity import AsyncRetrying

from kagent.client.client import parsed
from kagent.contract.recommendation import Recommendation
from kagent.follow.decision_types import Snapshot
from kagent.group_key import group_key
from kagent.kafka.names import run
from kagent.kafka.topic_reader import ReadMark, UpToDate, read_forever
from kagent.retry import BACKOFF, warned
from kagent.settings import Cluster, Topics

log = logging.getLogger("kagent.follow")

TICK_S = 0.5
END_WITHIN_S = 15.0
LARGEST = 4 * 1024 * 1024
"""Bytes of a message; longer ones are not looked into."""
FOREVER = float("inf")


def keep(snapshot: Snapshot, topics: Topics, topic: str, value: bytes | None) -> Snapshot:
    """The snapshot after a message under the group's key."""
    if topic == topics.mutes:
        return replace(snapshot, muted_until=_muted_until(value))
    if value is None:
        return replace(snapshot, recommendation=None, unreadable=False)
    message = parsed(None, value) if len(value) <= LARGEST else None
    read = message if isinstance(message, Recommendation) else None
    return replace(snapshot, recommendation=read, unreadable=read is None)


def _muted_until(value: bytes | None) -> float:
    """Seconds since the epoch; a mute that cannot be read holds until it is taken back."""
    if value is None:
        return 0.0
    try:
        return int(orjson.loads(value)["until"]) / 1000
    except (ValueError, KeyError, TypeError, OverflowError):
        return FOREVER


class Reader:
    """``publish`` gets each snapshot, ``tick`` is called about twice a second; both in the reader's thread."""

    def __init__(
        self,
        source: Cluster,
        cluster: str,
        group: str,
        publish: Callable[[Snapshot], object],
        tick: Callable[[], object],
        topics: Topics | None = None,
        once: bool = False,
    ) -> None:
        """``once``: it is stopped after the first snapshot, which is to come soon."""
        self.source, self.topics, self.once = source, topics or Topics(), once
        self.key = group_key(cluster, group).encode(errors="surrogatepass")
        self.publish, self.tick = publish, tick
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] | None = None

    def start(self) -> None:
        """Begin to read."""
        begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(begun,), name="kagent-follow", daemon=True)
        self._thread.start()
        begun.wait()

    def stop(self, within: float = END_WITHIN_S) -> None:
        """End, waiting for the thread."""
        if self._stop is None or self._thread is None:
            return
        with suppress(RuntimeError):  # the loop has ended by itself
            self._stop()
        self._thread.join(within)

    def _run(self, begun: threading.Event) -> None:
        with suppress(asyncio.CancelledError):
            run(self._keep_reading(begun))

    async def _keep_reading(self, begun: threading.Event) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        begun.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_ticking())
            later = warned(log, f"kagent's topics on {self.source.bootstrap} cannot be read")
            # An assignor has no caller that could handle an error: whatever goes wrong, the snapshot grows old.
            async for attempt in AsyncRetrying(wait=BACKOFF, before_sleep=later):
                with attempt:
                    await self._read()

    async def _keep_ticking(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self.tick()
            except Exception:  # reading goes on: the next rebalance needs what stands on the topics now
                log.exception("the group cannot be asked to rejoin")

    async def _read(self) -> None:
        """Read both topics, for ever. Raises what no other attempt of the reader would mend."""
        topics, found = (self.topics.recommendations, self.topics.mutes), Snapshot(0.0)
        async with aclosing(
            read_forever(self.source, *topics, resume=False, patient=True, confirm=True, prompt=self.once)
        ) as records:
            async for record in records:
                if record is ReadMark.BEGIN:
                    found = Snapshot(0.0)
                elif isinstance(record, UpToDate):
                    found = replace(found, read_at=record.asked_s)
                    self.publish(found)
                elif record is not ReadMark.CAUGHT_UP and record.key == self.key:
                    found = keep(found, self.topics, record.topic, record.value)
                    if found.read_at:  # before that, what stands may be older than what the reader had
                        self.publish(found)
