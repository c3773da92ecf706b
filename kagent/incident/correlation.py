"""What many groups have in common: one message above their own, never instead of them.

A common cause needs evidence: onsets within three minutes of each other, and, of the groups that read a topic or from a broker, a
share that chance does not explain (hypergeometric), on a cluster with more than one broker. A group that was late already when it
was first seen has no known onset and does not count. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any, Literal

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
from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.finding import ROWS
from kagent.incident.evaluate import Candidate
from kagent.lag.chance import NOT_CHANCE, RARE
from kagent.lag.time_units import SECOND_MS
from kagent.policy import Policy
from kagent.recommend.render import incident_id
from kagent.text import few, shown

Scope = Literal["topic", "broker", "cluster"]
ONSET_MS = round(NOT_CHANCE * USUAL_GAP_S * SECOND_MS)
"""When a group fell behind is known to some commits: three minutes."""
LEAST = 5
"""Fewer groups are no crowd."""
QUIET_AFTER_MS = round(Policy().valid * SECOND_MS)
"""Without a new group for this long the cause is over, what was published of it is valid no longer, and an onset explains nothing new."""


@dataclass(frozen=True, slots=True)
class Onset:
    """One group's finding: when it began (ms), where, and what it is."""

    since: int
    topics: tuple[str, ...]
    brokers: tuple[int, ...]
    verdict: str
    kind: str


@dataclass(frozen=True, slots=True)
class Common:
    """An open common incident: its id, scope, groups, when the last of them was added (ms), and what it is about."""

    id: str
    scope: str
    name: str
    opened_at: int
    last: int
    groups: tuple[str, ...]
    verdict: str = Verdict.REBALANCE.value
    kind: str = GroupKind.CLASSIC.value
    """Kept: when it resolves, the onsets that they came from are forgotten."""


@dataclass(frozen=True, slots=True)
class CorrelationState:
    """What is remembered between ticks for one cluster; JSON-able by ``to_row``."""

    onsets: Mapping[str, Onset] = field(default_factory=dict)
    open: tuple[Common, ...] = ()

    def to_row(self) -> dict[str, Any]:
        """As it is kept in a table."""
        return {
            "onsets": {
                g: [o.since, list(o.topics), list(o.brokers), o.verdict, o.kind]
                for g, o in self.onsets.items()
            },
            "open": [
                [c.id, c.scope, c.name, c.opened_at, c.last, list(c.groups), c.verdict, c.kind]
                for c in self.open
            ],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> CorrelationState:
        """What :meth:`to_row` wrote; onsets of an older version are left out."""
        return cls(
            {g: Onset(s, tuple(t), tuple(b), v, k) for g, (s, t, b, v, k) in row.get("onsets", {}).items()},
            # Rows of an older version end with the groups.
            tuple(
                Common(i, s, n, at, last, tuple(g), *about)
                for i, s, n, at, last, g, *about in row.get("open", [])
            ),
        )


@dataclass(frozen=True, slots=True)
class Population:
    """How many groups are judged on the cluster, how many read each topic and from each broker."""

    groups: int
    topics: Mapping[str, int] = field(default_factory=dict)
    brokers: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Correlated:
    """``messages``: what many groups have in common; ``recent``: what to remember."""

    messages: tuple[Recommendation, ...]
    recent: CorrelationState


def correlate(
    candidates: Sequence[Candidate], recent: CorrelationState, cluster: str, population: Population, now: int
) -> Correlated:
    """What the candidates of this tick have in common with those of the last minutes. ``now`` in ms; the same input gives the
    same ids."""
    onsets = {g: o for g, o in recent.onsets.items() if now - o.since <= QUIET_AFTER_MS}
    for c in candidates:
        # When kagent starts, every group that was late already seems to begin now: that is no common onset.
        if not c.first_sight:
            onsets[c.group] = Onset(c.since, c.topics, c.brokers, c.verdict, str(c.kind))
    several = max((c.broker_count for c in candidates), default=1) > 1
    known = {(c.scope, c.name): c for c in recent.open}
    messages: list[Recommendation] = []
    for scope, name, groups in _crowds(onsets, population, several):
        before = known.get((scope, name))
        # Published again only for a group that is new: the crowd is counted anew at each tick.
        if before is not None and not set(groups) - set(before.groups):
            continue
        members = tuple(sorted({*groups, *(before.groups if before else ())}))
        began = min(onsets[g].since for g in groups)
        # From the earliest onset, so that workers that restart give the same incident the same id.
        id_ = before.id if before else incident_id(cluster, _key(scope, name), began)
        opened_at = before.opened_at if before else now
        verdict, kind = _commonest([onsets[g] for g in members if g in onsets])
        known[scope, name] = Common(id_, scope, name, opened_at, now, members, verdict, kind)
        status = Status.UPDATED if before else Status.OPEN
        messages.append(_message(known[scope, name], cluster, now, status))
    for key, common in list(known.items()):
        if now - common.last > QUIET_AFTER_MS:
            messages.append(_message(common, cluster, now, Status.RESOLVED))
            del known[key]
    return Correlated(tuple(messages), CorrelationState(onsets, tuple(known.values())))


def _crowds(
    onsets: Mapping[str, Onset], population: Population, several_brokers: bool
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Scopes that explain what began together, the narrowest first; a group is counted under one of them."""
    left = _together(onsets)
    found: list[tuple[str, str, tuple[str, ...]]] = []
    places: list[tuple[str, Mapping[Any, int]]] = [("topic", population.topics)]
    if several_brokers:
        places.append(("broker", population.brokers))
    for scope, readers in places:
        for name in sorted(readers, key=str):
            groups = tuple(
                sorted(g for g, o in left.items() if name in (o.topics if scope == "topic" else o.brokers))
            )
            if _is_crowd(len(groups), readers[name], len(left), population.groups):
                found.append((scope, str(name), groups))
                # Narrowest scope first: groups that one topic explains must not blame a broker too.
                left = {g: o for g, o in left.items() if g not in groups}
    # With a single broker all groups share it, and "the cluster" tells no more than the groups' own incidents.
    if _are_most(len(left), population.groups) and several_brokers:
        found.append(("cluster", "", tuple(sorted(left))))
    return found


def _together(onsets: Mapping[str, Onset]) -> dict[str, Onset]:
    """The largest set of groups whose onsets lie within three minutes."""
    best: dict[str, Onset] = {}
    # The largest such set begins at some onset, so only windows that begin at one are tried.
    for first in sorted(o.since for o in onsets.values()):
        some = {g: o for g, o in onsets.items() if first <= o.since <= first + ONSET_MS}
        best = some if len(some) > len(best) else best
    return best


def _are_most(found: int, groups: int) -> bool:
    """Whether this many groups are a crowd, and no fewer than the rest of them."""
    return found >= LEAST and found >= groups - found


def _is_crowd(found: int, readers: int, all_found: int, groups: int) -> bool:
    """Whether this many of a place's readers are too many for chance."""
    if not _are_most(found, readers):
        return False
    return _chance(found, readers, all_found, max(groups, readers, all_found)) < 1 / RARE


def _chance(found: int, readers: int, marked: int, groups: int) -> float:
    """Probability that at least ``found`` of ``readers`` drawn from ``groups`` are among the ``marked``."""
    # Upper tail of the hypergeometric distribution, in exact integers: no SciPy for one sum.
    # https://en.wikipedia.org/wiki/Hypergeometric_distribution
    total = comb(groups, readers)
    ways = sum(
        comb(marked, k) * comb(groups - marked, readers - k) for k in range(found, min(readers, marked) + 1)
    )
    return ways / total if total else 1.0


def _key(scope: str, name: str) -> str:
    return f"<{scope} {name}>" if name else f"<{scope}>"


def _commonest(onsets: Sequence[Onset]) -> tuple[str, str]:
    """Verdict and kind of group of most of these, each by itself."""
    verdicts, kinds = Counter(o.verdict for o in onsets), Counter(o.kind for o in onsets)
    return verdicts.most_common(1)[0][0], kinds.most_common(1)[0][0]


def _message(common: Common, cluster: str, now: int, status: Status) -> Recommendation:
    place = {"topic": f"topic {shown(common.name)}", "broker": f"broker {common.name}"}
    where = place.get(common.scope, "the cluster")
    names = few([shown(group) for group in common.groups])
    return Recommendation(
        id=common.id,
        cluster=cluster,
        group=_key(common.scope, common.name),
        scope=common.scope,
        status=status,
        verdict=Verdict(common.verdict),
        # Low confidence and never a page: the groups' own incidents state what is certain.
        severity=Severity.TICKET,
        confidence="low",
        reason=f"{len(common.groups)} groups fell behind within three minutes of each other, all of them at {where}: {names}. Look there first.",
        group_kind=GroupKind(common.kind),
        opened_at=common.opened_at,
        as_of=now,
        valid_until=now + QUIET_AFTER_MS,
        skew=Skew(now=None, after=None, threshold=None, lower_bound=None),
        actions=[
            Action(
                type=ActionType.NONE,
                how=f"Look at {where}: its producers, its brokers' disks and network.",
                feasible="yes",
            )
        ],
        evidence={"scope": common.scope, "name": common.name, "groups": list(common.groups)[:ROWS]},
        basis=Basis(generation=None, digest=""),
        resolution=Resolution.DRAINED if status is Status.RESOLVED else None,
    )
