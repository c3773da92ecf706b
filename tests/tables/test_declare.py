"""A table's row is what its changelog has under the row's own key."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import faust
import msgspec
import orjson
import pytest
from faust.types import TP

from kagent.tables import coverage, ends, lag, members, verdicts
from kagent.tables.declaration import ROWS
from kagent.tables.declare import RowTable, declare

ROWS_BY_KEY: dict[str, tuple[str, Any]] = {
    members.NAME: ("main/a/b", members.MembersRow("main", "a/b", 1, 3, None)),
    lag.NAME: ("main/a/b/orders", lag.LagRow("main", "a/b", "orders", 1, {})),
    verdicts.NAME: ("main/a/b", verdicts.VerdictRow("main", "a/b", 1, {})),
    coverage.NAME: ("1", coverage.CoverageRow(1, {})),
    ends.NAME: ("1/main/orders", ends.EndsRow("main", "orders", 1, {})),
}


def table(name: str, stored: dict[bytes, bytes]) -> RowTable[Any]:
    """Over these bytes, as Faust restores them."""
    writer: Any = SimpleNamespace(register=lambda _: 0, uncommitted=lambda _: [])
    return RowTable(name, stored, ROWS[name], writer)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_under_its_own_key_is_there(name: str) -> None:
    key, row = ROWS_BY_KEY[name]
    found = table(name, {orjson.dumps(key): msgspec.json.encode(row)})

    assert (found[key], list(found.values()), found.refused) == (row, [row], {})


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("key", [b'"main/other"', b"no JSON", b"7"])
def test_a_row_under_another_key_is_not_there(name: str, key: bytes) -> None:
    found = table(name, {key: msgspec.json.encode(ROWS_BY_KEY[name][1])})

    assert (list(found.values()), found.refused) == ([], {"other_key": 1})


def empty(name: str) -> RowTable[Any]:
    """A table of Faust's, in memory."""
    writer: Any = SimpleNamespace(register=lambda _: 0, uncommitted=lambda _: [])
    return declare(faust.App("places", store="memory://"), name, ROWS[name], 3, writer)


def restore(rows: RowTable[Any], partition: int, key: str, row: Any) -> None:
    """Hand over a record of the changelog, as Faust's recovery does."""
    value, place = row if isinstance(row, bytes) else msgspec.json.encode(row), TP("changelog", partition)
    message = SimpleNamespace(
        tp=place, topic=place.topic, partition=partition, offset=7, key=orjson.dumps(key), value=value
    )
    rows.table.apply_changelog_batch([SimpleNamespace(key=message.key, value=value, message=message)])


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("before", [True, False])
def test_a_row_that_names_another_partition_than_its_own_is_not_there(name: str, before: bool) -> None:
    key, row = ROWS_BY_KEY[name]
    found = empty(name)
    if before:
        restore(found, row.partition, key, row)
    restore(found, row.partition, key, msgspec.structs.replace(row, partition=2))

    assert (list(found.values()), found.refused) == ([], {"other_partition": 1})
    restore(found, row.partition, key, row)
    assert (list(found.values()), found[key]) == ([row], row)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("value", [b"", b"{}", b'{"partition": "2"}', b"[" * 100_000, b"\xff"])
def test_what_names_no_partition_is_refused_for_what_it_is(name: str, value: bytes) -> None:
    found = empty(name)
    restore(found, 1, ROWS_BY_KEY[name][0], value)

    assert list(found.values()) == []
    assert (found.refused.total(), found.refused["other_partition"]) == (1, 0)
