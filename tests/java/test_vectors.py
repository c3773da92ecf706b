"""Decisions that Python's and Java's followers must both make: ``java/src/test/resources/follow-vectors.jsonl``.

One line a case: {"name", "members": [{"id", "instance_id", "name", "topics", "held", "generation"}], "counts", "now_ms",
"read_at_ms", "muted_until_ms", "recommendation" (JSON text or null), "reason", "placed": member id → pairs or null}.
``python tests/java/test_vectors.py`` writes it; the test here holds the file to what ``kagent.follow`` decides now.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kagent.contract.recommendation import SCHEMA, Recommendation, from_bytes, to_bytes
from kagent.follow.decision_types import Peer, Reason, Rules, Snapshot, View
from kagent.follow.rebalance_decision import decide

FILE = Path(__file__).parents[2] / "java" / "src" / "test" / "resources" / "follow-vectors.jsonl"
NOW_MS = 1_700_000_000_000
RANDOM_CASES = 400
Pair = tuple[str, int]
Case = dict[str, Any]


def cases() -> Iterator[Case]:
    """All cases, each with what Python decides."""
    for name, changes in SPOILED.items():
        yield decided(case(name, **changes))
    dice = random.Random(20_260_101)
    for number in range(RANDOM_CASES):
        yield decided(shuffled(f"random {number}", dice))


BEFORE: dict[str, list[Pair]] = {
    "a": [("orders", 0), ("orders", 1), ("orders", 2)],
    "b": [("orders", 3)],
    "c-static": [],
}
AFTER: dict[str, list[Pair]] = {
    "a": [("orders", 0)],
    "b": [("orders", 3)],
    "c-static": [("orders", 1), ("orders", 2)],
}


def recommendation(before: Mapping[str, list[Pair]], after: Mapping[str, list[Pair]]) -> Case:
    """The fields by which a follower decides; member ``a`` has the id ``id-a``."""
    holder = {pair: name for name, held in before.items() for pair in held}
    moves = [
        {"topic": t, "partition": p, "from": holder.get((t, p)), "to": name}
        for name, held in after.items()
        for t, p in held
        if holder.get((t, p)) != name
    ]
    counts: dict[str, int] = {}
    for topic, number in (pair for held in after.values() for pair in held):
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return {
        "schema": SCHEMA,
        "id": "0123456789abcdef",
        "cluster": "main",
        "group": "billing",
        "status": "open",
        "verdict": "rebalance",
        "severity": "ticket",
        "confidence": "high",
        "reason": "One member holds most of the group's backlog.",
        "group_kind": "classic_java",
        "opened_at": NOW_MS,
        "as_of": NOW_MS,
        "valid_until": NOW_MS + 600_000,
        "skew": {"now": 2.5},
        "members": [{"member": n, "member_id": f"id-{n}", "partitions": len(h)} for n, h in before.items()],
        "moves": moves,
        "move_count": len(moves),
        "assignment": dict(after),
        "actions": [{"type": "follow_plan", "how": "Follow.", "feasible": "yes"}],
        "basis": {"generation": 7, "digest": "d", "partitions": counts},
    }


def member(name: str, held: list[Pair], topics: tuple[str, ...] = ("orders",), generation: int = 7) -> Case:
    instance = name if name.endswith("-static") else None
    return {
        "id": f"id-{name}",
        "instance_id": instance,
        "name": name,
        "topics": list(topics),
        "held": held,
        "generation": generation,
    }


def case(
    name: str, rec: Case | None = None, whole: Any = None, first: Case | None = None, **changes: Any
) -> Case:
    """The usual group and plan; ``rec``: other fields of the recommendation, ``first``: of the first member."""
    members = [member(m, held) for m, held in BEFORE.items()]
    members[0] |= first or {}
    usual = {
        "name": name,
        "members": members,
        "counts": {"orders": 4},
        "now_ms": NOW_MS,
        "read_at_ms": NOW_MS - 1000,
        "muted_until_ms": 0,
        "recommendation": json.dumps(recommendation(BEFORE, AFTER) | (rec or {})) if whole is None else whole,
    }
    return usual | changes


def _members(*names: str) -> list[Case]:
    return [{"member": n, "member_id": f"id-{n}", "partitions": 1} for n in names]


SPOILED: dict[str, dict[str, Any]] = {
    "exactly this group": {},
    "a static member that came back": {"members": [*[member(m, BEFORE[m]) for m in "ab"], member("c-static", []) | {"id": "id-new"}]},
    "another cluster": {"rec": {"cluster": "other"}},
    "another group": {"rec": {"group": "shipping"}},
    "an old generation": {"rec": {"basis": {"generation": 6, "digest": "d", "partitions": {"orders": 4}}}},
    "an unknown generation": {"rec": {"basis": {"generation": None, "digest": "d", "partitions": {"orders": 4}}}},
    "other partition counts": {"rec": {"basis": {"generation": 7, "digest": "d", "partitions": {"orders": 3}}}},
    "no partition counts": {"rec": {"basis": {"generation": 7, "digest": "d"}}},
    "expired": {"rec": {"valid_until": NOW_MS - 1}},
    "valid until now": {"rec": {"valid_until": NOW_MS}},
    "resolved": {"rec": {"status": "resolved"}},
    "superseded": {"rec": {"status": "superseded"}},
    "updated": {"rec": {"status": "updated"}},
    "a status that nobody knows": {"rec": {"status": "paused"}},
    "kagent is blind": {"rec": {"stale": True}},
    "not feasible": {"rec": {"actions": [{"type": "follow_plan", "how": "", "feasible": "no", "reason": "stateful"}]}},
    "another action": {"rec": {"actions": [{"type": "wait", "how": "", "feasible": "yes"}]}},
    "no action": {"rec": {"actions": []}},
    "no plan": {"rec": {"assignment": None}},
    "nothing to move": {"rec": {"moves": [], "move_count": 0}},
    "not all moves given": {"rec": {"move_count": 300}},
    "more than may be": {"rec": {"assignment": {"c-static": [("orders", at) for at in range(2001)]}}},
    "a newer schema": {"rec": {"schema": SCHEMA + 1}},
    "a member more in the plan": {"rec": {"members": _members(*BEFORE, "d")}},
    "a member less in the plan": {"rec": {"members": _members("a", "b")}},
    "a member twice in the plan": {"rec": {"members": _members(*BEFORE, "b")}},
    "a ghost in the plan": {"rec": {"assignment": AFTER | {"ghost": []}}},
    "a missing partition": {"rec": {"assignment": AFTER | {"b": []}}},
    "a doubled partition": {"rec": {"assignment": AFTER | {"b": [("orders", 3), ("orders", 0)]}}},
    "doubled at one member": {"rec": {"assignment": AFTER | {"b": [("orders", 3)] * 2}}},
    "an unknown partition": {"rec": {"assignment": AFTER | {"b": [("orders", 3), ("orders", 4)]}}},
    "a negative partition": {"rec": {"assignment": AFTER | {"b": [("orders", 3), ("orders", -1)]}}},
    "an unknown topic": {"rec": {"assignment": AFTER | {"b": [("orders", 3), ("secrets", 0)]}}},
    "moves of something else": {"rec": {"moves": [{"topic": "orders", "partition": 0, "from": "c-static", "to": "b"}], "move_count": 1}},
    "moves from a ghost": {"rec": {"moves": [{"topic": "orders", "partition": 1, "from": "ghost", "to": "c-static"}], "move_count": 1}},
    "moves that start elsewhere": {"rec": {"moves": [{"topic": "orders", "partition": 1, "from": "b", "to": "c-static"}], "move_count": 1}},
    "nothing there": {"whole": "none"},
    "no JSON": {"whole": "{"},
    "no object": {"whole": "[]"},
    "not read for a minute": {"read_at_ms": NOW_MS - 61_000},
    "read a minute ago": {"read_at_ms": NOW_MS - 60_000},
    "muted": {"muted_until_ms": NOW_MS + 1},
    "no longer muted": {"muted_until_ms": NOW_MS},
    "a member less": {"members": [member(m, BEFORE[m]) for m in ("b", "c-static")]},
    "a member more": {"members": [*[member(m, BEFORE[m]) for m in BEFORE], member("d", [])]},
    "a partition more": {"counts": {"orders": 5}},
    "a topic more": {"first": {"topics": ["orders", "new"]}, "counts": {"orders": 4, "new": 1}},
    "a topic that does not exist": {"first": {"topics": ["orders", "new"]}},
    "a newer generation": {"first": {"generation": 8}},
    "a member that holds something else": {"first": {"held": [("orders", 0)]}},
    "a member that reads nothing": {"first": {"topics": []}},
    "no metadata yet": {"counts": {}},
    "names with control characters": {"rec": {"group": "billing\x1b[2J"}},
    "text beyond ASCII": {"rec": {"reason": "überlastet \U0001f525 \\ \" /"}},
}  # fmt: skip


def shuffled(name: str, dice: random.Random) -> Case:
    """A random group with a whole plan for it, spoiled one time in two."""
    names = [f"m{at}" for at in range(dice.randint(1, 5))]
    topics = ["t", "u"][: dice.randint(1, 2)]
    before: dict[str, list[Pair]] = {n: [] for n in names}
    after: dict[str, list[Pair]] = {n: [] for n in names}
    counts = {topic: dice.randint(1, 6) for topic in topics}
    for pair in ((topic, number) for topic in topics for number in range(counts[topic])):
        if dice.random() < 0.95:
            before[dice.choice(names)].append(pair)
        after[dice.choice(names)].append(pair)
    rec = recommendation(before, after)
    members = [member(n, before[n], tuple(topics)) for n in names]
    if dice.random() < 0.5:
        _spoil(rec, members, counts, dice)
    return case(name, members=members, counts=counts, whole=json.dumps(rec))


def _spoil(rec: Case, members: list[Case], counts: dict[str, int], dice: random.Random) -> None:
    """One thing about the group or the plan is no longer so."""
    one, pair = dice.choice(members), ("t", dice.randint(-1, 6))
    match dice.randrange(6):
        case 0:
            one["held"] = [*one["held"], pair]
        case 1:
            rec["assignment"][one["name"]].append(pair)
        case 2:
            counts["t"] += dice.choice((-1, 1))
        case 3:
            one["topics"] = ["u"]
        case 4:
            members.remove(one)
        case 5:
            rec["moves"] = rec["moves"][1:]
            rec["move_count"] = len(rec["moves"])


def decided(asked: Case) -> Case:
    """The case with Python's answer."""
    peers = tuple(
        Peer(m["id"], tuple(m["topics"]), m["name"], tuple(map(tuple, m["held"])), m["generation"])
        for m in asked["members"]
    )
    snapshot = _snapshot(asked)
    decision = decide(
        View(peers, asked["counts"]), snapshot, asked["now_ms"] / 1000, Rules("main", "billing")
    )
    placed = None if decision.placed is None else {m: sorted(held) for m, held in decision.placed.items()}
    text = None if asked["recommendation"] == "none" else asked["recommendation"]
    return asked | {"recommendation": text, "reason": str(decision.reason), "placed": placed}


def _snapshot(asked: Case) -> Snapshot:
    read, text = None, asked["recommendation"]
    if text != "none":
        try:
            message = from_bytes(text)
            read = message if isinstance(message, Recommendation) else None
            assert read is None or to_bytes(read)
        except ValueError:
            read = None
    return Snapshot(
        asked["read_at_ms"] / 1000, read, text != "none" and read is None, asked["muted_until_ms"] / 1000
    )


def lines() -> str:
    """The file's text."""
    return "".join(json.dumps(case, sort_keys=True) + "\n" for case in cases())


def test_the_vectors_are_what_kagent_follow_decides_now() -> None:
    assert FILE.read_text() == lines(), "run python tests/java/test_vectors.py, then make java"


def test_the_vectors_have_every_reason_that_both_followers_share() -> None:
    seen = {json.loads(line)["reason"] for line in FILE.read_text().splitlines()}
    python_only = {
        Reason.FOREIGN_MEMBER,
        Reason.KEPT,
        Reason.OFF,
        Reason.LATCHED,
        Reason.UNREACHABLE,
        Reason.FAILED,
    }
    assert seen == {str(reason) for reason in set(Reason) - python_only}


if __name__ == "__main__":
    FILE.write_text(lines())
