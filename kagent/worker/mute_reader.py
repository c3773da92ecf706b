"""The mutes topic, followed from its beginning: every worker reads every mute."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception_type

from kagent.contract.admission import Refused
from kagent.errors import KafkaError
from kagent.kafka.topic_reader import ReadMark, read_forever
from kagent.retry import BACKOFF, warned
from kagent.settings import Cluster
from kagent.text import shown
from kagent.worker.dead_letters import DeadLetters
from kagent.worker.mute_state import MuteState
from kagent.worker.ownership import Ownership

log = logging.getLogger("kagent.app")


class MuteReader:
    """Keeps ``mutes`` equal to what the topic holds."""

    def __init__(
        self, mutes: MuteState, ownership: Ownership, dead_letters: DeadLetters, home: Cluster
    ) -> None:
        self.mutes, self.ownership, self.dead_letters, self.home = mutes, ownership, dead_letters, home

    async def run(self) -> None:
        """Read until cancelled: a topic that cannot be read yet stops no judgement."""
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(KafkaError),
            wait=BACKOFF,
            before_sleep=warned(log, "mutes cannot be read yet"),
        ):
            with attempt:
                await self._follow()

    async def _follow(self) -> None:
        topic, seen = self.ownership.engine.settings.topics.mutes, set[str]()
        # No committed offset: the state is the whole topic, which is compacted and small.
        async with aclosing(read_forever(self.home, topic, resume=False, patient=True)) as records:
            async for record in records:
                if record is ReadMark.BEGIN:
                    seen = set()
                elif record is ReadMark.CAUGHT_UP:
                    # Compaction removes a tombstone after delete.retention.ms: only its absence says that a mute ended.
                    self._say(self.mutes.retain(seen, self.ownership.engine.now))
                else:
                    # Also the key of a record that is refused: the mute before it stays.
                    seen.add(await self._take(record))

    def _say(self, lost: list[str]) -> None:
        if lost:
            self.ownership.engine.refused["mute", "gone"] += len(lost)
            log.warning(
                "mutes that were still in effect are gone from their topic, and no longer hold: %s",
                ", ".join(shown(key) for key in sorted(lost)),
            )

    async def _take(self, record: Any) -> str:
        key = (record.key or b"").decode(errors="replace")
        try:
            self.mutes.take(key, record.value)
        except Refused as error:
            if 0 in self.ownership.loaded:  # every worker reads every mute: one of them writes the letter
                await self.dead_letters.refuse("mute", record, error)
            else:
                self.ownership.engine.refused["mute", error.reason] += 1
        return key
