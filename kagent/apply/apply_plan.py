"""The whole of ``kagent apply``: look, check, claim, move the epoch, and report what each member holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kagent.apply.attempts import Attempts
from kagent.apply.nudge import nudge
from kagent.apply.preconditions import CannotApply, CheckedPlan, checked
from kagent.errors import KafkaError
from kagent.follow.decision_types import Rules, Snapshot
from kagent.follow.rejoin_budget import Asking, May
from kagent.follow.snapshot_reader import Reader
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Described, GroupDescription, Key
from kagent.settings import Cluster, Topics
from kagent.text import shown

READ_WITHIN_S = 20.0
LOOK_EVERY_S = 0.25
TARGET_WITHIN_S = 15.0
"""For the broker's assignor: its reader is at most some seconds behind the topic."""
LEFT_WITHIN_S = 5.0
"""For the assignment that the nudging member's leaving makes (judgement, not measured)."""
NOT_FOLLOWED = (
    "kagent.apply on the brokers may be dry, or the group has changed; the brokers' log and the MBean "
    "io.kagent:type=assignor have the reason"
)


@dataclass(frozen=True, slots=True)
class Applied:
    """What came. ``taken_up_s``: member id → seconds after the epoch moved until it held its part, None if it did not."""

    plan: CheckedPlan
    taken_up_s: Mapping[str, float | None]
    held: Mapping[str, frozenset[Key]] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether every member holds what the plan gives it."""
        return all(seconds is not None for seconds in self.taken_up_s.values())


@dataclass(slots=True)
class Applier:
    """One group of one cluster. ``home``: the cluster that holds kagent's topics. All calls block."""

    cluster: Cluster
    home: Cluster
    name: str
    group: str
    topics: Topics
    asking: Asking = field(default_factory=Asking)
    uniform_follows: bool = False
    """Whether kagent's assignor stands on the brokers under the name `uniform`, as the group's policy says."""

    @property
    def rules(self) -> Rules:
        return Rules(self.name, self.group)

    def check(self) -> CheckedPlan:
        """The plan that the group may take now. Raises CannotApply or KafkaError."""
        admin = Admin(self.cluster)
        found = admin.described([self.group]).get(self.group)
        if found is None:
            raise KafkaError(f"{shown(self.group)} may not be seen: DESCRIBE on the group is missing.")
        snapshot = self._snapshot()
        topics = admin.topics(self._topics(found, snapshot))
        return checked(found, snapshot, topics, time.time(), self.rules, self.uniform_follows)

    def apply(self, plan: CheckedPlan, attempts: Attempts, deadline_s: float) -> Applied:
        """Have the group take the plan, which was just checked. Raises CannotApply if it may not, or did not follow."""
        match attempts.claim(self.asking):
            case May.WAIT:
                raise CannotApply(
                    "wait",
                    f"Nothing is applied: another run moved {shown(self.group)}, or began to, less than "
                    f"{self.asking.cooldown / 60:.0f} minutes ago; the group must settle first.",
                )
            case May.LATCH:
                raise CannotApply(
                    "latched",
                    f"Nothing is applied: {shown(self.group)} was moved {self.asking.most_per_day} times in a day; find out why "
                    "plans do not last, then `kagent apply --reset`.",
                )
        return self._move(plan, deadline_s)

    def _move(self, plan: CheckedPlan, deadline_s: float) -> Applied:
        admin, began = Admin(self.cluster), time.monotonic()
        taken: dict[str, float | None] = dict.fromkeys(plan.wanted)
        nothing = f"{self.topics.prefix}apply-nothing"
        # A member that joins moves the group's epoch, and at a new epoch the coordinator asks its assignor (KIP-848).
        with nudge(self.cluster, self.group, nothing) as member:
            given = self._given(admin, plan, member.poll, min(deadline_s, TARGET_WITHIN_S))
        # Its leaving asks the assignor once more, which may have read the plan only now.
        if not given and not self._given(admin, plan, time.sleep, LEFT_WITHIN_S):
            why = f" ({member.problem})" if member.problem else ""
            raise CannotApply("not_followed", f"The coordinator did not take the plan{why}: {NOT_FOLLOWED}.")
        held = self._until_held(admin, plan, taken, began, deadline_s)
        return Applied(plan, taken, held)

    def _given(
        self, admin: Admin, plan: CheckedPlan, pause: Callable[[float], None], within_s: float
    ) -> bool:
        """Whether the coordinator wants in time what the plan wants; what members hold comes with their heartbeats."""
        began = time.monotonic()
        while time.monotonic() - began < within_s:
            pause(LOOK_EVERY_S)
            targets = {m.member_id: m.target for m in self._seen(admin).members}
            if all(targets.get(member_id) == held for member_id, held in plan.wanted.items()):
                return True
        return False

    def _until_held(
        self, admin: Admin, plan: CheckedPlan, taken: dict[str, float | None], began: float, deadline_s: float
    ) -> dict[str, frozenset[Key]]:
        held: dict[str, frozenset[Key]] = {}
        while None in taken.values() and time.monotonic() - began < deadline_s:
            held = {m.member_id: m.assigned for m in self._seen(admin).members}
            passed = round(time.monotonic() - began, 1)
            # One may have to give a partition back while others take theirs: it counts from when it held its part for good.
            for member_id, wanted in plan.wanted.items():
                now = held.get(member_id) == wanted
                taken[member_id] = (passed if taken[member_id] is None else taken[member_id]) if now else None
            time.sleep(LOOK_EVERY_S)
        return held

    def _seen(self, admin: Admin) -> GroupDescription:
        return admin.describe([self.group])[self.group]

    def _snapshot(self) -> Snapshot | None:
        """What stands on kagent's topics now. Raises KafkaError if they cannot be read in time."""
        read = threading.Event()
        snapshots: list[Snapshot] = []

        def publish(snapshot: Snapshot) -> None:
            snapshots.append(snapshot)
            read.set()

        reader = Reader(self.home, self.name, self.group, publish, lambda: None, self.topics, once=True)
        reader.start()
        try:
            if not read.wait(READ_WITHIN_S):
                with Admin(self.home) as admin:
                    admin.require_answer()
                raise KafkaError(
                    f"kagent's topics on {self.home.bootstrap} cannot be read: run `kagent topics`, check the rights."
                )
        finally:
            reader.stop()
        return snapshots[-1]

    def _topics(self, found: Described, snapshot: Snapshot | None) -> set[str]:
        # Members that subscribe by an expression name no topics: those of the recommendation stand for them.
        names = {topic for reported in found.reported.values() for topic in reported.topics or ()}
        if snapshot and snapshot.recommendation:
            names |= set(snapshot.recommendation.basis.partitions)
        return names
