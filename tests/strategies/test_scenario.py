"""Scenarios refuse what cannot be, naming the field, and hold a million partitions as columns."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from kagent.errors import InputError
from kagent.strategies import Assignment, Member, Scenario, assign

LINE: dict[str, Any] = {
    "partitions_per_topic": {"t": 2},
    "members": [
        {"id": "a", "topics": ["t"], "owned": [["t", 0]], "generation": 3},
        {"id": "b", "topics": ["t"], "user_data": {"generation": 3, "partitions": [["t", 1]]}},
    ],
}


def test_the_least_line_is_enough() -> None:
    group = Scenario.from_json({"lags": {"t": [[1, 5], [0, 7]]}, "members": [{"id": "a", "topics": ["t"]}]})
    assert group.partitions_per_topic == {"t": 2}
    assert group.lag().tolist() == [7, 5]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x["members"].append(x["members"][0]), 'members[2].id: "a" is a member twice'),
        (lambda x: x.update(members=[]), "members: a group without members"),
        (lambda x: x.update(members={}), "members: a list"),
        (lambda x: x["members"].append(7), "members[2]: a member is a JSON object"),
        (lambda x: x["members"][1].pop("id"), "members[1].id: a text"),
        (lambda x: x["members"][1].pop("topics"), "members[1].topics: a list"),
        (lambda x: x["members"][1]["topics"].append("t"), 'members[1].topics: "t" is there twice'),
        (
            lambda x: x["members"][0]["owned"].append(["t", 0]),
            'members[0].owned: partition 0 of "t" is there twice',
        ),
        (lambda x: x["members"][0]["owned"].append(["t", -1]), "members[0].owned[1]: partition -1"),
        (lambda x: x["members"][0]["owned"].append("t"), "members[0].owned[1]: [topic, partition]"),
        (lambda x: x["members"][0].update(generation="3"), "members[0].generation: a number"),
        (lambda x: x["members"][0].update(user_data=[]), "members[0].user_data: a JSON object"),
        (
            lambda x: x["members"][1]["user_data"]["partitions"].append(["t", 1]),
            'members[1].user_data.partitions: partition 1 of "t" is there twice',
        ),
        (lambda x: x.pop("partitions_per_topic"), "partitions_per_topic: it is missing"),
        (lambda x: x.update(partitions_per_topic=[]), "partitions_per_topic: a JSON object"),
        (lambda x: x.update(partitions_per_topic={"t": -1}), 'partitions_per_topic["t"]'),
        (lambda x: x.update(partitions_per_topic={"t": True}), 'partitions_per_topic["t"]'),
        (lambda x: x.update(lags={"t": [[0, -5], [1, 0]]}), 'lags["t"][0]: partition 0 has the lag -5'),
        (lambda x: x.update(lags={"t": [[0, 5], [0, 6]]}), 'lags["t"][1]: partition 0 is there twice'),
        (lambda x: x.update(lags={"t": [[0, 5], [2, 6]]}), 'lags["t"]: the lag of partition 1 is missing'),
        (lambda x: x.update(lags={"t": [[0, 5]]}), 'lags["t"]: 1 lags for 2 partitions'),
        (
            lambda x: x.update(replica_racks={"t": [["r"]]}),
            'replica_racks["t"]: a list of racks for each of 2',
        ),
        (lambda x: x.update(replica_racks={"t": [["r"], 1]}), 'replica_racks["t"][1]'),
        (lambda x: x.update(topic_ids={"t": "short"}), 'topic_ids["t"]'),
        (lambda x: x.update(topic_ids=3), "topic_ids: a JSON object"),
    ],
)
def test_what_cannot_be_is_refused_by_field(change: Any, says: str) -> None:
    line = copy.deepcopy(LINE)
    Scenario.from_json(line)
    change(line)
    with pytest.raises(InputError) as refused:
        Scenario.from_json(line)
    assert says in str(refused.value)


def test_names_in_errors_are_escaped() -> None:
    with pytest.raises(InputError, match=r'"a\\x1b"'):
        Scenario.of([Member("a\x1b", ()), Member("a\x1b", ())], {})


def test_the_server_never_holds_a_partition_twice() -> None:
    members = [Member("a", ("t",)), Member("b", ("t",))]
    group = Scenario.of(members, {"t": 2}, owned={"a": [("t", 1)], "b": [("t", 1)]})
    with pytest.raises(
        InputError, match=r'members\[1\].owned: partition 1 of "t" is already owned by members\[0\]'
    ):
        assign("kip848-uniform", group)


def test_unknown_strategies_and_options_are_refused() -> None:
    group = Scenario.from_json(LINE)
    with pytest.raises(InputError, match='strategy: "best" is not known'):
        assign("best", group)
    with pytest.raises(InputError, match="balance: 2 is not between"):
        assign("lag-global", group, balance=2)


def test_rows_of_members_that_left_are_dropped() -> None:
    before = Assignment.from_dict({"a": [("t", 0)], "b": [("t", 1)]})
    group = Scenario.of([Member("b", ("t",))], {"t": 2}, owned=before)
    assert group.owned.to_dict() == {"b": [("t", 1)]}


def test_a_million_partitions_need_no_million_objects() -> None:
    everything = tuple(f"t{at:03d}" for at in range(100))
    group = Scenario.of(
        [Member(f"c{at:04d}", everything) for at in range(500)], dict.fromkeys(everything, 10_000)
    )
    given = assign("cooperative-sticky", group)
    assert len(given) == 1_000_000
    assert given.counts().tolist() == [2000] * 500
    again = assign("cooperative-sticky", group.with_owned(given, 2))
    assert np.array_equal(again.counts(), given.counts())
    assert again.withheld is None


def test_an_assignment_goes_to_dicts_and_back() -> None:
    lists = {"a": [("t", 3), ("u", 1)], "b": [], "c": [("t", 0)]}
    assert Assignment.from_dict(lists).to_dict() == lists
    assert Assignment.from_dict({}).to_dict() == {}


def test_without_user_data_on_the_line_sticky_is_told_what_is_owned() -> None:
    line: dict[str, Any] = {
        "partitions_per_topic": {"t": 4},
        "members": [
            {"id": "a", "topics": ["t"], "owned": [["t", 3], ["t", 2]], "generation": 7},
            {"id": "b", "topics": ["t"], "owned": [["t", 2], ["t", 1], ["t", 0]], "generation": 6},
        ],
    }
    kept = {"a": {("t", 2), ("t", 3)}, "b": {("t", 0), ("t", 1)}}
    assert {m: set(rows) for m, rows in assign("sticky", Scenario.from_json(line)).to_dict().items()} == kept
    line["members"][1]["user_data"] = None
    assert not len(Scenario.from_json(line).remembered)
