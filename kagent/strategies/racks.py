"""Racks of members and replicas as codes and bits (KIP-881)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kagent.strategies.scenario import Scenario

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Racks:
    """Which rack each member is in, and which racks the replicas of each partition are in."""

    member: npt.NDArray[np.int64]
    """Per member its rack's code, −1 without one."""
    replicas: Flags
    """Matrix (global partition number, rack): whether a replica is there."""

    @classmethod
    def of(cls, scenario: Scenario) -> Racks | None:
        """The racks of a scenario; None when no member says its rack, for then racks play no part at all."""
        if not any(scenario.members.racks):
            return None
        codes: dict[str, int] = {}
        member = [codes.setdefault(rack, len(codes)) if rack else -1 for rack in scenario.members.racks]
        layout = scenario.layout
        rows: list[int] = []
        columns: list[int] = []
        for topic, partitions in scenario.replica_racks.items():
            at = layout.code_of.get(topic)
            if at is None:
                continue
            first = int(layout.start[at])
            for number, racks in enumerate(partitions[: int(layout.count[at])], first):
                for rack in racks:
                    rows.append(number)
                    columns.append(codes.setdefault(rack, len(codes)))
        replicas = np.zeros((layout.total, len(codes)), np.bool_)
        replicas[rows, columns] = True
        return cls(np.array(member, np.int64), replicas)

    def aware(self, members: npt.NDArray[np.intp], partitions: Flags) -> bool:
        """Whether Kafka heeds racks for these members and the partitions flagged.

        It does when some rack of theirs holds a replica, unless every partition is in every rack.
        """
        racks = self.member[members]
        replicas = self.replicas[partitions]
        anywhere: Flags = np.logical_or.reduce(replicas, axis=0)
        # AbstractPartitionAssignor.useRackAwareAssignment: no member is in a rack that has replicas.
        if not anywhere[racks[racks >= 0]].any():
            return False
        return not bool((replicas == anywhere).all())

    def matches(self, member: npt.NDArray[np.int64], number: npt.NDArray[np.int64]) -> Flags:
        """Per pair, whether the partition has a replica in the member's rack; a member without a rack matches all."""
        rack = self.member[member]
        return (rack < 0) | self.replicas[number, rack]

    def nearby(self, number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Per partition, how many members are in a rack with a replica of it."""
        # A matrix product counts per partition: flags of its racks × members per rack.
        living = self.member[self.member >= 0]
        per_rack = np.bincount(living, minlength=self.replicas.shape[1])
        return self.replicas[number].astype(np.int64) @ per_rack
