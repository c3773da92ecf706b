"""How every table is declared, and its rows as typed values: same partition count as the events topic, compacted soon.

Faust sees bytes alone. So a changelog record that is no row costs that row; as a model of Faust's it would keep recovery
from ending. Keys are JSON strings, as they always were.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, MutableMapping
from typing import Any, Generic, TypeVar

import faust
import msgspec
import orjson

from kagent.contract.admission import Refused, checked
from kagent.text import shown

log = logging.getLogger("kagent.tables")
CHANGELOG = {
    "compression.type": "zstd",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.bytes": str(64 * 1024 * 1024),
    "segment.ms": str(3600 * 1000),
    "max.message.bytes": str(8 * 1024 * 1024),
}
"""Changelogs are re-read at every start: small segments let compaction reach them."""
R = TypeVar("R", bound=msgspec.Struct)


def declare(app: faust.App, name: str, row: type[R], partitions: int) -> RowTable[R]:
    """The table of this name, from string keys to ``row``."""
    table = app.Table(
        name, key_type=bytes, value_type=bytes, partitions=partitions, extra_topic_configs=CHANGELOG
    )
    return RowTable(name, table, row)


class RowTable(MutableMapping[str, R], Generic[R]):
    """Rows over a table of bytes. A row that cannot be read is not there; ``refused`` counts them by reason.

    It is not deleted: a newer kagent beside this one may have written it. The next write under its key replaces it.
    """

    def __init__(self, name: str, table: MutableMapping[bytes, bytes], row: type[R]) -> None:
        self.name, self.table, self.row = name, table, row
        self.refused: Counter[str] = Counter()
        self._decoder = msgspec.json.Decoder(row)

    def __getitem__(self, key: str) -> R:
        found = self._read(_key(key), self.table[_key(key)])
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: str, row: R) -> None:
        self.table[_key(key)] = msgspec.json.encode(row)

    def __delitem__(self, key: str) -> None:
        del self.table[_key(key)]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _key(key) in self.table

    def __iter__(self) -> Iterator[str]:
        for raw in list(self.table):
            try:
                yield str(orjson.loads(raw))
            except ValueError:
                self._refuse(raw, Refused("not_json", "the key is not JSON"))

    def __len__(self) -> int:
        return len(self.table)

    def pop(self, key: str, *default: Any) -> Any:
        """Delete the row, whether it can be read or not; nothing is returned of it."""
        if _key(key) in self.table:
            del self.table[_key(key)]

    def values(self) -> Any:
        """The rows that can be read."""
        rows = (self._read(key, value) for key, value in list(self.table.items()))
        return [row for row in rows if row is not None]

    def _read(self, key: bytes, value: bytes | None) -> R | None:
        if value is None:
            return None
        try:
            return checked(lambda: self._decoder.decode(value))
        except Refused as error:
            self._refuse(key, error)
            return None

    def _refuse(self, key: bytes | None, error: Refused) -> None:
        self.refused[error.reason] += 1
        name = shown((key or b"").decode(errors="replace"))
        log.warning("the row %s of table %s cannot be read and is left out: %s", name, self.name, error)


def _key(key: str) -> bytes:
    return orjson.dumps(key)
