"""A real broker's log, folded in log order, is the groups that the broker had."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from kagent.groups import GroupView, KnownRecords, apply, view
from kagent.offsets import Record

CAPTURE = Path(__file__).parents[1] / "offsets" / "data" / "capture.jsonl"
TOPICS = {
    "kOm8Lfv5SlqlKsK4aAJdiA": "orders",
    "Oyh4VPQ1StGiQgkFmiqy-g": "payments",
    "UO4oWfMfTs6y-ri-60N1FQ": "doomed",
}


def entries() -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in CAPTURE.read_text().splitlines())
    return [line for line in lines if not line["isControl"]]


ENTRIES = entries()


def fold(partition: int, up_to: int, shuffled: int | None = None) -> dict[str, GroupView]:
    taken = [e for e in ENTRIES if e["partition"] == partition and e["offset"] <= up_to]
    if shuffled is not None:
        taken = taken * 2
        random.Random(shuffled).shuffle(taken)
    states: dict[str, KnownRecords | None] = {}
    for entry in taken:
        record = Record.from_json(entry["expected"])
        states[record.group] = apply(states.get(record.group), record, entry["offset"], entry["timestamp"])
    return {group: view(state, TOPICS, group) for group, state in states.items()}


def test_an_upgraded_group_is_a_consumer_group_with_its_member() -> None:
    group = fold(3, 9)["migrate"]

    assert (group.type, len(group.members), group.members[0].classic) == ("consumer", 1, True)


def test_a_downgraded_group_is_classic_again() -> None:
    group = fold(3, 30)["migrate"]

    assert (group.type, group.generation) == ("classic", 2)


def test_a_kip_848_group_is_stable_with_three_members() -> None:
    group = fold(2, 52)["kip848"]

    assert (group.type, group.state, group.generation, len(group.members)) == ("consumer", "Stable", 4, 3)
    assert sorted(group.holder()) == [("orders", p) for p in range(6)] + [("payments", p) for p in range(2)]


def test_a_static_member_that_left_for_now_is_away() -> None:
    away = [m for m in fold(2, 58)["kip848"].members if m.away]

    assert [m.epoch for m in away] == [-2]
    assert away[0].member_id.startswith("ji3h")


def test_a_deleted_group_has_no_members() -> None:
    group = fold(2, 78)["kip848"]

    assert (group.members, group.state) == ((), "Empty")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("partition", "up_to"), [(0, 10**6), (1, 10**6), (2, 52), (2, 10**6), (3, 9), (3, 30)]
)
def test_the_order_of_arrival_and_replays_change_nothing(partition: int, up_to: int, seed: int) -> None:
    assert fold(partition, up_to, shuffled=seed) == fold(partition, up_to)


def test_a_state_comes_back_as_it_was() -> None:
    state: KnownRecords | None = None
    for entry in ENTRIES:
        record = Record.from_json(entry["expected"])
        if record.group == "kip848":
            state = apply(state, record, entry["offset"], entry["timestamp"])
    assert state is not None

    assert KnownRecords.from_json(json.loads(json.dumps(state.to_json()))) == state


@pytest.mark.parametrize(
    ("group", "library"),
    [
        ("classic-range", "java"),
        ("rdk-classic", "librdkafka"),
        ("aio-group", "python"),
        ("kp-group", "python"),
    ],
)
def test_the_client_library_is_told_from_its_blobs(group: str, library: str) -> None:
    seen = {
        m.library
        for p in range(4)
        for n in range(0, 120, 3)
        if (g := fold(p, n).get(group))
        for m in g.members
    }

    assert seen == {library}
