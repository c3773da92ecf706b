"""Where Kafka's own code has a bug, the sane assignment is given and a note says so (B1–B6 of docs/strategies.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kagent.strategies import Member, Scenario, assign

DATA = Path(__file__).parent / "data"
LINES = [json.loads(line) for line in (DATA / "golden_public.jsonl").read_text(encoding="utf-8").splitlines()]
BUGS = {
    "quirk:owned-partition-past-the-end": "B5",
    "quirk:previous-owner-no-longer-subscribed": "B1",
    "quirk:empty-subscription-seen-first": "B3",
    "quirk:moved-back-to-unsubscribed-owner": "B2",
    "random": "B2",
}


@pytest.mark.parametrize("line", [pytest.param(line, id=line["id"]) for line in LINES if line["anomalies"]])
def test_the_result_is_sane_and_says_which_bug_it_leaves_out(line: dict[str, Any]) -> None:
    given = assign(line["strategy"], Scenario.from_json(line))
    assert any(note.startswith(BUGS[line["family"]]) for note in given.notes)
    topics = {member["id"]: member["topics"] for member in line["members"]}
    rows = [(member, tuple(row)) for member, listed in given.to_dict().items() for row in listed]
    assert all(
        topic in topics[member] and partition < line["partitions_per_topic"][topic]
        for member, (topic, partition) in rows
    )
    assert len({row for _, row in rows}) == len(rows)


def test_plain_results_carry_no_note() -> None:
    disputed = ("conflicting-claims", "theme:same-generation-claims/no-generation-field")
    plain = [
        line for line in LINES if not line["anomalies"] and not {*line["tags"], line["family"]} & {*disputed}
    ]
    noted = [line["id"] for line in plain if assign(line["strategy"], Scenario.from_json(line)).notes]
    assert [name for name in noted if "kip" not in name] == []


def test_b4_a_claim_compared_with_an_absent_field_is_said() -> None:
    members = [
        Member("a", ("t",), generation=None, remembered_generation=7),
        Member("b", ("t",), None, None, 7, 7),
    ]
    claims = {"a": [("t", 0)], "b": [("t", 0)]}
    given = assign("sticky", Scenario.of(members, {"t": 2}, remembered=claims, owned={}))
    assert given.notes[0].startswith("B4: 1 claims")


def test_b6_nothing_is_remembered_from_one_call_to_the_next() -> None:
    members = [Member(name, ("t",), generation=9, remembered_generation=9) for name in "ab"]
    assign("cooperative-sticky", Scenario.of(members, {"t": 2}))
    young = [Member(name, ("t", "u") if name == "a" else ("t",), None, None, 1, 1) for name in "ab"]
    group = Scenario.of(young, {"t": 4, "u": 1}, owned={"a": [("t", 3), ("t", 2)], "b": [("t", 0), ("t", 1)]})
    assert assign("cooperative-sticky", group).to_dict() == assign("cooperative-sticky", group).to_dict()
    assert {("t", 0), ("t", 1)} <= set(assign("cooperative-sticky", group).to_dict()["b"])
