"""How long a followed rebalance takes the leader, beside aiokafka's own sticky assignor on the same group, in one run.

    python benchmarks/follow.py [--members N] [--partitions N] [--times N]

Both sides get the members' bytes and give the assignment; the time is the process's own (other work on the machine does
not count), the middle and the greatest of all runs. A follower is also asked without a recommendation: then its built-in
assignor, sticky, decides. The ratio is aiokafka ÷ kagent: above 1 kagent is faster.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.structs import TopicPartition

from kagent.contract.recommendation import Recommendation
from kagent.follow import Reason, aiokafka_follower, plan_userdata
from kagent.follow.decision_types import Snapshot

Held = dict[str, list[tuple[str, int]]]


class Cluster:
    """The metadata that an assignor asks for."""

    def __init__(self, partitions: int) -> None:
        self.numbers = set(range(partitions))

    def topics(self) -> set[str]:
        return {"orders"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return self.numbers


def dealt(names: list[str], partitions: int) -> Held:
    held: Held = {name: [] for name in names}
    for number in range(partitions):
        held[random.choice(names)].append(("orders", number))
    return held


def recommendation(before: Held, after: Held, partitions: int) -> Recommendation:
    now = int(time.time() * 1000)
    had = {pair: name for name, held in before.items() for pair in held}
    moves = [
        {"topic": t, "partition": p, "from": had[t, p], "to": name}
        for name, held in after.items()
        for t, p in held
        if had[t, p] != name
    ]
    said: dict[str, Any] = {
        "id": "0", "cluster": "main", "group": "billing", "status": "open", "verdict": "rebalance", "severity": "ticket",
        "confidence": "high", "reason": "", "group_kind": "classic_python", "opened_at": now, "as_of": now,
        "valid_until": now + 3_600_000, "skew": {"now": 2.0}, "moves": moves, "move_count": len(moves), "assignment": after,
        "members": [{"member": name, "partitions": len(held)} for name, held in before.items()],
        "actions": [{"type": "follow_plan", "how": "", "feasible": "yes"}],
        "basis": {"generation": 7, "digest": "", "partitions": {"orders": partitions}},
    }  # fmt: skip
    return Recommendation.model_validate(said)


def timed(call: Callable[[], object], times: int) -> tuple[float, float]:
    """Middle and greatest, in ms."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        call()
        spent.append((time.process_time() - began) * 1000)
    return statistics.median(spent), max(spent)


def sticky(names: list[str], before: Held) -> dict[str, Any]:
    """The members as aiokafka's sticky assignor has them join."""
    members = {}
    for name in names:
        assignor = StickyPartitionAssignor()
        held = [TopicPartition(topic, number) for topic, number in before[name]]
        data = assignor._metadata(["orders"], held, 7).user_data
        members[name] = ConsumerProtocolMemberMetadata(0, ["orders"], data)
    return members


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--times", type=int, default=15)
    asked = parser.parse_args()
    random.seed(1)
    names = [f"billing-{at}/10.0.0.{at % 250}" for at in range(asked.members)]
    before, after = dealt(names, asked.partitions), dealt(names, asked.partitions)
    cluster = Cluster(asked.partitions)
    members = {
        name: ConsumerProtocolMemberMetadata(
            0, ["orders"], plan_userdata.joining(name, before[name], 7, None, [])
        )
        for name in names
    }
    follower = aiokafka_follower("nowhere:1", "billing", apply=True)
    alone = timed(lambda: follower.assignor.assign(cluster, members), asked.times)
    follower.learned(Snapshot(time.time(), recommendation(before, after, asked.partitions)))
    followed = timed(lambda: follower.assignor.assign(cluster, members), asked.times)
    assert follower.counts[Reason.FOLLOWED] == asked.times
    theirs = sticky(names, before)
    peer = timed(lambda: StickyPartitionAssignor().assign(cluster, theirs), max(1, asked.times // 5))
    print(f"{asked.members} members, {asked.partitions} partitions; ms of CPU: middle, greatest")
    for name, (middle, greatest) in (
        ("followed", followed),
        ("built-in", alone),
        ("aiokafka's sticky", peer),
    ):
        print(f"{name:18} {middle:9.1f} {greatest:9.1f}   ratio {peer[0] / middle:6.1f}")


if __name__ == "__main__":
    main()
