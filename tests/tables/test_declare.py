"""A table's row is what its changelog has under the row's own key."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import orjson
import pytest

from kagent.tables import coverage, ends, lag, members, verdicts
from kagent.tables.declaration import ROWS
from kagent.tables.declare import RowTable

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
