"""A plan is followed only if it is exactly about the group as it stands; nothing is ever lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagent.contract.recommendation import SCHEMA, Recommendation
from kagent.follow.decision_types import Followed, Peer, Reason, Rules, Snapshot, View
from kagent.follow.rebalance_decision import decide

NOW = 1_000_000.0
RULES = Rules("main", "billing")
BEFORE = {
    "a/10.0.0.1": [("orders", 0), ("orders", 1), ("orders", 2)],
    "b/10.0.0.1": [("orders", 3)],
    "c-static": [],
}
AFTER = {
    "a/10.0.0.1": [("orders", 0)],
    "b/10.0.0.1": [("orders", 3)],
    "c-static": [("orders", 1), ("orders", 2)],
}
Advise = Callable[..., Recommendation]


def peers(**changes: Any) -> tuple[Peer, ...]:
    """The members as they join; ``changes`` are of the first."""
    made = [
        Peer(f"id-{at}", ("orders",), name, tuple(held), 7) for at, (name, held) in enumerate(BEFORE.items())
    ]
    return (replace(made[0], **changes), *made[1:])


def view(*members: Peer, counts: dict[str, int] | None = None) -> View:
    return View(members or peers(), {"orders": 4} if counts is None else counts)


def snapshot(rec: Recommendation | None, **said: Any) -> Snapshot:
    return Snapshot(**{"read_at": NOW - 1, "recommendation": rec} | said)


def test_a_plan_about_exactly_this_group_is_followed(advise: Advise) -> None:
    decision = decide(view(), snapshot(advise(BEFORE, AFTER, NOW)), NOW, RULES)
    assert decision.reason is Reason.FOLLOWED
    assert decision.placed == {f"id-{at}": tuple(map(tuple, held)) for at, held in enumerate(AFTER.values())}
    assert decision.sentence == "the open recommendation is followed: 2 partitions move."


def test_members_that_share_client_id_and_host_are_told_apart_as_the_worker_does(advise: Advise) -> None:
    twins = [Peer(f"id-{at}", ("t",), "a/h", ((("t", at),) if at else ()), 7) for at in (2, 1, 0)]
    before = {"a/h": [], "a/h#2": [("t", 1)], "a/h#3": [("t", 2)]}
    after = {"a/h": [("t", 1)], "a/h#2": [("t", 0)], "a/h#3": [("t", 2)]}
    rec = advise(before, after, NOW)
    decision = decide(view(*twins, counts={"t": 3}), snapshot(rec), NOW, RULES)
    assert decision.placed == {"id-0": (("t", 1),), "id-1": (("t", 0),), "id-2": (("t", 2),)}


FIELDS: dict[str, tuple[dict[str, Any], Reason]] = {
    "another cluster": ({"cluster": "other"}, Reason.OTHER_CLUSTER),
    "another group": ({"group": "shipping"}, Reason.OTHER_GROUP),
    "an old generation": ({"basis": {"generation": 6, "digest": "d", "partitions": {"orders": 4}}}, Reason.OTHER_GENERATION),
    "other partition counts": ({"basis": {"generation": 7, "digest": "d", "partitions": {"orders": 3}}}, Reason.OTHER_COUNTS),
    "no partition counts": ({"basis": {"generation": 7, "digest": "d"}}, Reason.OTHER_COUNTS),
    "an hour old": ({"valid_until": int((NOW - 3600) * 1000)}, Reason.EXPIRED),
    "valid until now": ({"valid_until": int(NOW * 1000)}, Reason.EXPIRED),
    "resolved": ({"status": "resolved"}, Reason.NOTHING_OPEN),
    "superseded": ({"status": "superseded"}, Reason.SUPERSEDED),
    "kagent is blind": ({"stale": True}, Reason.BLIND),
    "not feasible": ({"actions": [{"type": "follow_plan", "how": "", "feasible": "unknown", "reason": "why\x1b[2J"}]}, Reason.INFEASIBLE),
    "another action": ({"actions": [{"type": "wait", "how": "", "feasible": "yes"}]}, Reason.INFEASIBLE),
    "no action": ({"actions": []}, Reason.INFEASIBLE),
    "no plan": ({"assignment": None}, Reason.NO_PLAN),
    "nothing to move": ({"moves": [], "move_count": 0}, Reason.NO_PLAN),
    "not all moves told": ({"move_count": 300}, Reason.NO_PLAN),
    "more partitions than told": ({"assignment": {"c-static": [("orders", at) for at in range(2001)]}}, Reason.NO_PLAN),
    "a newer schema": ({"schema": SCHEMA + 1}, Reason.UNREADABLE),
    "a member more": ({"members": [{"member": m, "partitions": 1} for m in (*BEFORE, "d")]}, Reason.OTHER_MEMBERS),
    "a member less": ({"members": [{"member": m, "partitions": 1} for m in [*BEFORE][:2]]}, Reason.OTHER_MEMBERS),
    "a member twice": ({"members": [{"member": m, "partitions": 1} for m in (*BEFORE, "c-static")]}, Reason.OTHER_MEMBERS),
    "hidden names": ({"members": [{"member": f"sha256:{m}", "partitions": 1} for m in BEFORE]}, Reason.OTHER_MEMBERS),
    "a ghost in the plan": ({"assignment": AFTER | {"ghost": []}}, Reason.OTHER_MEMBERS),
    "a missing partition": ({"assignment": AFTER | {"b/10.0.0.1": []}}, Reason.MISSING_PARTITION),
    "a doubled partition": ({"assignment": AFTER | {"b/10.0.0.1": [("orders", 3), ("orders", 0)]}}, Reason.DOUBLED_PARTITION),
    "a partition doubled at one member": ({"assignment": AFTER | {"b/10.0.0.1": [("orders", 3)] * 2}}, Reason.DOUBLED_PARTITION),
    "an unknown partition": ({"assignment": AFTER | {"b/10.0.0.1": [("orders", 3), ("orders", 4)]}}, Reason.UNKNOWN_PARTITION),
    "a partition below nought": ({"assignment": AFTER | {"b/10.0.0.1": [("orders", 3), ("orders", -1)]}}, Reason.UNKNOWN_PARTITION),
    "an unknown topic": ({"assignment": AFTER | {"b/10.0.0.1": [("orders", 3), ("secrets", 0)]}}, Reason.UNKNOWN_PARTITION),
    "moves of something else": ({"moves": [{"topic": "orders", "partition": 0, "from": "c-static", "to": "b/10.0.0.1"}], "move_count": 1}, Reason.NO_PLAN),
    "moves from a ghost": ({"moves": [{"topic": "orders", "partition": 1, "from": "ghost", "to": "c-static"}], "move_count": 1}, Reason.NO_PLAN),
    "moves that start elsewhere": ({"moves": [{"topic": "orders", "partition": 1, "from": "b/10.0.0.1", "to": "c-static"}], "move_count": 1}, Reason.OTHER_HOLDINGS),
}  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_a_recommendation_that_is_not_about_this_moment_is_refused(advise: Advise, name: str) -> None:
    said, reason = FIELDS[name]
    decision = decide(view(), snapshot(advise(BEFORE, AFTER, NOW, **said)), NOW, RULES)
    assert (decision.reason, decision.placed, decision.followed) == (reason, None, None)
    assert decision.sentence.endswith(".")
    assert decision.sentence.isprintable()


GROUPS: dict[str, tuple[View, Reason]] = {
    "a foreign member": (view(*peers(name=None)), Reason.FOREIGN_MEMBER),
    "a member restarted elsewhere": (view(*peers(name="a/10.0.0.9")), Reason.OTHER_MEMBERS),
    "a member that calls itself like another": (view(*peers(name="c-static")), Reason.OTHER_MEMBERS),
    "a member less": (view(*peers()[1:]), Reason.OTHER_MEMBERS),
    "a member more": (view(*peers(), Peer("id-9", ("orders",), "d/10.0.0.1", (), 7)), Reason.OTHER_MEMBERS),
    "a partition more": (view(counts={"orders": 5}), Reason.OTHER_COUNTS),
    "a topic more": (view(*peers(topics=("orders", "new")), counts={"orders": 4, "new": 1}), Reason.OTHER_COUNTS),
    "a newer generation": (view(*peers(generation=8)), Reason.OTHER_GENERATION),
    "a member that holds something else": (view(*peers(held=(("orders", 0),))), Reason.OTHER_HOLDINGS),
    "a member that does not say what it holds": (view(*peers(held=None)), Reason.OTHER_HOLDINGS),
    "a member that reads nothing": (view(*peers(topics=())), Reason.NOT_SUBSCRIBED),
    "no metadata yet": (view(counts={}), Reason.UNKNOWN_PARTITION),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_that_is_not_the_one_of_the_plan_is_left_to_the_built_in_assignor(
    advise: Advise, name: str
) -> None:
    seen, reason = GROUPS[name]
    decision = decide(seen, snapshot(advise(BEFORE, AFTER, NOW)), NOW, RULES)
    assert (decision.reason, decision.placed) == (reason, None)


TOPICS: dict[str, tuple[dict[str, Any], Reason]] = {
    "nothing there": ({"recommendation": None}, Reason.NOTHING_OPEN),
    "malformed": ({"recommendation": None, "unreadable": True}, Reason.UNREADABLE),
    "not read for a minute": ({"read_at": NOW - 61}, Reason.STALE),
    "muted": ({"muted_until": NOW + 1}, Reason.MUTED),
}


@pytest.mark.parametrize("name", TOPICS)
def test_what_was_read_has_to_be_fresh_and_whole(advise: Advise, name: str) -> None:
    said, reason = TOPICS[name]
    decision = decide(view(), snapshot(advise(BEFORE, AFTER, NOW), **said), NOW, RULES)
    assert (decision.reason, decision.placed) == (reason, None)


def test_a_topic_that_was_never_read_says_nothing() -> None:
    assert decide(view(), None, NOW, RULES).reason is Reason.UNREACHABLE


@pytest.mark.parametrize(("rule", "reason"), [("off", Reason.OFF), ("latched", Reason.LATCHED)])
def test_switched_off_or_latched_nothing_is_followed(advise: Advise, rule: str, reason: Reason) -> None:
    switched: Any = {rule: True}
    rules = replace(RULES, **switched)
    decision = decide(view(), snapshot(advise(BEFORE, AFTER, NOW)), NOW, rules)
    assert (decision.reason, decision.placed) == (reason, None)


def followers(advise: Advise) -> tuple[View, Snapshot]:
    """The group after it followed the plan, and the topic with the same recommendation still open."""
    read = snapshot(advise(BEFORE, AFTER, NOW))
    decision = decide(view(), read, NOW, RULES)
    assert decision.placed is not None
    after = [
        replace(p, held=decision.placed[p.member_id], generation=8, followed=decision.followed)
        for p in peers()
    ]
    return view(*after), read


@pytest.mark.parametrize("resolved", [False, True])
def test_a_followed_plan_is_kept_by_the_same_members(advise: Advise, resolved: bool) -> None:
    after, read = followers(advise)
    decision = decide(after, Snapshot(NOW) if resolved else read, NOW, RULES)
    assert decision.reason is Reason.KEPT
    assert decision.placed == {p.member_id: p.held for p in after.peers}
    assert decision.followed == after.peers[0].followed


def test_one_member_that_comes_back_with_empty_hands_gets_its_part_of_the_plan(advise: Advise) -> None:
    after, read = followers(advise)
    back = replace(after.peers[2], member_id="new", held=(), generation=None, followed=None)
    decision = decide(view(*after.peers[:2], back), read, NOW, RULES)
    assert decision.reason is Reason.KEPT
    assert decision.placed is not None
    assert decision.placed["new"] == (("orders", 1), ("orders", 2))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p[:2],
        lambda p: (*p, Peer("id-9", ("orders",), "d/10.0.0.1", (), None)),
        lambda p: (*p[:2], replace(p[2], held=())),
        lambda p: (*p[:2], replace(p[2], held=(*p[2].held, ("orders", 0)))),
        lambda p: (*p[:2], replace(p[2], topics=())),
        lambda p: (*p[:2], replace(p[2], followed=None)),
        lambda p: (*p[:2], replace(p[2], followed=Followed("f" * 16, "f" * 16))),
        lambda p: tuple(replace(one, followed=None, held=()) for one in p),
        lambda p: tuple(replace(one, followed=Followed("f" * 16, "f" * 16)) for one in p),
    ],
)
def test_a_followed_plan_ends_with_another_membership(advise: Advise, change: Any) -> None:
    after, read = followers(advise)
    assert decide(view(*change(after.peers)), read, NOW, RULES).placed is None


def test_a_followed_plan_ends_when_partitions_are_added_or_it_is_switched_off(advise: Advise) -> None:
    after, read = followers(advise)
    assert decide(view(*after.peers, counts={"orders": 5}), read, NOW, RULES).placed is None
    assert decide(after, read, NOW, replace(RULES, off=True)).reason is Reason.OFF


def test_the_next_plan_replaces_the_one_before(advise: Advise) -> None:
    after, _ = followers(advise)
    held = {name: list(p.held or ()) for name, p in (after.names or {}).items()}
    basis = {"generation": 8, "digest": "d", "partitions": {"orders": 4}}
    read = snapshot(advise(held, BEFORE, NOW, basis=basis, as_of=int(NOW * 1000) + 1))
    decision = decide(after, read, NOW, RULES)
    assert decision.reason is Reason.FOLLOWED
    assert decision.followed != after.peers[0].followed


NAMES = st.sampled_from(["a", "b", "c"])
PAIRS = st.tuples(st.sampled_from(["t", "u"]), st.integers(-1, 3))
HELD = st.lists(PAIRS, max_size=6)
PLANS = st.sampled_from([None, Followed("0" * 16, "1" * 16)])
PEERS = st.builds(
    Peer,
    st.uuids().map(str),
    st.sampled_from([("t",), ("t", "u"), ("u",), ()]),
    NAMES,
    st.none() | HELD.map(tuple),
    st.none() | st.integers(0, 3),
    PLANS,
)
COUNTS = st.fixed_dictionaries({"t": st.integers(0, 3), "u": st.integers(0, 2)})


def exact(seen: View, placed: Any) -> bool:
    """Every subscribed partition exactly once, at a subscriber, and nothing else; every member present."""
    topics = {peer.member_id: peer.topics for peer in seen.peers}
    pairs = [pair for held in placed.values() for pair in held]
    fits = all(topic in topics[member] for member, held in placed.items() for topic, _ in held)
    return (
        fits
        and len(pairs) == len(set(pairs))
        and set(pairs) == seen.partitions
        and set(placed) == set(topics)
    )


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    members=st.lists(PEERS, min_size=1, max_size=3, unique_by=lambda p: p.member_id),
    counts=COUNTS,
    before=st.dictionaries(NAMES, HELD),
    after=st.dictionaries(NAMES, HELD),
    true=st.booleans(),
)
def test_whatever_anybody_says_no_partition_is_lost_or_doubled(
    advise: Advise, members: list[Peer], counts: dict[str, int], before: Any, after: Any, true: bool
) -> None:
    seen = View(tuple(members), counts)
    if true:  # what the members say of a plan that they follow fits their roster
        members = [replace(p, followed=Followed("0" * 16, seen.roster or "")) for p in members]
        seen = View(tuple(members), counts)
    rec = advise(before, after, NOW)
    rec = rec.model_copy(
        update={"basis": rec.basis.model_copy(update={"generation": None, "partitions": counts})}
    )
    decision = decide(seen, snapshot(rec), NOW, RULES)
    assert decision.placed is None or exact(seen, decision.placed)
    assert (decision.placed is None) == (decision.reason not in (Reason.FOLLOWED, Reason.KEPT))


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[View, dict[str, Any], dict[str, Any]]:
    """A group, what it holds, and a whole plan for it."""
    size = draw(st.integers(1, 4))
    names = [f"m{at}" for at in range(size)]
    pairs = [("t", number) for number in range(draw(st.integers(1, 6)))]
    before: dict[str, Any] = {name: [] for name in names}
    after: dict[str, Any] = {name: [] for name in names}
    for pair in pairs:
        before[draw(st.sampled_from(names))].append(pair)
        after[draw(st.sampled_from(names))].append(pair)
    members = [
        Peer(f"id-{name}", ("t",), name, tuple(before[name]), 7) for name in draw(st.permutations(names))
    ]
    return View(tuple(members), {"t": len(pairs)}), before, after


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(group=shuffled(), spoiled=st.none() | st.tuples(st.integers(0, 3), PAIRS))
def test_a_whole_plan_is_followed_to_the_letter_and_a_spoiled_one_not_at_all(
    advise: Advise, group: Any, spoiled: Any
) -> None:
    seen, before, after = group
    rec = advise(before, after, NOW)
    if not rec.moves:
        return
    if spoiled is not None:
        name, pair = f"m{spoiled[0] % len(before)}", spoiled[1]
        rec = rec.model_copy(update={"assignment": {**(rec.assignment or {}), name: [*after[name], pair]}})
    decision = decide(seen, snapshot(rec), NOW, RULES)
    if spoiled is not None:
        assert decision.placed is None
    else:
        assert decision.placed == {f"id-{name}": tuple(held) for name, held in after.items()}
        assert exact(seen, decision.placed)
