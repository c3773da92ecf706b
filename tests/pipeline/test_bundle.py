"""Events of several groups in one message: nothing is lost, moved to another partition or put into another order."""

from __future__ import annotations

from collections import defaultdict

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.contract.admission import decode_all
from kagent.contract.events import GroupEvent, encode
from kagent.pipeline import bundle
from kagent.pipeline.build import Message
from kagent.pipeline.bundle import Bundling, bundled
from kagent.strategies.partitioner import partition_for

PARTITIONS = 3


def message(group: str, time: int, records: int = 1) -> Message:
    return "events", f"main/{group}".encode(), encode(GroupEvent("main", group, 0, time)), records


def letter(number: int) -> Message:
    return "letters", b"main", orjson.dumps({"number": number}), 1


made = st.lists(
    st.one_of(
        st.builds(message, st.sampled_from("abcdefgh"), st.integers(0, 9), st.integers(0, 3)),
        st.builds(letter, st.integers(0, 9)),
    ),
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(made, st.integers(1, 7), st.integers(1, 400), st.integers(1, 9))
def test_every_event_comes_once_in_order_on_the_partition_of_its_key(
    sent: list[Message], most: int, limit: int, at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "MAX_BYTES", limit)
        patch.setattr(bundle, "KEYS_AT_ONCE", at_once)
        found = list(bundled(sent, Bundling("main", "events", PARTITIONS, most)))

    told = defaultdict(list)
    for topic, _, value, _, partition in found:
        if topic == "events":
            events = [event for event in decode_all(value) if isinstance(event, GroupEvent)]
            assert 1 <= len(events) <= most
            assert len(value) <= limit + 2 or len(events) == 1  # + 2: the brackets
            for event in events:
                assert partition == partition_for(f"main/{event.group}".encode(), PARTITIONS)
                told[event.group].append(event.time)
    wanted = defaultdict(list)
    for topic, key, value, _ in sent:
        if topic == "events":
            wanted[key.decode().removeprefix("main/")].append(orjson.loads(value)["time"])
    assert told == wanted
    assert [row[:4] for row in found if row[0] == "letters"] == [row for row in sent if row[0] == "letters"]
    assert sum(row[3] for row in found) == sum(row[3] for row in sent)


def test_a_message_of_one_event_looks_as_it_does_without_bundling() -> None:
    (found,) = bundled([message("orders", 7, 4)], Bundling("main", "events", PARTITIONS, 50))

    assert found[:4] == message("orders", 7, 4)


def test_without_bundling_every_message_goes_as_it_is_and_the_producer_places_it() -> None:
    sent = [message("a", 1), letter(2), message("b", 3)]

    assert list(bundled(sent, None)) == [(*row, None) for row in sent]
