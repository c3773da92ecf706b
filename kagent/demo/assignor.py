"""The demo's assignor: its start, and once a plan lies in the file, the plan. A small model of a following assignor.

Each member tells its place in the group (0, 1, …) in its user data; the leader gives each what the plan or the start has
for that place, and what neither names to the place with the least.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from kagent.demo.topology import Held

VERSION = 0


class PlanAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """``place``: of this member; ``start``: what each place begins with; ``plan``: the file that is looked for."""

    name = "kagent-plan"

    def __init__(self, place: int, start: tuple[Held, ...], plan: Path | None) -> None:
        self.place, self.start, self.plan = place, start, plan

    def metadata(self, topics: Any) -> Any:
        """What the leader is told of this member."""
        return ConsumerProtocolMemberMetadata(VERSION, list(topics), str(self.place).encode())

    def on_assignment(self, assignment: Any) -> None:
        """Nothing to remember."""

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Who gets what, by the plan or the start."""
        # Of two members at one place the one is on its way out; each must be told of something.
        places = {int(data.user_data or b"0"): member for member, data in members.items()}
        topics = sorted({topic for data in members.values() for topic in data.subscription})
        left = {(t, p) for t in topics for p in cluster.partitions_for_topic(t) or ()}
        given: dict[int, list[tuple[str, int]]] = {place: [] for place in places}
        for place, held in enumerate(self._wanted()):
            if place in given:
                given[place] = [tp for tp in held if tp in left]
                left -= set(given[place])
        for tp in sorted(left):
            given[min(given, key=lambda place: (len(given[place]), place))].append(tp)
        return {
            **dict.fromkeys(members, _assignment([])),
            **{member: _assignment(given[place]) for place, member in places.items()},
        }

    def _wanted(self) -> tuple[Held, ...]:
        if self.plan is None or not self.plan.exists():
            return self.start
        return tuple(tuple((t, p) for t, p in held) for held in json.loads(self.plan.read_text()))


def _assignment(held: list[tuple[str, int]]) -> Any:
    topics: dict[str, list[int]] = {}
    for topic, partition in held:
        topics.setdefault(topic, []).append(partition)
    return ConsumerProtocolMemberAssignment(VERSION, sorted(topics.items()), b"")
