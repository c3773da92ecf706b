"""One group as plain columns: the only module of the page and its API that knows how a judgement looks inside.

``glance`` is cheap and runs for every group at every tick; ``columns`` is made when somebody asks for one group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kagent.advice.explain import WHY_NOT, explain, lines
from kagent.advice.judge import Judgement
from kagent.advice.look import Look
from kagent.advice.state import JudgeState
from kagent.advice.verdicts import findings
from kagent.contract.recommendation import Verdict
from kagent.contract.redaction import CLEAR, Redaction
from kagent.lag.commits import GONE
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.membership import NOBODY, kind_of
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.worker.http.timeline import Milestones

STALLED = frozenset({Verdict.STALLED, Verdict.STUCK_MEMBER})


@dataclass(frozen=True, slots=True)
class Glance:
    """A group at one tick. ``members``: name → (lag in records, seconds behind, inflow per s), empty for a quiet group."""

    cluster: str
    group: str
    owner: str | None
    lag_records: int | None
    seconds_behind: float
    skew: float | None
    verdict: str
    kind: str
    state: str
    member_count: int
    blind: str | None
    not_opened: str | None
    muted_until_ms: int | None
    milestones: Milestones
    late: bool = False
    members: dict[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemberColumns:
    """One entry per member. ``work`` in ``unit``; ``speed``: 1 is ordinary, None where it was never measured;
    ``known``: whether its commits tell of now."""

    name: list[str] = field(default_factory=list)
    member_id: list[str] = field(default_factory=list)
    client_id: list[str] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    lag_records: list[int] = field(default_factory=list)
    seconds_behind: list[float] = field(default_factory=list)
    inflow_per_s: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    speed: list[float | None] = field(default_factory=list)
    speed_intervals: list[int] = field(default_factory=list)
    known: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """One entry per partition. ``topic``: code in ``topics``; ``member``: code, -1 for nobody; ``lag_records``: None without
    a commit; ``seconds_late``: age of the oldest unread record; the rest are marks."""

    topics: list[str] = field(default_factory=list)
    topic: list[int] = field(default_factory=list)
    partition: list[int] = field(default_factory=list)
    member: list[int] = field(default_factory=list)
    committed: list[int | None] = field(default_factory=list)
    lag_records: list[int | None] = field(default_factory=list)
    seconds_late: list[float] = field(default_factory=list)
    inflow_per_s: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    stalled: list[bool] = field(default_factory=list)
    open_transaction: list[bool] = field(default_factory=list)
    hot: list[bool] = field(default_factory=list)
    lost_records: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """One group in full, as plain values."""

    kind: str
    state: str
    protocol: str | None
    generation: int | None
    by_member: bool
    threshold: float
    work_unit: str
    members: MemberColumns
    partitions: PartitionColumns
    story: dict[str, Any]
    """What ``kagent explain --json`` prints."""
    lines: list[str]
    """What ``kagent explain`` prints."""
    draft: dict[str, Any] | None
    """The recommendation as it would be published now; None where nothing is the matter."""


def glance(seen: Observation, judged: Judgement, policy: Policy) -> Glance:
    """The group at this tick. A quiet group is only added up: nothing of it was behind when it committed."""
    look, roster = judged.look, seen.roster
    members = _member_rows(look) if look is not None and look.by_member else {}
    late = look is not None and bool((look.lags.low > 0).any())
    return Glance(
        cluster=seen.cluster,
        group=seen.group,
        owner=policy.owner,
        lag_records=_lag_of(look) if look is not None else quick_lag(seen),
        seconds_behind=_seconds_behind(look, members) if late and look is not None else 0.0,
        skew=_skew(look, judged, roster is not None and bool(roster.members)),
        verdict=judged.verdict,
        kind=str(kind_of(roster, seen.group, policy.kind)),
        state=roster.state if roster is not None else "empty",
        member_count=len(roster.members) if roster is not None else 0,
        blind=seen.blind or (WHY_NOT["unwatched"] if judged.held == "unwatched" else None),
        not_opened=None if judged.state.incident else _reason(judged),
        muted_until_ms=seen.mute.until if seen.muted and seen.mute is not None else None,
        milestones=milestones(judged.state),
        late=late,
        members=members if late else {},
    )


def _skew(look: Look | None, judged: Judgement, has_members: bool) -> float | None:
    if look is not None:
        return float(look.load.skew) if look.by_member else None
    return 1.0 if has_members and judged.held is None else None


def _reason(judged: Judgement) -> str | None:
    reason = judged.dropped or judged.held
    return WHY_NOT.get(reason, reason) if reason and judged.verdict != "balanced" else None


def milestones(state: JudgeState) -> Milestones:
    """What is remembered of the group's case."""
    streak, incident = state.streak, state.incident
    return Milestones(
        first_seen_ms=streak.since if streak else None,
        confirmed_ms=streak.asked if streak and streak.confirmed else None,
        incident=incident.id if incident else None,
        opened_ms=incident.opened_at if incident else None,
        followed_ms=incident.followed_at if incident else None,
        generation=state.generation,
        rebalanced_ms=state.generation_at or None,
    )


def quick_lag(seen: Observation) -> int | None:
    """Shown lag of all partitions with a commit, in records; None where no log end is known."""
    total, known = 0, False
    for topic, commits in seen.commits.items():
        ends = seen.ends.get(topic)
        if ends is None or not ends.samples or not commits.partition:
            continue
        partition = np.asarray(commits.partition, np.int64)
        committed = np.asarray(commits.committed, np.int64)
        here = (partition < ends.partitions) & (committed != GONE)
        behind = ends.end[partition[here]] - np.maximum(committed[here], ends.start[partition[here]])
        total, known = total + int(np.maximum(behind, 0).sum()), True
    return total if known else None


def _lag_of(look: Look) -> int | None:
    lags = look.lags
    return int(lags.shown[lags.known].sum()) if lags.known.any() else None


def _seconds_behind(look: Look, members: dict[str, tuple[float, float, float]]) -> float:
    """Of the latest member, or of the oldest unread record of a partition that stands still: those count for no member."""
    late = look.relevant & (look.lags.low > 0)
    counts = late & look.pinned if members else late
    oldest = float(look.age[counts].max(initial=0.0))
    return max([oldest, *(behind for _, behind, _ in members.values())])


def _member_rows(look: Look) -> dict[str, tuple[float, float, float]]:
    """Name → shown lag, seconds behind, inflow."""
    lag, inflow = _per_member(look, look.lags.shown), _per_member(look, look.lags.inflow)
    behind = look.load.behind.tolist()
    return dict(zip(look.names, zip(lag.tolist(), behind, inflow.tolist(), strict=True), strict=True))


def _per_member(look: Look, column: Any) -> Any:
    lags = look.lags
    use = lags.counted
    return np.bincount(lags.owner[use], column[use], len(look.names))


def columns(
    seen: Observation, judged: Judgement, state: JudgeState, policy: Policy, redaction: Redaction = CLEAR
) -> GroupColumns:
    """The group in full as it stands now."""
    look = Look(seen, policy, state)
    story = explain(judged, look)
    return GroupColumns(
        kind=str(look.kind),
        state=look.roster.state if look.roster else "empty",
        protocol=look.roster.protocol if look.roster else None,
        generation=look.roster.generation if look.roster else None,
        by_member=look.by_member,
        threshold=policy.threshold,
        work_unit=look.load.unit,
        members=_members(look, redaction),
        partitions=_partitions(look),
        story=story,
        lines=lines(story),
        draft=story.get("recommendation"),
    )


def _members(look: Look, redaction: Redaction) -> MemberColumns:
    if look.roster is None:
        return MemberColumns()
    members, load, speed = look.roster.members, look.load, look.rates.speed
    measured = [speed.get(name) for name in look.names]
    return MemberColumns(
        name=list(look.names),
        member_id=[redaction.member_id(m.member_id) for m in members],
        client_id=[redaction.client_id(m.client_id) for m in members],
        host=[redaction.host(m.host) for m in members],
        lag_records=_per_member(look, look.lags.shown).astype(int).tolist(),
        seconds_behind=load.behind.round(1).tolist(),
        inflow_per_s=_per_member(look, look.lags.inflow).round(2).tolist(),
        work=load.low.round(3).tolist(),
        speed=[round(k.value, 3) if k else None for k in measured],
        speed_intervals=[k.intervals if k else 0 for k in measured],
        known=load.known.tolist(),
    )


def _partitions(look: Look) -> PartitionColumns:
    lags = look.lags
    unread = lags.known & (lags.shown > look.policy.allowed_lag)
    waits = unread & (lags.stable != UNKNOWN) & (lags.stable < lags.end) & (lags.committed >= lags.stable)
    stalled, hot = _marked(look, STALLED), _marked(look, frozenset({Verdict.HOT_PARTITION}))
    return PartitionColumns(
        topics=list(lags.topics),
        topic=lags.topic.tolist(),
        partition=lags.partition.tolist(),
        member=np.where(lags.owner == NOBODY, -1, lags.owner).tolist(),
        committed=[c if c >= 0 else None for c in lags.committed.tolist()],
        lag_records=[lag if lag != UNKNOWN else None for lag in lags.shown.tolist()],
        seconds_late=np.where(lags.known, look.age, 0.0).round(1).tolist(),
        inflow_per_s=lags.inflow.round(2).tolist(),
        work=look.load.size.round(3).tolist(),
        stalled=(unread & ~waits & (look.stopped | stalled)).tolist(),
        open_transaction=waits.tolist(),
        hot=(unread & (hot | _outweighs(look))).tolist(),
        lost_records=lags.lost.tolist(),
    )


def _marked(look: Look, verdicts: frozenset[Verdict]) -> Any:
    marked = np.zeros(len(look.lags), bool)
    for finding in findings(look):
        if finding.verdict in verdicts:
            marked[list(finding.rows)] = True
    return marked


def _outweighs(look: Look) -> Any:
    """Partitions with more work than a member's mean share: no assignment makes the spread even."""
    size, count = look.load.size, len(look.names)
    if count < 2 or not size.any():
        return np.zeros(len(look.lags), bool)
    return size > look.policy.threshold * size.sum() / count
