"""A changelog row of any shape, as another release or a stray program may have left it, costs the group it is about and no other."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.contract.admission import Refused, checked
from kagent.contract.events import Beat, GroupEvent, MembershipRecord, encode
from kagent.tables.declaration import ROWS
from kagent.worker.engine import GroupEngine
from kagent.worker.groups import READERS
from kagent.worker.http import server
from tests.worker.http.test_server import membership
from tests.worker.test_engine import NOW, commit, desk, event, log_end, recommendation, tables

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def sound_rows() -> dict[str, dict[str, Any]]:
    """Table → key → row as JSON, of two groups with members, commits, a judgement and an open incident each."""
    rows = tables()
    first = desk(rows)
    for at, name in enumerate(("hurt", "sound")):
        record = orjson.loads(orjson.dumps(membership()))
        first.take(
            0,
            2 * at,
            encode(GroupEvent("main", name, 3, NOW, records=[MembershipRecord(7 + at, NOW, record)])),
        )
        first.take(0, 2 * at + 1, event(name, [commit(0, 5, 1), commit(1, 7, 2)]))
    first.adopt(0, {"main/hurt": recommendation("hurt")})
    judged(first, 4)
    first.coverage_rows.keep(0)
    made = {table: getattr(rows, table) for table in ROWS}
    return {
        table: {key: orjson.loads(msgspec.json.encode(row)) for key, row in found.items()}
        for table, found in made.items()
    }


def judged(engine: GroupEngine, offset: int) -> Any:
    """One tick, with fresh progress and log ends."""
    engine.take(0, offset, encode(Beat("main", NOW, "r", 1.0, False, [3], [0], [9], [9], [9])))
    log_end(engine, 40)
    return asyncio.run(engine.tick(0, NOW))


ROWS_OF_TWO = sound_rows()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, str, Any]:
    """Table, key, and the row of the group ``hurt`` (or of the partition) with one place, at any depth, replaced or left out."""
    table = draw(st.sampled_from(sorted(ROWS_OF_TWO)))
    key = draw(st.sampled_from([key for key in ROWS_OF_TWO[table] if "sound" not in key]))
    return table, key, draw(hurt(ROWS_OF_TWO[table][key]))


@st.composite
def hurt(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict | list) and value and draw(st.integers(0, 4)):
        copy = dict(value) if isinstance(value, dict) else list(value)
        place = draw(st.sampled_from(sorted(copy) if isinstance(copy, dict) else range(len(copy))))
        if draw(st.integers(0, 5)):
            copy[place] = draw(hurt(copy[place]))
        else:
            del copy[place]
        return copy
    return draw(JSON)


def restored(table: str, key: str, row: Any) -> GroupEngine:
    """A worker that starts with these rows, as Faust's recovery would hand them over."""
    rows = tables()
    for name, found in ROWS_OF_TWO.items():
        decoder = msgspec.json.Decoder(ROWS[name])
        for at, value in {**found, **({key: row} if name == table else {})}.items():
            with suppress(Refused):  # as kagent.tables.declare leaves out what is no row
                getattr(rows, name)[at] = checked(partial(decoder.decode, json.dumps(value).encode()))
    return desk(rows)


@given(damaged())
@settings(max_examples=150)
@pytest.mark.slow
def test_a_row_of_any_shape_costs_the_group_it_is_about_alone(row: tuple[str, str, Any]) -> None:
    engine = restored(*row)
    engine.take(0, 9, event("sound", [commit(0, 6, 10)]))

    judged(engine, 10)

    if row[0] in READERS:
        assert engine.index.entries(0)["main/sound"].judged is not None
        assert "main/sound" not in engine.set_aside
    told = asyncio.run(server.view(engine, True)).groups
    assert "sound" in {group.group for group in told}
    for group in told:
        orjson.dumps(server.group_json(group, whole=True))


def test_the_rows_that_are_damaged_are_of_every_table_and_sound_as_they_are() -> None:
    assert {table for table, rows in ROWS_OF_TWO.items() if rows} == set(ROWS)

    engine = restored("members", "main/sound", ROWS_OF_TWO["members"]["main/sound"])
    judged(engine, 10)

    assert not engine.index.refused
    assert not engine.set_aside
    assert engine.index.entries(0)["main/hurt"].judged.incident is not None  # type: ignore[union-attr]
