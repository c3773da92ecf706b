"""A real broker's log, replayed as a consumer sees it, has at each point the offsets and groups that the broker had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kagent.group_key import source_partition
from kagent.groups import GroupView, KnownRecords, MemberView, apply, apply_all, view
from kagent.offsets import Record, decode
from kagent.offsets.columns import decode_commits, record_types

LOG = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "offsets" / "data" / "capture.jsonl").read_text().splitlines()
]
TOPICS = {
    "kOm8Lfv5SlqlKsK4aAJdiA": "orders",
    "Oyh4VPQ1StGiQgkFmiqy-g": "payments",
    "UO4oWfMfTs6y-ri-60N1FQ": "doomed",
}
Offsets = dict[tuple[str, str, int], int]


def committed(partition: int, up_to: int) -> Iterator[tuple[dict[str, Any], bytes, bytes | None]]:
    """The entries of a partition as read_committed delivers them: no markers, nothing of aborted transactions."""
    entries = [e for e in LOG if e["partition"] == partition and e["offset"] <= up_to]
    for at, entry in enumerate(entries):
        if not entry["isControl"] and _outcome(entry, entries[at:]) != "ABORT":
            value = entry["value_hex"]
            yield entry, bytes.fromhex(entry["key_hex"]), None if value is None else bytes.fromhex(value)


def _outcome(entry: dict[str, Any], later: list[dict[str, Any]]) -> str | None:
    if not entry["isTransactional"]:
        return None
    return next(
        (e["control"] for e in later if e["isControl"] and e["producerId"] == entry["producerId"]), "ABORT"
    )


def offsets(partition: int, up_to: int) -> Offsets:
    """The committed offsets, folded from whole columns."""
    rows = list(committed(partition, up_to))
    keys, values = (pa.array([row[at] for row in rows], pa.binary()) for at in (1, 2))
    mask = pa.array(record_types(keys) == 1)
    columns = decode_commits(keys.filter(mask), values.filter(mask))
    held: Offsets = {}
    for row in range(len(columns)):
        key = columns.group[row].as_py(), columns.topic[row].as_py(), int(columns.partition[row])
        if columns.tombstone[row]:
            held.pop(key, None)
        else:
            held[key] = int(columns.offset[row])
    return held


def of(found: Offsets, group: str, topic: str) -> dict[int, int]:
    return {p: offset for (g, t, p), offset in found.items() if (g, t) == (group, topic)}


def group(partition: int, up_to: int, name: str) -> GroupView:
    state: KnownRecords | None = None
    for entry, key, value in committed(partition, up_to):
        record = decode(key, value)
        if record.group == name:
            state = apply(state, record, entry["offset"], entry["timestamp"])
    return view(state, TOPICS, name)


@pytest.mark.parametrize(("up_to", "expected"), [(21, {1: 11, 2: 22, 3: 33}), (18, {1: 11})])
def test_only_commits_of_committed_transactions_count(up_to: int, expected: dict[int, int]) -> None:
    assert of(offsets(0, up_to), "txn-group", "orders") == expected


def test_an_upgrade_keeps_the_groups_offsets() -> None:
    assert of(offsets(3, 9), "migrate", "payments") == {0: 30, 1: 30}


def test_the_offsets_of_a_kip_848_group_stand_with_long_metadata() -> None:
    assert of(offsets(2, 52), "kip848", "payments")[0] == 7


def test_expired_offsets_are_gone() -> None:
    assert {name for name, _, _ in offsets(0, 10**6)} <= {
        "classic-sticky",
        "classic-coop",
        "txn-group",
        "rdk-848",
    }
    assert not of(offsets(0, 10**6), "txn-group", "orders")


def test_every_group_lives_in_the_partition_its_name_hashes_to() -> None:
    for entry in LOG:
        if not entry["isControl"]:
            assert (
                source_partition(decode(bytes.fromhex(entry["key_hex"]), None).group, 4) == entry["partition"]
            )


def test_a_group_whose_only_member_is_away_is_not_empty() -> None:
    found = group(2, 61, "kip848")

    assert (found.state, [(m.away, m.epoch, m.instance_id) for m in found.members]) == (
        "Assigning",
        [(True, -2, "inst-n2")],
    )


def test_the_members_of_a_kip_848_group_are_told_in_full() -> None:
    found = group(2, 52, "kip848")

    assert {m.epoch for m in found.members} == {4}
    assert all(m.assigned == m.target for m in found.members)
    assert any(m.regex == "pay.*" and "payments" in m.subscriptions for m in found.members)
    assert [m.instance_id for m in found.members if m.instance_id]
    assert found.unresolved == ()


def test_an_unknown_topic_id_is_told_and_not_guessed() -> None:
    state: KnownRecords | None = None
    for entry, key, value in committed(2, 52):
        record = decode(key, value)
        if record.group == "kip848":
            state = apply(state, record, entry["offset"], entry["timestamp"])

    found = view(state, {"Oyh4VPQ1StGiQgkFmiqy-g": "payments"})

    assert found.unresolved == ("kOm8Lfv5SlqlKsK4aAJdiA",)
    assert {topic for m in found.members for topic in m.assigned} <= {"payments"}


def test_a_share_group_is_listed_as_such() -> None:
    found = next(g for n in range(40) if (g := group(1, n, "share-g")).members)

    assert (found.type, found.state, found.protocol_type) == ("share", "Stable", "share")


def test_a_commit_only_group_is_simple() -> None:
    assert view(None, {}, "spark").type == "simple"


def of_type(kind: int, value: bytes | None, member: str = "") -> Record:
    key = (
        kind.to_bytes(2, "big")
        + b"\x00\x01g"
        + (len(member).to_bytes(2, "big") + member.encode() if member else b"")
    )
    return decode(key, value)


SUBTOPOLOGY = "02300203696e010101020472657000000002000101000100"
STREAMS_MEMBER = "00000000026302680000ea60000000010270ff0100"


def streams(validated: bytes, tasks: int) -> GroupView:
    """A streams group of one member and one subtopology, which reads ``in`` and the repartition topic ``rep``."""
    topology = bytes.fromhex("00000000000102" + SUBTOPOLOGY + "00")
    member = bytes.fromhex(STREAMS_MEMBER)
    task = b"\x02\x020" + bytes([tasks + 1]) + b"".join(p.to_bytes(4, "big") for p in range(tasks)) + b"\x00"
    task = task if tasks else b"\x01"
    items = [
        (of_type(17, b"\x00\x00" + (3).to_bytes(4, "big") + bytes(8) + validated), 1),
        (of_type(23, topology), 2),
        (of_type(19, member, "m"), 3),
        (of_type(20, b"\x00\x00" + (3).to_bytes(4, "big") + b"\x00"), 4),
        (of_type(21, b"\x00\x00" + task + b"\x01\x01\x00", "m"), 5),
        (
            of_type(
                22, b"\x00\x00" + (3).to_bytes(4, "big") * 2 + b"\x01" + task + b"\x01" * 5 + b"\x00", "m"
            ),
            6,
        ),
    ]
    return view(apply_all(None, [(record, offset, 0) for record, offset in items]), {})


@pytest.mark.parametrize(
    ("validated", "tasks", "state"),
    [
        (b"\x01\x00\x04\x00\x00\x00\x01", 2, "Stable"),
        (b"\x01\x00\x04\x00\x00\x00\x09", 2, "NotReady"),
        (b"\x00", 2, "Stable"),
        (b"\x00", 0, "NotReady"),
    ],
    ids=["validated", "another epoch validated", "before 4.2, with tasks", "never validated"],
)
def test_a_streams_group_is_ready_once_its_topology_is_validated(
    validated: bytes, tasks: int, state: str
) -> None:
    assert streams(validated, tasks).state == state


def test_a_streams_member_holds_the_partitions_its_active_tasks_read() -> None:
    (member,) = streams(b"\x01\x00\x04\x00\x00\x00\x01", 2).members

    assert member.assigned == {"in": (0, 1), "rep": (0, 1)}
    assert member.subscriptions == ("in", "rep")


def test_a_version_that_cannot_be_read_keeps_what_stood_and_marks_the_group_stale() -> None:
    known = apply(None, of_type(3, b"\x00\x00\x00\x00\x00\x05\x00"), 10, 1)
    newer = Record("ConsumerGroupMetadata", 3, 7, {"groupId": "g"}, None)

    stale = apply(known, newer, 11, 2)
    assert stale is not None
    assert (stale.stale, view(stale, {}).generation, view(stale, {}).stale) == (True, 5, True)
    assert KnownRecords.from_json(json.loads(json.dumps(stale.to_json()))) == stale

    mended = apply(stale, of_type(3, b"\x00\x00\x00\x00\x00\x06\x00"), 12, 3)
    assert (mended.stale, view(mended, {}).generation) == (False, 6) if mended else False


def test_a_partition_being_given_up_is_held_by_its_old_holder_until_another_has_it() -> None:
    first = MemberView("a", None, "a", "/h", None, (), pending_revocation={"t": (1, 2)})
    second = MemberView("b", None, "b", "/h", None, (), assigned={"t": (2,)})
    found = GroupView("g", "consumer", "Reconciling", "consumer", None, 1, 1, (first, second), 0)

    assert {p: m.member_id for (_, p), m in found.holder().items()} == {1: "a", 2: "b"}
