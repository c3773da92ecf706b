"""What the judgement says of a following group is followed: the two ends of the topic understand each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kagent.contract.recommendation import from_bytes, to_bytes
from kagent.follow.decision_types import Peer, Reason, Rules, Snapshot, View
from kagent.follow.rebalance_decision import decide
from kagent.follow.snapshot_reader import keep
from kagent.settings import Topics
from kagent.simulator.run import run
from kagent.simulator.scenario_file import parse

HEAVY = 2.2
SPREAD = [HEAVY, 1, 1] * 4
"""Dealt out in turn to three members, all that is heavy falls to the first."""
SCENARIO = {
    "name": "billing",
    "kind": "classic_python",
    "assignor": "roundrobin",
    "members": 3,
    "hours": 0.3,
    "topics": {"orders": {"partitions": 12, "inflow": 2200.0, "cost": 0.001, "spread": SPREAD}},
    "expect": ["rebalance"],
}


@pytest.mark.slow
def test_the_first_recommendation_about_an_overloaded_member_is_followed() -> None:
    following = replace(parse(SCENARIO), assignor="kagent-follow")
    message = run(following).messages[0]
    rec = from_bytes(to_bytes(message))
    held = {f"billing-m{at}/10.0.0.1": tuple(("orders", p) for p in range(at, 12, 3)) for at in range(3)}
    peers = tuple(Peer(f"id {name}", ("orders",), name, pairs, 2) for name, pairs in held.items())
    now = message.as_of / 1000
    snapshot = keep(Snapshot(now), Topics(), Topics().recommendations, to_bytes(message))
    decision = decide(View(peers, {"orders": 12}), snapshot, now, Rules(message.cluster, "billing"))
    assert decision.reason is Reason.FOLLOWED, decision.sentence
    assert snapshot.recommendation == rec
    assert decision.placed is not None
    work = [sum(SPREAD[p] for _, p in pairs) for pairs in decision.placed.values()]
    assert max(work) < 4 * HEAVY
    assert sum(map(len, decision.placed.values())) == 12
