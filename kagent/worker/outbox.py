"""What the worker decided and not yet committed, by partition: changed rows, messages, and the events they came from.

A flush commits all of a partition in one transaction, and only then acknowledges the events. So changelog and events from the
group's committed offset hold everything at any moment, and a decision's row and message are seen together.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kagent.worker.fence import MAX_ROW_BYTES, NotCommitted, PartitionProducers, Row

log = logging.getLogger("kagent.worker")
MOST_HELD = 5_000
"""Events of a partition that wait for a flush before it is due."""


LAST_FLUSH_WITHIN_S = 15.0
"""With the producers' own seconds it stays below the 30 s after which an orchestrator kills a process that it asked to end."""


class ChangelogTable(Protocol):
    """A table that takes its rows from the changelog alone: after they were committed."""

    @property
    def changelog(self) -> str:
        """The topic's name."""

    def encode(self, row: Any) -> bytes | None:
        """The row's value; None for a deletion."""

    def committed(self, partition: int, rows: Sequence[tuple[bytes, bytes | None, int]]) -> None:
        """Take key, value and offset of what the changelog now holds."""


@dataclass(slots=True)
class Pending:
    """Of one partition: table → key → row (None deletes), messages (topic, key, value), what to call once they are delivered, and
    events to acknowledge."""

    rows: defaultdict[int, dict[bytes, Any]] = field(default_factory=lambda: defaultdict(dict))
    messages: list[tuple[str, bytes, bytes | None]] = field(default_factory=list)
    delivered: list[Callable[[], None]] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)


class Outbox:
    """The pending writes of the owned partitions. Only :meth:`flush` awaits anything: what is put between two awaits stays together."""

    def __init__(self, producers: PartitionProducers, acknowledge: Callable[[Any], None]) -> None:
        self.producers, self.acknowledge = producers, acknowledge
        self._tables: list[ChangelogTable] = []
        self._pending: dict[int, Pending] = {}
        self._flushing: dict[int, Pending] = {}
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._open = False

    def register(self, table: ChangelogTable) -> int:
        """Take a table's rows from now on; its number."""
        self._tables.append(table)
        return len(self._tables) - 1

    def put(self, partition: int, table: int, key: bytes, row: Any) -> None:
        """Write this row at the next flush; None deletes it."""
        self._of(partition).rows[table][key] = row

    def publish(
        self,
        partition: int,
        topic: str,
        key: bytes,
        value: bytes | None,
        on_delivery: Callable[[], None] | None = None,
    ) -> None:
        """Send this message at the next flush, in the same transaction as the rows."""
        pending = self._of(partition)
        pending.messages.append((topic, key, value))
        if on_delivery is not None:
            pending.delivered.append(on_delivery)

    def hold(self, partition: int, event: Any) -> None:
        """Acknowledge this event once all that was put so far is committed."""
        self._of(partition).events.append(event)

    def _of(self, partition: int) -> Pending:
        if partition not in self._pending:
            self._pending[partition] = Pending()
        return self._pending[partition]

    def uncommitted(self, table: int) -> Iterable[dict[bytes, Any]]:
        """The rows of a table that are not committed yet, newest first."""
        for waiting in (self._pending, self._flushing):
            yield from (pending.rows[table] for pending in waiting.values() if table in pending.rows)

    def urgent(self, partition: int) -> bool:
        """Whether a message waits, or MOST_HELD events: then a flush is due."""
        pending = self._pending.get(partition)
        return pending is not None and bool(pending.messages or len(pending.events) >= MOST_HELD)

    async def flush(self, partition: int) -> None:
        """Commit what waits for this partition. Between a revocation and the next assignment nothing is written."""
        # A producer has one transaction at a time: aiokafka raises on a second begin_transaction.
        async with self._locks[partition]:
            # Closed between revocation and assignment: the partition may be another worker's by now.
            if self._open and self.producers.owns(partition) and partition in self._pending:
                # Moved, not copied: what is put while the commit is awaited belongs to the next transaction.
                taken = self._flushing[partition] = self._pending.pop(partition)
                try:
                    await self._commit(partition, taken)
                except NotCommitted as error:
                    log.warning("uncommitted rows are left to the next owner of the partition: %s", error)
                    self._open = False
                # Not in a finally: a commit that fails replaces this process (see fence.leave).
                del self._flushing[partition]

    async def _commit(self, partition: int, taken: Pending) -> None:
        # Encoded once per flush, not at every event that changed the row: encoding was 6 % of the worker's time.
        rows = {table: self._encoded(table, found) for table, found in taken.rows.items()}
        # A row may be too large to be written: its table can end up without rows.
        rows = {table: found for table, found in rows.items() if found}
        if rows or taken.messages:
            by_topic = {self._tables[table].changelog: found for table, found in rows.items()}
            offsets = await self.producers.write(partition, by_topic, taken.messages)
            for table, found in rows.items():
                placed = zip(found, offsets[self._tables[table].changelog], strict=True)
                self._tables[table].committed(partition, [(*row, offset) for row, offset in placed])
        for call in taken.delivered:
            call()
        # Last, as Faust commits these offsets from now on. A control that acknowledged at once had 1,250 of 10,000 groups
        # wrong after a kill: their rows were not written, and no event brought them back.
        for event in taken.events:
            self.acknowledge(event)

    def _encoded(self, table: int, rows: dict[bytes, Any]) -> list[Row]:
        found = [(key, None if row is None else self._tables[table].encode(row)) for key, row in rows.items()]
        return [row for row in found if not self._too_large(table, *row)]

    def _too_large(self, table: int, key: bytes, value: bytes | None) -> bool:
        if value is None or len(value) <= MAX_ROW_BYTES:
            return False
        log.error(
            "a row of %s has %d bytes, too many to be kept: after a restart kagent learns its group again",
            self._tables[table].changelog,
            len(value),
        )
        return True

    async def flush_all(self) -> None:
        """Commit what waits, partition by partition side by side; return once nothing is under way either."""
        # Also where nothing waits: a partition must not be given away in the middle of a transaction.
        await asyncio.gather(*(self.flush(p) for p in sorted({*self._pending, *self._flushing})))

    async def revoke(self) -> None:
        """Before partitions go: commit what waits, and write no more."""
        await self.flush_all()
        self._open = False
        await self._idle()  # a timer's flush may have begun between the two

    async def _idle(self) -> None:
        """Return once no flush is under way."""
        for lock in list(self._locks.values()):
            async with lock:
                pass

    async def take_over(self, partitions: Iterable[int]) -> None:
        """Fence the predecessors off. What was put since the revocation is dropped: its events come again.

        Raises aiokafka's KafkaError.
        """
        self._open = False
        await self._idle()  # a commit under way uses the old producers, which take_over closes
        await self.producers.take_over(partitions)
        # Faust seeks to the committed offsets after every recovery, also for partitions that stayed ours.
        self._pending.clear()
        self._open = True

    async def close(self) -> None:
        """Commit what waits, if the cluster takes it in time, and close the producers."""
        self.producers.ending = True
        try:
            async with asyncio.timeout(LAST_FLUSH_WITHIN_S):
                await self.revoke()
        except TimeoutError:
            log.warning(
                "uncommitted rows could not be committed in time: the next owner of the partitions reads their events again"
            )
            self._open = False
        await self.producers.stop()
