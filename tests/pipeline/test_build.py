"""From raw records to messages: what is superseded is dropped, what is left is told once, nothing stops the rest."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.contract.admission import decode, decode_all
from kagent.contract.events import GroupEvent
from kagent.pipeline import compact as compact_rows
from kagent.pipeline.build import Target, messages
from kagent.pipeline.bundle import Bundling
from kagent.pipeline.compact import Collapser
from kagent.pipeline.stream import SCHEMA, per_task

TARGET = Target("main", "events", "letters", "kagent")
Raw = tuple[bytes | None, bytes | None, int, int]


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def key(group: str, topic: str, partition: int) -> bytes:
    return struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)


def value(offset: int) -> bytes:
    return struct.pack(">hqi", 3, offset, -1) + text("") + struct.pack(">q", 1000 + offset)


def batch(rows: Iterable[Raw]) -> pa.RecordBatch:
    columns: Any = list(zip(*rows, strict=True)) or [[], [], [], []]
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(columns[0], pa.binary()),
            "value": pa.array(columns[1], pa.binary()),
            "partition": pa.array(columns[2], pa.int32()),
            "offset": pa.array(columns[3], pa.int64()),
            "time": pa.array([5] * len(columns[0]), pa.int64()),
        }
    )


def told(rows: Iterable[Raw]) -> list[GroupEvent]:
    made = messages(pa.Table.from_batches([batch(rows)]), TARGET, 7)
    events = [decode(v) for topic, _, v, _ in made if topic == "events"]
    return [e for e in events if isinstance(e, GroupEvent)]


def test_a_group_is_one_event_with_its_topics_apart_and_partitions_in_order() -> None:
    rows = [
        (key("g", "b", 1), value(3), 0, 10),
        (key("g", "a", 2), value(4), 0, 11),
        (key("g", "a", 0), value(5), 0, 12),
    ]

    (event,) = told(rows)

    assert [(o.topic, o.partition, o.committed, o.source_offset) for o in event.offsets] == [
        ("b", [1], [3], [10]),
        ("a", [0, 2], [5, 4], [12, 11]),
    ]
    assert (event.group, event.source, event.time) == ("g", 0, 7)


def test_a_removed_offset_is_a_tombstone() -> None:
    (event,) = told([(key("g", "t", 3), None, 2, 99)])

    assert [(t.topic, t.partition, t.source_offset) for t in event.tombstones] == [("t", [3], [99])]


def test_what_cannot_be_read_is_a_dead_letter_with_its_place_and_the_rest_is_told() -> None:
    rows: list[Raw] = [
        (b"\x00\x63abc", b"x" * 400, 1, 5),
        (key("g", "t", 0), b"\x00\x03broken", 1, 6),
        (None, b"v", 1, 7),
        (key("g", "t", 1), value(1), 1, 8),
    ]

    made = list(messages(pa.Table.from_batches([batch(rows)]), TARGET, 7))

    letters = [orjson.loads(v) for topic, _, v, _ in made if topic == "letters"]
    assert sorted(letter["from"] for letter in letters) == [f"__consumer_offsets-1@{n}" for n in (5, 6, 7)]
    assert {letter["from"][-1]: letter["key_hex"] for letter in letters}["7"] is None
    assert max(len(letter["value_hex"]) for letter in letters) == 512
    assert [o.partition for e in told(rows) for o in e.offsets] == [[1]]
    assert sum(n for *_, n in made) == 4


def test_a_version_we_do_not_know_is_a_dead_letter_and_marks_its_group() -> None:
    rows: list[Raw] = [(struct.pack(">h", 2) + text("g"), struct.pack(">h", 9), 1, 5)]

    made = list(messages(pa.Table.from_batches([batch(rows)]), TARGET, 7))

    assert [topic for topic, *_ in made] == ["letters", "events"]
    (event,) = told(rows)
    assert event.records[0].record["value"] is None
    assert event.records[0].record["value_version"] == 9


def test_groups_of_kagent_itself_are_left_out() -> None:
    rows = [
        (key(g, "t", 0), value(1), 0, n) for n, g in enumerate(("kagent", "kagent-pipeline-1", "kagents"))
    ]

    assert [e.group for e in told(rows)] == ["kagents"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    commits=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 99)), max_size=60),
    cuts=st.integers(1, 7),
    together=st.sampled_from([None, 1, 2, 50]),
    compact=st.sampled_from([2, 5, 10**6]),
    most=st.sampled_from([1, 4, 10**6]),
)
def test_however_batches_are_cut_the_newest_commit_of_each_key_wins(
    commits: list[tuple[str, int, int]], cuts: int, together: int | None, compact: int, most: int
) -> None:
    rows = [(key(g, "t", p), value(o), 0, n) for n, (g, p, o) in enumerate(commits)]
    batches = [batch(rows[at : at + cuts]) for at in range(0, len(rows), cuts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact_rows, "COMPACT_ROWS", compact)
        patch.setattr(compact_rows, "MOST_KEYS", most)
        bundling = None if together is None else Bundling("main", "events", 3, together)
        out = list(per_task(TARGET, bundling)(batches))

    assert all(b.schema == SCHEMA for b in out)
    newest: dict[tuple[str, int], tuple[int, int]] = {}
    for row in (r for b in out for r in b.to_pylist()):
        for event in decode_all(row["value"]):
            assert isinstance(event, GroupEvent)
            for o in event.offsets:
                for p, c, at in zip(o.partition, o.committed, o.source_offset, strict=True):
                    newest[event.group, p] = max(newest.get((event.group, p), (-1, -1)), (at, c))
    expected = {(g, p): (n, o) for n, (g, p, o) in enumerate(commits)}
    assert newest == expected


def test_superseded_commits_leave_nothing_behind() -> None:
    collapser = Collapser()
    for n in range(50):
        collapser.add(batch([(key("g", "t", n % 2), value(n), 0, n)]))

    table = collapser.take()

    assert table is not None
    assert table.column("offset").to_pylist() == [48, 49]
    assert collapser.rows_in == 50
    assert collapser.take() is None
