"""The wire form of events and progress."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.contract.admission import decode
from kagent.contract.events import (
    Beat,
    GroupEvent,
    MembershipRecord,
    Progress,
    TopicOffsets,
    TopicTombstones,
    encode,
    split,
)

ints = st.integers(0, 2**63 - 1)


@st.composite
def events(draw: st.DrawFn) -> GroupEvent:
    def offsets(topic: str) -> TopicOffsets:
        n = draw(st.integers(0, 20))
        partition = draw(st.lists(st.integers(0, 2**31 - 1), min_size=n, max_size=n))
        columns = [draw(st.lists(ints, min_size=n, max_size=n)) for _ in range(3)]
        return TopicOffsets(topic, draw(st.none() | st.just("kOm8Lfv5SlqlKsK4aAJdiA")), partition, *columns)

    return GroupEvent(
        cluster="main",
        group=draw(st.text(max_size=8)),
        source=draw(st.integers(0, 49)),
        time=draw(ints),
        offsets=tuple(offsets(f"t{i}") for i in range(draw(st.integers(0, 3)))),
        tombstones=tuple(TopicTombstones("t", [1, 2], [3, 4]) for _ in range(draw(st.integers(0, 2)))),
        records=tuple(
            MembershipRecord(draw(ints), 1, {"record": "x" * draw(st.integers(0, 50))}) for _ in range(3)
        ),
    )


@pytest.mark.slow
@given(events(), st.integers(200, 4000))
def test_the_parts_of_a_split_event_hold_what_the_whole_held(event: GroupEvent, limit: int) -> None:
    parts = [decode(part) for part in split(event, limit)]

    assert [p.part for p in parts] == list(range(1, len(parts) + 1))  # type: ignore[union-attr]
    assert all(p.parts == len(parts) for p in parts)  # type: ignore[union-attr]
    rows = [
        (o.topic, *row)
        for p in parts
        for o in p.offsets  # type: ignore[union-attr]
        for row in zip(o.partition, o.committed, o.time, o.source_offset, strict=True)
    ]
    whole = [
        (o.topic, *row)
        for o in event.offsets
        for row in zip(o.partition, o.committed, o.time, o.source_offset, strict=True)
    ]
    assert rows == whole
    assert [r for p in parts for r in p.records] == list(event.records)  # type: ignore[union-attr]
    removed = [len(t.partition) for p in parts for t in p.tombstones]  # type: ignore[union-attr]
    assert sum(removed) == sum(len(t.partition) for t in event.tombstones)


def test_progress_comes_back_as_it_was() -> None:
    beat = Beat("main", 1_700_000_000_000, "run", 1.0, False, [3, 4], [10, 0], [20, 5], [21, 5], [20, 5])

    assert decode(encode(beat)) == beat
    assert next(beat.each()) == Progress("main", 3, 10, 20, 21, 20, 1_700_000_000_000, "run", 1.0)


def test_a_message_of_a_newer_type_is_passed_over() -> None:
    assert decode(b'{"schema": 9, "type": "weather"}') is None
