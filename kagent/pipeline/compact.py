"""The latest record of each key, on the raw bytes: what is superseded within a trigger is never decoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

GATHERED_ROWS = 50_000
"""Rows gathered before they are collapsed: one of Spark's batches alone may hold each key once and teach nothing."""
GATHERED_BYTES = 64 << 20
"""Or this many bytes."""
COMPACT_ROWS = 500_000
"""Rows held before the batches of a task are collapsed together: bounds memory by distinct keys, not by commits."""
MOST_KEYS = 400_000
"""More distinct keys than this are emitted before the task has seen all: bounds memory whatever the keys."""


def latest(table: pa.Table) -> pa.Table:
    """The last row of each key, in the order in which they stand. Columns: ``key`` and any others.

    Rows of one key must be in log order (one partition of the source, read in order).
    """
    keys = table.column("key").combine_chunks()
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.chunk(0) if keys.num_chunks else pa.array([], keys.type)
    # "encode" gives null keys a code too; they are malformed, and must reach the dead letters.
    codes = keys.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    if not len(codes):
        return table
    last = np.empty(int(codes.max()) + 1, dtype=np.int64)
    # Of indices that repeat, numpy keeps the last value written: the last row of each key.
    last[codes] = np.arange(len(codes))
    # Sorted row numbers restore log order, which membership records of one group need.
    return table.take(pa.array(np.sort(last)))


class Collapser:
    """Takes the batches of one task and gives what is left of them."""

    def __init__(self) -> None:
        self._new: list[pa.RecordBatch] = []
        self._new_rows = self._new_bytes = 0
        self._held: list[pa.Table] = []
        self._rows = 0
        self.rows_in = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take one batch in."""
        self.rows_in += batch.num_rows
        self._new.append(batch)
        self._new_rows += batch.num_rows
        self._new_bytes += batch.nbytes
        if self._new_rows >= GATHERED_ROWS or self._new_bytes >= GATHERED_BYTES:
            self._gather()

    @property
    def full(self) -> bool:
        """Whether enough keys are held that they should be taken."""
        return self._rows > MOST_KEYS and len(self._held) == 1

    def take(self) -> pa.Table | None:
        """The latest row of each key so far, or None without any; begins anew."""
        self._gather()
        table = self._table()
        self._held, self._rows = [], 0
        return table

    def _gather(self) -> None:
        if not self._new:
            return
        table = latest(pa.Table.from_batches(self._new))
        self._new, self._new_rows, self._new_bytes = [], 0, 0
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows > COMPACT_ROWS:
            whole = latest(pa.concat_tables(self._held))
            self._held, self._rows = [whole], whole.num_rows

    def _table(self) -> pa.Table | None:
        if not self._held:
            return None
        return latest(pa.concat_tables(self._held)) if len(self._held) > 1 else self._held[0]
