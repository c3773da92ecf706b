"""A group made by hand: what each partition's log and commit look like, who holds it, and a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from kagent.advice.commits import TopicCommits
from kagent.advice.ends import UNKNOWN, EndHistory
from kagent.advice.look import Look
from kagent.advice.observation import Observation, TopicInfo
from kagent.advice.policy import Policy
from kagent.advice.redaction import CLEAR, Redaction
from kagent.advice.roster import Roster
from kagent.advice.simulator.run import MemberView, View
from kagent.advice.state import JudgeState

NOW = 1_700_000_000_000
WATCHED = 3600


@dataclass
class Group:
    """Topic → one dict a partition: ``end`` now, ``rate`` of records/s, ``lag`` at the commit's time or ``committed``, ``age``
    of the commit and ``moved`` (s ago), ``start``, ``stable``. Members: name → {topic: partitions}."""

    topics: Mapping[str, Sequence[Mapping[str, Any]]]
    members: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    type: str = "classic"
    protocol: str | None = "range"
    protocol_type: str | None = "consumer"
    library: str | None = "java"
    client: str = "app"
    name: str = "orders"
    subscriptions: Sequence[str] | None = None
    infos: Mapping[str, TopicInfo] = field(default_factory=dict)
    ids: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    state: str = "Stable"
    seen: Any = None
    redaction: Redaction = CLEAR

    def roster(self) -> Roster:
        topics = tuple(self.subscriptions if self.subscriptions is not None else self.topics)
        members = tuple(
            MemberView(
                f"id-{name}",
                f"{self.client}-{name}",
                "/10.0.0.1",
                topics,
                {t: tuple(ps) for t, ps in held.items()},
                library=self.library,
            )
            for name, held in self.members.items()
        )
        state = self.state if members else "Empty"
        return Roster.of(
            View(
                self.name, self.type, state, self.protocol_type, self.protocol, 7, members, NOW - 86_400_000
            ),
            self.redaction,
        )

    def history(self, topic: str) -> EndHistory:
        parts = self.topics[topic]
        made = EndHistory(len(parts), self.ids.get(topic, (None, None))[1])
        for ago in range(WATCHED, -1, -5):
            at = NOW - ago * 1000
            ends = [max(0, round(p["end"] - p.get("rate", 0) * ago)) for p in parts]
            stable = [p.get("stable", UNKNOWN) for p in parts]
            made.add(at, at + 10, [p.get("start", 0) for p in parts], ends, stable)
        return made

    def commits(self, topic: str) -> TopicCommits | None:
        parts = self.topics[topic]
        has = [n for n, p in enumerate(parts) if "lag" in p or "committed" in p]
        if not has:
            return None
        rows = [parts[n] for n in has]
        age = [p.get("age", 2.5) for p in rows]
        committed = [
            p["committed"] if "committed" in p else round(p["end"] - p.get("rate", 0) * a - p["lag"])
            for p, a in zip(rows, age, strict=True)
        ]
        times = [NOW - round(a * 1000) for a in age]
        return TopicCommits(
            topic,
            self.ids.get(topic, (None, None))[0],
            has,
            committed,
            times,
            list(range(len(has))),
            [NOW - round(p.get("moved", a) * 1000) for p, a in zip(rows, age, strict=True)],
            [5000] * 5,
            1000,
            NOW - 86_400_000,
        )

    def observe(self) -> Observation:
        commits = {t: c for t in self.topics if (c := self.commits(t)) is not None}
        return Observation(
            "main",
            self.name,
            NOW + 100,
            self.roster(),
            commits,
            {t: self.history(t) for t in self.topics},
            self.infos,
            NOW + 50,
        )

    def look(self, policy: Policy | None = None, **state: Any) -> Look:
        known = JudgeState(
            **{"first_seen": NOW - 864_000_000, "members_at": NOW, "generation_at": NOW - 36_000_000, **state}
        )
        return Look(self.observe(), policy or Policy(), known)


@pytest.fixture
def group() -> Callable[..., Group]:
    return Group
