"""Events of the right shape that no pipeline ever sends: each costs the group it is about, is refused in a word or taken, and the sound
group is judged at every tick."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kagent.contract.admission import INT32, INT64, Refused
from kagent.offsets import Record
from tests.worker.test_any_row import judged
from tests.worker.test_engine import NOW, commit, desk, event

GROUP: dict[str, Any] = {
    "schema": 1,
    "type": "group",
    "cluster": "main",
    "group": "odd",
    "source": 3,
    "part": 1,
    "parts": 1,
    "time": NOW,
    "offsets": [],
    "tombstones": [],
    "records": [],
}
PROGRESS: dict[str, Any] = {
    "schema": 1,
    "type": "progress",
    "cluster": "main",
    "time": NOW,
    "run_id": "odd",
    "trigger": 1.0,
    "replay": False,
    **{name: [] for name in ("source", "start", "offset", "log_end", "stable_end")},
}
CUT: dict[str, Any] = {"schema": 1, "type": "cut", "cluster": "main", "time": NOW, "source": [], "offset": []}


def of_topic(**columns: Any) -> dict[str, Any]:
    sound = {"topic": "odd", "topic_id": None, "partition": [0], "committed": [1], "time": [NOW]}
    return {**GROUP, "offsets": [{**sound, "source_offset": [1], **columns}]}


def of_members(members: Any, **value: Any) -> dict[str, Any]:
    about = {"protocolType": "consumer", "generation": 1, "protocol": "range", "leader": "", **value}
    record = Record("GroupMetadata", 2, 3, {"group": "odd"}, {**about, "members": members}).to_json()
    return {**GROUP, "records": [{"source_offset": 5, "time": NOW, "record": record}]}


def member(**fields: Any) -> dict[str, Any]:
    sound = {"memberId": "m", "groupInstanceId": None, "clientId": "c", "clientHost": "/10.0.0.1"}
    return {**sound, "sessionTimeout": 1, "subscription_decoded": None, "assignment_decoded": None, **fields}


def held(*partitions: Any) -> dict[str, Any]:
    return {"assignedPartitions": [{"topic": "orders", "partitions": list(partitions)}]}


KINDS: dict[str, Any] = {
    "the greatest offset": of_topic(committed=[INT64]),
    "the greatest place in the source": of_topic(source_offset=[INT64]),
    "the greatest partition": of_topic(partition=[INT32]),
    "the greatest time": of_topic(time=[INT64]),
    "one partition a thousand times": of_topic(
        **{name: [7] * 1000 for name in ("partition", "committed", "time", "source_offset")}
    ),
    "10,000 partitions": of_topic(
        partition=list(range(10_000)), **{n: [7] * 10_000 for n in ("committed", "time", "source_offset")}
    ),
    "columns without a row": of_topic(partition=[], committed=[], time=[], source_offset=[]),
    "a topic id that is none": of_topic(topic_id="="),
    "an internal topic": of_topic(topic="__consumer_offsets"),
    "the greatest source": {**of_topic(), "source": INT32},
    "part 7 of 2": {**of_topic(), "part": 7, "parts": 2},
    "a group without a name": {**of_topic(), "group": ""},
    "a group of control characters": {**of_topic(), "group": "\0\x1b[2J\u202e\n"},
    "the longest name": {**of_topic(), "group": "g" * 32_767},
    "a tombstone of what never was": {
        **GROUP,
        "tombstones": [{"topic": "odd", "partition": [INT32], "source_offset": [INT64]}],
    },
    "a record without a name": {**GROUP, "records": [{"source_offset": 1, "time": NOW, "record": {}}]},
    "members that are a text": of_members("abc"),
    "a member that is none": of_members([None]),
    "a member of numbers": of_members([member(memberId=5, clientId=6, clientHost=7)]),
    "a member of lists": of_members([member(memberId=[[]], clientId={})]),
    "two members of one id": of_members([member(), member(clientId="d")]),
    "2,000 members": of_members([member(memberId=f"m{n}") for n in range(2_000)]),
    "a protocol that is a list": of_members([member()], protocol=[], protocolType={}),
    "a generation that is a text": of_members([member()], generation="last"),
    "an assignment that is a text": of_members([member(assignment_decoded="all")]),
    "an assignment of texts": of_members([member(assignment_decoded=held("0", "1"))]),
    "an assignment of the greatest partition": of_members([member(assignment_decoded=held(INT32))]),
    "an assignment below 0": of_members([member(assignment_decoded=held(-1, -(2**63)))]),
    "an assignment of halves": of_members([member(assignment_decoded=held(0.5))]),
    "topics that are a number": of_members([member(subscription_decoded={"topics": 5})]),
    "a topic that Kafka does not allow": of_members([member(subscription_decoded={"topics": ["..", "a b"]})]),
    "5,000 topics": of_members([member(subscription_decoded={"topics": [f"t{n}" for n in range(5_000)]})]),
    "progress on nothing": PROGRESS,
    "progress in no time": {**PROGRESS, "trigger": 1e-308},
    "progress of 10,000 partitions": {
        **PROGRESS,
        "source": list(range(100, 10_100)),
        **{name: [0] * 10_000 for name in ("start", "offset", "log_end", "stable_end")},
    },
    "progress of 100,000 partitions": {
        **PROGRESS,
        **{name: [0] * 100_000 for name in ("source", "start", "offset", "log_end", "stable_end")},
    },
    "a cut of 100,000 partitions": {**CUT, "source": [4] * 100_000, "offset": [0] * 100_000},
    "a cut of nothing": CUT,
    "a cut of another partition": {**CUT, "source": [4], "offset": [0]},
    "a cut of the greatest partition": {**CUT, "source": [INT32], "offset": [INT64]},
    "a cut of one partition twice": {**CUT, "source": [4, 4], "offset": [0, 9]},
    "10,000 objects": [{}] * 10_000,
    "10,000 lists": [[]] * 10_000,
    "sound and unsound together": [{}, of_topic(), [], of_members([None])],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_costs_the_group_it_is_about(kind: str) -> None:
    engine, at = desk(), 0
    value = orjson.dumps(KINDS[kind])

    for _ in range(3):
        for sent in (event("sound", [commit(0, 5 + at, 1 + at)]), value):
            refused = engine.take(0, at, sent)
            assert all(isinstance(found.error, Refused) for found in refused), refused
            at += 1
        judged(engine, at)
        at += 1
        sound = engine.index.entries(0)["main/sound"].judged
        assert sound is not None
        assert sound.last_tick == NOW
    assert "main/sound" not in engine.set_aside


@pytest.mark.slow
def test_all_of_them_one_after_the_other_too() -> None:
    engine, at = desk(), 0

    for value in [*KINDS.values(), *reversed(KINDS.values())]:
        for sent in (event("sound", [commit(0, 5 + at, 1 + at)]), orjson.dumps(value)):
            assert all(isinstance(found.error, Refused) for found in engine.take(0, at, sent))
            at += 1
    judged(engine, at)

    assert "main/sound" not in engine.set_aside
    assert engine.index.entries(0)["main/sound"].judged is not None
