"""When many groups would open at once, one thing is the matter, not many: a cluster, a topic or a broker.

    plan = gather(candidates, recent, groups, now)     at every tick, before the candidates are confirmed
    confirm plan.alone; hold back plan.held; publish plan.messages; keep plan.recent

A common incident is a recommendation whose ``group`` is a scope in angle brackets, which no group's key can be mistaken
for while the settings ignore them: ``<topic orders>``, ``<broker 3>``, ``<cluster>``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kagent.advice.judge import Candidate
from kagent.advice.message import incident_id
from kagent.contract.recommendation import (
    Action,
    ActionType,
    Basis,
    GroupKind,
    Recommendation,
    Resolution,
    Severity,
    Skew,
    Status,
    Verdict,
)
from kagent.text import shown

WINDOW = 120_000
"""Groups that would open within so many ms of each other open together."""
SHARED = 5
SHARE = 0.1
QUIET_AFTER = 900_000
VALID = 900_000


@dataclass(frozen=True, slots=True)
class Common:
    """An open common incident: its id, scope, groups held back for it, and when the last of them was a candidate."""

    id: str
    scope: str
    name: str
    opened_at: int
    last: int
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recent:
    """What is remembered between ticks for one cluster; JSON-able by ``to_row``."""

    seen: Mapping[str, tuple[int, tuple[str, ...], tuple[int, ...]]] = field(default_factory=dict)
    """Group → (time it was a candidate, its topics, its brokers)."""
    open: tuple[Common, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """As it is kept in a table."""
        return {
            "seen": {g: [at, list(t), list(b)] for g, (at, t, b) in self.seen.items()},
            "open": [[c.id, c.scope, c.name, c.opened_at, c.last, list(c.groups)] for c in self.open],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Recent:
        """What :meth:`to_row` wrote."""
        return cls(
            {g: (at, tuple(t), tuple(b)) for g, (at, t, b) in row["seen"].items()},
            tuple(Common(i, s, n, at, last, tuple(g)) for i, s, n, at, last, g in row["open"]),
        )


@dataclass(frozen=True, slots=True)
class Gathered:
    """``alone``: to be confirmed as ever; ``held``: candidates for whom a common incident speaks."""

    alone: tuple[Candidate, ...]
    held: tuple[Candidate, ...]
    messages: tuple[Recommendation, ...]
    recent: Recent


def gather(candidates: Sequence[Candidate], recent: Recent, cluster: str, groups: int, now: int) -> Gathered:
    """Which candidates of this tick stand alone, and what is said of those that do not.

    ``groups``: how many are judged on this cluster; ``now`` in ms. Pure; the same input gives the same ids.
    """
    seen = {g: v for g, v in recent.seen.items() if now - v[0] <= WINDOW}
    seen |= {c.group: (now, c.topics, c.brokers) for c in candidates}
    commons = {(c.scope, c.name): c for c in recent.open}
    messages: list[Recommendation] = []
    for scope, name, members in _crowds(seen, groups):
        known = commons.get((scope, name))
        if known is None:
            id_ = incident_id(cluster, _key(scope, name), min(seen[g][0] for g in members))
            known = Common(id_, scope, name, now, now, members)
            messages.append(_message(known, cluster, now, Status.OPEN))
        elif set(members) - set(known.groups):
            known = Common(
                known.id, scope, name, known.opened_at, now, tuple(sorted({*known.groups, *members}))
            )
            messages.append(_message(known, cluster, now, Status.UPDATED))
        commons[scope, name] = Common(known.id, scope, name, known.opened_at, now, known.groups)
    held = [c for c in candidates if any(_speaks_for(common, c) for common in commons.values())]
    for key, common in list(commons.items()):
        if any(_speaks_for(common, c) for c in held):
            commons[key] = Common(common.id, common.scope, common.name, common.opened_at, now, common.groups)
        elif now - common.last > QUIET_AFTER:
            messages.append(_message(common, cluster, now, Status.RESOLVED))
            del commons[key]
    alone = tuple(c for c in candidates if c not in held)
    return Gathered(alone, tuple(held), tuple(messages), Recent(seen, tuple(commons.values())))


def _crowds(
    seen: Mapping[str, tuple[int, tuple[str, ...], tuple[int, ...]]], groups: int
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Scopes that explain many candidates, the most telling first; no group is counted under two of them."""
    left = dict(seen)
    found: list[tuple[str, str, tuple[str, ...]]] = []
    if len(left) >= max(SHARED, SHARE * groups) and len(left) > SHARED:
        one_topic, count = _commonest(t for _, topics, _ in left.values() for t in topics)
        if one_topic is None or count < 0.8 * len(left):
            return [("cluster", "", tuple(sorted(left)))]
    named = {
        "topic": {g: list(topics) for g, (_, topics, _) in left.items()},
        "broker": {g: [str(b) for b in brokers] for g, (_, _, brokers) in left.items()},
    }
    for scope, names in named.items():
        while True:
            name, count = _commonest(n for g in left for n in names[g])
            if name is None or count < SHARED:
                break
            members = tuple(sorted(g for g in left if name in names[g]))
            found.append((scope, name, members))
            left = {g: v for g, v in left.items() if g not in members}
    return found


def _commonest(names: Any) -> tuple[str | None, int]:
    counts = Counter(names)
    if not counts:
        return None, 0
    name = min(counts, key=lambda n: (-counts[n], n))
    return name, counts[name]


def _speaks_for(common: Common, candidate: Candidate) -> bool:
    if common.scope == "cluster":
        return True
    if common.scope == "topic":
        return common.name in candidate.topics
    return common.name in map(str, candidate.brokers)


def _key(scope: str, name: str) -> str:
    return f"<{scope} {name}>" if name else f"<{scope}>"


def _message(common: Common, cluster: str, now: int, status: Status) -> Recommendation:
    where = {
        "topic": f"topic {shown(common.name)}",
        "broker": f"broker {common.name}",
        "cluster": "the cluster",
    }[common.scope]
    names = ", ".join(shown(g) for g in common.groups[:5])
    more = f" and {len(common.groups) - 5} more" if len(common.groups) > 5 else ""
    return Recommendation(
        id=common.id,
        cluster=cluster,
        group=_key(common.scope, common.name),
        status=status,
        verdict=Verdict.STALLED if common.scope == "broker" else Verdict.REBALANCE,
        severity=Severity.TICKET,
        confidence="low",
        reason=f"{len(common.groups)} groups would have opened at once over {where}: {names}{more}. Look there first.",
        group_kind=GroupKind.SIMPLE,
        opened_at=common.opened_at,
        as_of=now,
        valid_until=now + VALID,
        skew=Skew(now=None, after=None, threshold=None, lower_bound=None),
        actions=[
            Action(
                type=ActionType.NONE,
                how=f"Look at {where}: its producers, its brokers' disks and network.",
                feasible="yes",
            )
        ],
        evidence={"scope": common.scope, "name": common.name, "groups": list(common.groups)[:200]},
        basis=Basis(generation=None, digest=""),
        resolution=Resolution.DRAINED if status is Status.RESOLVED else None,
    )
