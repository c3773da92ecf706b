"""A soak: processes of a whole kagent are killed, frozen and stopped in an order that a seed fixes, and a verdict is given.

The oracle is not kagent: the broker's admin API says what is committed, and the topic's own history what was published.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml

from kagent.contract.recommendation import Status
from kagent.embedded.broker import Broker, free_port
from kagent.kafka.admin import Admin
from tests.fixtures.waiting import PATIENCE_S

SKEWED = "skewed"
QUIET_TOPIC = "quiet"
"""A partition for each quiet group: a topic that others write to would leave it behind, which is no fault of kagent."""
START = ((("orders", 0), ("orders", 1), ("orders", 2)), (("orders", 3),))
FREEZES_S = (5, 17, 30)
"""Shorter than a session, longer, and longer than a transaction's timeout."""


@dataclass
class Soak:
    """The faults on one running kagent, and what is seen. ``running``: as the fixture ``kagent`` makes it.

    No fault repeats or ends the one incident, and what is committed while a process is away is known after it.
    """

    running: Any
    seed: int
    workers: int = 3
    quiet: int = 20
    """Groups that commit now and then, and have no incident."""
    offsets: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    recovered_s: list[float] = field(default_factory=list)
    exits: Counter[str] = field(default_factory=Counter)
    """Processes that ended though nobody ended them."""
    findings: list[str] = field(default_factory=list)

    brokers: dict[str, Broker] = field(default_factory=dict)
    """By the name that faults have for them; the one of ``running`` where none are given."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.brokers = self.brokers or {"broker": self.running.broker}
        settings = yaml.safe_load(self.running.config.read_text())
        self.ports = {"worker": settings["worker"]["web_port"]}
        for number in range(2, self.workers + 1):
            name = f"worker-{number}"
            self.ports[name] = free_port()
            self.running.logins[name] = {"KAGENT_WORKER__DATA": str(self.running.folder / name)}

    def start(self) -> None:
        """Everything, until the incident of the skewed group is open."""
        running = self.running
        running.topic("orders", 4)
        running.topic(QUIET_TOPIC, self.quiet)
        for place in (0, 1):
            running.member(SKEWED, place, ("orders",), start=START, cost=0.025)
        running.load("orders", [20.0] * 4)
        running.start_pipeline()
        for name in self.ports:
            self.start_one(name)
        running.wait_until_watching()
        running.eventually("an incident opens", lambda: running.incident(SKEWED))
        self.commit(self.quiet)

    def start_one(self, name: str) -> None:
        """A process of kagent, by the name that its log has."""
        if name == "pipeline":
            self.running.start_pipeline()
        else:
            self.running.start(name, "worker", "--web-port", str(self.ports[name]))

    def commit(self, number: int) -> None:
        """Records for some quiet groups, and their commits of all that there is, as a group without members makes them."""
        for place in self.random.sample(range(self.quiet), number):
            group, count = f"quiet-{place}", self.random.randint(1, 9)
            self.running.produce(QUIET_TOPIC, {place: count})
            self.offsets[group] = self.offsets.get(group, 0) + count
            self.running.commit(group, {(QUIET_TOPIC, place): self.offsets[group]})

    def planned(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Faults without end, as the seed has them."""
        while True:
            target = self.random.choice([*self.ports, *self.ports, "pipeline", *self.brokers])
            kind = self.random.choice(["kill", "freeze", "stop"])
            yield self.fault(kind, target, self.random.choice(FREEZES_S))

    def short(self) -> list[tuple[str, Callable[[], None]]]:
        """The few faults of a short soak: each process is killed once and one is frozen, in the seed's order."""
        targets = [*self.ports, "pipeline", *self.brokers]
        faults = [self.fault("kill", target) for target in targets]
        faults.append(self.fault("freeze", self.random.choice(targets), FREEZES_S[0]))
        self.random.shuffle(faults)
        return faults

    def fault(self, kind: str, target: str, seconds: int = 0) -> tuple[str, Callable[[], None]]:
        """Its name and what makes it. ``kind``: kill (SIGKILL), stop (SIGTERM) or freeze (SIGSTOP) for so many seconds."""
        if kind == "freeze":
            return f"freeze {target} for {seconds} s", partial(self.freeze, target, seconds)
        return f"{kind} {target}", partial(self.end, kind, target)

    def end(self, kind: str, target: str) -> None:
        """kill -9 or SIGTERM, and start again; what is committed meanwhile has to be known afterwards."""
        if target in self.brokers:
            self.commit(1)
            broker = self.brokers[target]
            (broker.kill if kind == "kill" else broker.stop)()
            broker.start()
            return
        self.revive()
        (self.running.kill if kind == "kill" else self.running.stop)(target)
        self.commit(1)
        self.start_one(target)

    def freeze(self, target: str, seconds: int) -> None:
        """SIGSTOP with all that it started, and SIGCONT."""
        self.revive()
        process = self.brokers.get(target) or self.running.processes[target]
        assert process.pid is not None, f"{target} does not run"
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGCONT)

    def revive(self) -> None:
        """Start again what ended by itself, and count it."""
        for name in ("pipeline", *self.ports):
            process = self.running.processes.get(name)
            if process is not None and process.poll() is not None:
                self.exits[f"{name.split('-')[0]}: code {self.running.processes.pop(name).returncode}"] += 1
                self.start_one(name)

    def inflict(self, name: str, fault: Callable[[], None]) -> None:
        """One fault; wait until all groups are judged again, and commit meanwhile."""
        began = time.time()
        fault()
        self.faults.append(name)
        self.commit(min(3, self.quiet))
        self.wait_until_judged()
        self.recovered_s.append(time.time() - began)
        self.findings += [f"after {name!r}: {what}" for what in self.seen_now()]

    def wait_until_judged(self) -> None:
        """Until a state message from now on says that all is watched, and the incident is judged."""
        began = time.time()

        def judged() -> bool:
            self.revive()
            state, incident = self.running.state(since=began), self.running.incident(SKEWED)
            fresh = incident is not None and not incident.stale
            return bool(state and state.status == "watching" and fresh)

        with self.tolerant():
            self.running.eventually("all is judged again", judged, PATIENCE_S)

    @contextmanager
    def tolerant(self) -> Iterator[None]:
        """A process that ends by itself is counted and started again, not an error at once."""
        self.running.ended = lambda name: False
        try:
            yield
        finally:
            del self.running.ended

    def seen_now(self) -> list[str]:
        """What is wrong with what was published so far."""
        found, history = [], [rec for rec in self.running.history() if rec.group == SKEWED]
        ids = {rec.id for rec in history}
        opened = [rec.status for rec in history].count(Status.OPEN)
        if len(ids) != 1 or opened != 1:
            found.append(f"{len(ids)} ids and {opened} openings of one incident")
        if any(rec.status is Status.RESOLVED for rec in history):
            found.append("resolved though the load is as it was")
        others = {rec.group for rec in self.running.history()} - {SKEWED}
        if others:
            found.append(f"incidents of sound groups: {', '.join(sorted(others))}")
        return found

    def verdict(self) -> list[str]:
        """All findings, with those that only the end can show."""
        running = self.running
        self.commit(self.quiet)
        self.wait_until_judged()
        # A table that follows commits equals what is committed only once nobody commits.
        for member in (1, 2):
            running.kill(f"{SKEWED}-{member}")
        with self.tolerant():
            running.assert_table_equals_admin()
            wanted = {name for name in Admin(running.cluster).groups() if not name.startswith("kagent")}
            running.eventually("every group is in the API", lambda: self.told() == wanted, PATIENCE_S)
        committed = {group: next(iter(at.values())) for group, at in running.committed().items()}
        lost = [group for group, offset in self.offsets.items() if committed.get(group) != offset]
        assert not lost, f"the broker itself lost commits: {lost}"
        return list(dict.fromkeys(self.findings))

    def told(self) -> set[str]:
        """The groups of which any worker's API tells, if it is complete."""
        for port in self.ports.values():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/groups", timeout=20) as answer:
                    said = json.loads(answer.read())
            except OSError:
                continue
            if said["complete"]:
                return {group["group"] for group in said["groups"]}
        return set()

    def summary(self) -> str:
        """The figures, in lines."""
        times = sorted(self.recovered_s) or [0.0]
        kinds = Counter(" ".join(fault.split()[:2]) for fault in self.faults)
        lines = [
            f"seed {self.seed}: {len(self.faults)} faults ({', '.join(f'{n}× {k}' for k, n in sorted(kinds.items()))})",
            f"judged again after {times[len(times) // 2]:.0f} s (median), {times[-1]:.0f} s (longest)",
            f"ended by themselves: {dict(self.exits) or 'none'}",
            f"findings: {'; '.join(dict.fromkeys(self.findings)) or 'none'}",
        ]
        return "\n".join(lines)
