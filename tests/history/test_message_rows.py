"""Messages become rows of the history, one for one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kagent.contract.admission import decode_all
from kagent.contract.events import Beat, GroupEvent, MembershipRecord, TopicOffsets, TopicTombstones, encode
from kagent.history.message_rows import SCHEMA, event_rows, recommendation_rows, unpacked
from kagent.history.tables import SCHEMAS

# What a record holds matters here, at any depth, not how many of it: without a limit most of the time goes into drawing.
MOST = 5


def words(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.text(), values, max_size=MOST)


EVENT = GroupEvent(
    "main",
    "g",
    3,
    1_000,
    offsets=[TopicOffsets("t", "idOfTheTopicInBase64__", [0, 2], [5, 7], [900, 901], [40, 41])],
    tombstones=[TopicTombstones("old", [1], [42])],
    records=[MembershipRecord(43, 950, {"record": "GroupMetadata"})],
)


def test_every_commit_tombstone_and_record_of_an_event_is_a_row() -> None:
    rows = list(event_rows(encode(EVENT), 1_000))

    assert [(r["kind"], r.get("topic"), r.get("partition"), r.get("committed")) for r in rows] == [
        ("lag", "t", 0, 5),
        ("lag", "t", 2, 7),
        ("lag", "old", 1, None),
        ("changes", None, None, None),
    ]
    assert [r["source_offset"] for r in rows] == [40, 41, 42, 43]
    assert {r["source"] for r in rows} == {3}
    assert json.loads(rows[3]["message"]) == {"record": "GroupMetadata"}


def test_progress_and_what_is_no_event_have_no_rows() -> None:
    beat = Beat("main", 1, "run", 1.0, False, [0], [0], [1], [1], [1])

    assert list(event_rows(encode(beat), 1)) == []
    assert list(event_rows(b"not json", 1)) == []
    assert list(event_rows(b"[]", 1)) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values, max_size=MOST) | words(values),
)


def test_no_row_is_of_a_time_that_no_calendar_has() -> None:
    times = [2**63 - 1, 5]
    commits = TopicOffsets("t", None, [0, 1], [5, 7], times, [40, 41])
    event = GroupEvent("main", "g", 3, times[0], [commits], [TopicTombstones("old", [1], [42])])

    found = [row["time"] for row in event_rows(encode(event), 1_000)]

    assert found == [1_000, 5, 1_000]


@pytest.mark.slow
@given(record=words(JSON))
@example(record={"record": "GroupMetadata", "generation": 2**70})
def test_whatever_is_let_in_has_a_row(record: dict[str, Any]) -> None:
    event = json.loads(encode(EVENT))
    event["records"][0]["record"] = record
    value = json.dumps(event).encode()
    batch = pa.RecordBatch.from_pylist([{"topic": "e", "key": b"main/g", "value": value, "time": 1}])

    let_in = [e for e in decode_all(value) if isinstance(e, GroupEvent)]
    assert sum(b.num_rows for b in unpacked("e")([batch])) == 4 * len(let_in)


def test_the_state_message_of_a_cluster_is_no_recommendation() -> None:
    assert list(recommendation_rows(b"main", b"{}", 1)) == []
    assert [r["group"] for r in recommendation_rows(b"main/a/b", b"{}", 1)] == ["a/b"]


def test_batches_keep_their_shape_also_when_empty() -> None:
    columns_in = {"topic": ["e", "r", "r"], "key": [b"main/g", b"main/g", b"main/g"]}
    batch = pa.RecordBatch.from_pydict(
        columns_in | {"value": [encode(EVENT), b'{"id":"x"}', None], "time": [1, 2, 3]}
    )

    out = list(unpacked("e")([batch]))

    assert [b.schema for b in out] == [SCHEMA] * len(out)
    assert sum(b.num_rows for b in out) == 5
    assert sum(b.num_rows for b in unpacked("e")([])) == 0


def test_every_table_has_day_and_cluster_first() -> None:
    assert all(schema.names[:3] == ["day", "cluster", "time"] for schema in SCHEMAS.values())
