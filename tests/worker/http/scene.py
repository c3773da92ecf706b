"""A worker that has watched some groups for a while, without a broker: every event, sample and tick is fed to the real desk.

The clock starts in the past and ends now, so that the page shows what it would after that hour.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from aiohttp.test_utils import TestClient, TestServer

from kagent.contract.events import Beat, GroupEvent, MembershipRecord, TopicOffsets, encode
from kagent.offsets import Record
from kagent.settings import Cluster, Settings, Topics
from kagent.testing import memory_tables
from kagent.worker.coordinator_check import CoordinatorAnswer
from tests.fixtures.coordinators import each

if TYPE_CHECKING:
    from kagent.worker.process import Worker

STEP_S = 10
POLICY = {"settle": 30, "hold": 60, "cooldown": 60}


@dataclass
class Load:
    """A group on a topic of its own: members with equal shares of the partitions. ``rates``: records/s into each partition;
    ``capacity``: records/s that a member works off; ``stuck``: a partition that stands still from half-time on;
    ``open_transaction``: one whose last stable offset does. ``has_left``: its members are gone. ``member_ids``: of members that run somewhere, else made up."""

    group: str
    members: int
    rates: Sequence[float]
    capacity: float = 1000.0
    stuck: int | None = None
    open_transaction: int | None = None
    member_ids: Sequence[str] = ()
    has_left: bool = False
    end: Any = None
    committed: Any = None
    stable: Any = None

    def __post_init__(self) -> None:
        self.end = np.full(len(self.rates), 1000.0)
        self.committed = self.end.copy()
        self.stable = self.end.copy()

    @property
    def topic(self) -> str:
        """A group may have any name, a topic only letters, digits and ``._-``."""
        return f"{re.sub(r'[^A-Za-z0-9._-]', '_', self.group[:200])}-topic"

    def holder(self, partition: int) -> int:
        return partition * self.members // len(self.rates)

    def member(self, at: int) -> str:
        return f"{self.group[:200]}-{at + 1}"

    def member_id(self, at: int) -> str:
        return self.member_ids[at] if self.member_ids else f"{self.member(at)}-id"

    def move(self, seconds: float, stands: bool) -> None:
        """Let time pass."""
        self.end = self.end + np.array(self.rates) * seconds
        waits = np.arange(len(self.end)) == self.open_transaction
        self.stable = np.where(waits & stands, self.stable, self.end)
        holders = np.array([self.holder(p) for p in range(len(self.rates))])
        for at in range(0 if self.has_left else self.members):
            mine, room = np.flatnonzero(holders == at), self.capacity * seconds
            mine = np.array([p for p in mine if not (stands and p == self.stuck)], int)
            behind = self.stable[mine] - self.committed[mine]
            share = min(1.0, room / behind.sum()) if behind.sum() else 1.0
            self.committed[mine] += np.floor(behind * share)

    def membership(self) -> dict[str, Any]:
        """The coordinator's record."""
        members = []
        for at in range(0 if self.has_left else self.members):
            held = [p for p in range(len(self.rates)) if self.holder(p) == at]
            members.append(
                {
                    "memberId": self.member_id(at),
                    "groupInstanceId": self.member(at),
                    "clientId": "consumer",
                    "clientHost": f"/10.0.0.{at + 1}",
                    "sessionTimeout": 10_000,
                    "subscription_decoded": {"version": 1, "topics": [self.topic], "userData": None, "ownedPartitions": []},
                    "assignment_decoded": {"version": 1, "assignedPartitions": [{"topic": self.topic, "partitions": held}]},
                }
            )  # fmt: skip
        value = {
            "protocolType": "consumer",
            "generation": 4,
            "protocol": "range",
            "leader": "",
            "members": members,
        }
        return Record("GroupMetadata", 2, 3, {"group": self.group}, value).to_json()

    def answer(self) -> CoordinatorAnswer:
        """What the coordinator says when it is asked."""
        every = range(len(self.rates))
        return CoordinatorAnswer(
            "stable",
            {(self.topic, p): self.member_id(self.holder(p)) for p in every},
            {(self.topic, p): int(self.committed[p]) for p in every},
        )


@dataclass
class Scene:
    """The worker and what happens around it."""

    worker: Worker
    loads: list[Load]
    clock_s: float
    minutes: float
    passed_s: float = 0.0
    events: int = 0
    heard: bool = True
    sent: list[tuple[str, bytes | None]] = field(default_factory=list)

    def shown_anew(self) -> Scene:
        """The same groups in a worker whose web application is still to be made."""
        from kagent.worker.process import Worker

        worker = Worker(self.worker.settings, "main")
        worker.desk, worker.ownership.ready, worker.ownership.loaded = self.worker.desk, True, {0}
        return replace(self, worker=worker)

    def take(self, message: bytes) -> None:
        self.worker.desk.take(0, self.events, message)
        self.events += 1

    async def step(self, seconds: float = STEP_S) -> None:
        """Let time pass: records come, members commit, log ends are read, and a tick judges. Without ``heard``, the pipeline is dead."""
        self.clock_s += seconds
        self.passed_s += seconds
        now = int(self.clock_s * 1000)
        for load in self.loads:
            load.move(seconds, self.passed_s > self.minutes * 30)
            self.sample(load, now)
        if self.heard:
            for load in (load for load in self.loads if not load.has_left):
                self.commit(load, now)
            n = self.events
            self.take(encode(Beat("main", now, "r", 1.0, False, [0], [0], [n], [n], [n])))
        await self.worker.desk.tick(0, now)

    def sample(self, load: Load, now: int) -> None:
        ends = load.end.astype(np.int64)
        sample = SimpleNamespace(
            topic=load.topic,
            topic_id=None,
            asked=now - 50,
            seen=now - 40,
            start=np.zeros_like(ends),
            end=ends,
            stable=load.stable.astype(np.int64),
        )
        self.worker.desk.logs.sampled("main", [sample], {}, {})

    def commit(self, load: Load, now: int) -> None:
        every = list(range(len(load.rates)))
        offsets = [int(c) for c in load.committed]
        commit = TopicOffsets(
            load.topic, None, every, offsets, [now - 20] * len(every), [self.events] * len(every)
        )
        self.take(encode(GroupEvent("main", load.group, 0, now, [commit])))

    def join(self, load: Load, now: int) -> None:
        record = MembershipRecord(self.events + 1, now, load.membership())
        self.take(encode(GroupEvent("main", load.group, 0, now, (), (), [record])))


def made(loads: list[Load], minutes: float, bootstrap: str = "127.0.0.1:1", **more: Any) -> Scene:
    """A scene that has just begun, ``minutes`` before now."""
    from kagent.worker.engine import GroupEngine
    from kagent.worker.process import Worker

    settings = Settings(
        clusters={"main": Cluster(bootstrap=bootstrap)},
        topics=Topics(partitions=1),
        policy=more.pop("policy", POLICY),
        groups=[{"match": "orders*", "owner": "team-shop"}],
        **more,
    )
    tables: Any = memory_tables()
    worker = Worker(settings, "main")
    scene = Scene(worker, loads, time.time() - minutes * 60, minutes)

    def publish(partition: int, key: str, value: bytes | None, on_delivery: Any) -> None:
        scene.sent.append((key, value))

    async def fresh(entry: Any) -> CoordinatorAnswer | None:
        return next((load.answer() for load in loads if load.group == entry.group), None)

    worker.desk = GroupEngine.of(
        settings, tables, publish, each(fresh), "worker-1:6066", clock=lambda: scene.clock_s
    )
    worker.desk.load([0], {0: 0})
    worker.ownership.ready, worker.ownership.loaded = True, {0}
    for load in loads:
        scene.join(load, int(scene.clock_s * 1000))
    return scene


async def opened(stack: AsyncExitStack, worker: Any) -> TestClient[Any, Any]:
    """A client of the worker's pages, until the stack is closed."""
    from kagent.app import wire
    from kagent.worker.http.pages import application

    app = wire(worker)
    app.finalize()
    app.web.init_server()
    stack.push_async_callback(worker.app.http_client.close)
    return await stack.enter_async_context(TestClient(TestServer(application(app))))
