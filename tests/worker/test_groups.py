"""What is known of groups is in the tables, and leaves all of them with the group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_type_hints

from kagent.contract.events import GroupEvent, TopicOffsets, TopicTombstones
from kagent.detect.state import JudgeState
from kagent.tables.declaration import PER_GROUP, ROWS, Tables
from kagent.testing import memory_tables
from kagent.worker.groups import GONE_AFTER_MS, READERS, Index

NOW = 1_700_000_000_000


def event(offsets: Sequence[TopicOffsets] = (), tombstones: Sequence[TopicTombstones] = ()) -> GroupEvent:
    return GroupEvent("main", "billing", source=0, time=NOW, offsets=offsets, tombstones=tombstones)


def test_every_table_has_its_rows_type_and_those_of_groups_are_listed() -> None:
    assert set(get_type_hints(Tables)) == set(ROWS)
    of_groups = {name for name, row in ROWS.items() if "group" in row.__struct_fields__}
    assert of_groups == {*PER_GROUP, "lag"}, (
        "a table of groups is in PER_GROUP, or `Index.forget` removes its rows"
    )
    assert set(READERS) == of_groups, "after a restart its rows are read by READERS"


def test_a_group_that_is_gone_leaves_no_row_and_does_not_come_back() -> None:
    tables = memory_tables()
    index = Index(tables)
    index.load([0])
    entry = index.take(0, event([TopicOffsets("orders", None, [0], [5], [NOW], [1])]))
    index.judged(0, entry, JudgeState(first_seen=NOW))
    assert tables.lag
    index.take(0, event(tombstones=[TopicTombstones("orders", [0], [2])]))

    assert index.forget(0, NOW + GONE_AFTER_MS + 1, ["main"]) == [entry.key]

    assert {name: dict(getattr(tables, name)) for name in ROWS} == {name: {} for name in ROWS}
    index.load([0])
    assert index.entries(0) == {}


def test_a_group_of_a_cluster_that_is_not_watched_any_more_is_forgotten() -> None:
    index = Index(memory_tables())
    index.load([0])
    entry = index.take(0, event([TopicOffsets("orders", None, [0], [5], [NOW], [1])]))
    late = NOW + GONE_AFTER_MS + 1

    assert index.forget(0, late, ["main"]) == []
    assert index.forget(0, late, ["renamed"], published=[entry.key]) == []
    assert index.forget(0, late - 2, ["renamed"]) == []
    assert index.forget(0, late, ["renamed"]) == [entry.key]
