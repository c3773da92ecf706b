"""A judgement as plain values, for lists and for one group: the only module of the page and its API that knows its inside.

``summary_of`` is cheap and runs for every group at every tick; ``columns`` is made when somebody asks for one group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.contract.redaction import CLEAR, Redaction
from kagent.detect.capacity import kept
from kagent.detect.detectors import hot_partition
from kagent.detect.finding import NO_PROGRESS, Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.seconds_behind import behind_s, is_late, is_unknown, members_behind_s
from kagent.detect.state import JudgeState
from kagent.detect.without_members import unread_records
from kagent.incident.condition import waits_for_evidence
from kagent.incident.evaluate import Judgement
from kagent.incident.explanation import explain, look_at
from kagent.incident.explanation_text import lines
from kagent.incident.suppression import REASONS
from kagent.lag.commits import GONE
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.membership import kind_of
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.worker.http.models import UsefulMembers
from kagent.worker.http.timeline import Milestones


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group at one tick. ``seconds_behind``: None where it is not known; ``members``: name → (lag in records, seconds behind, inflow per s), empty for a quiet group."""

    cluster: str
    group: str
    owner: str | None
    lag_records: int | None
    seconds_behind: float | None
    skew: float | None
    verdict: str
    kind: str
    state: str
    member_count: int
    blind: str | None
    as_of_ms: int
    not_opened: str | None
    muted_until_ms: int | None
    milestones: Milestones
    late: bool = False
    waits_for_evidence: bool = False
    no_members: str | None = None
    useful: UsefulMembers | None = None
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
    """One entry per partition. ``topic``: code in ``topics``; ``member``: code, -1 for no owner; ``lag_records``: None without
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


def summary_of(seen: Observation, judged: Judgement, policy: Policy) -> GroupSummary:
    """The group at this tick. A quiet group is only added up: nothing of it was behind when it committed."""
    model, roster = judged.model, seen.roster
    unread = unread_records(seen, judged.state, policy)
    # Most groups are never late: their members are not summed up at every tick.
    late = unread is not None or (model is not None and is_late(model))
    members = _member_rows(model) if late and model is not None and model.by_member else {}
    lag = quick_lag(seen)
    is_known = not is_unknown(model) if model is not None else lag is not None
    return GroupSummary(
        cluster=seen.cluster,
        group=seen.group,
        owner=policy.owner,
        lag_records=lag,
        seconds_behind=behind_s(model if late else None, unread) if late or is_known else None,
        skew=judged_skew(model, judged, len(roster.members) if roster is not None else 0),
        verdict=judged.verdict,
        kind=str(kind_of(roster, seen.group, policy.kind)),
        state=roster.state if roster is not None else "empty",
        member_count=len(roster.members) if roster is not None else 0,
        blind=seen.blind or (REASONS["unwatched"] if judged.suppressed_by == "unwatched" else None),
        as_of_ms=seen.measured_at,
        not_opened=None if judged.state.incident else _reason(judged),
        muted_until_ms=seen.mute.until if seen.muted and seen.mute is not None else None,
        milestones=milestones(judged.state, judged.findings),
        late=late,
        waits_for_evidence=waits_for_evidence(model, judged.findings),
        no_members=str(unread) if unread is not None else None,
        useful=useful_members(judged.state, len(roster.members) if roster is not None else 0),
        members=members,
    )


def useful_members(state: JudgeState, now: int) -> UsefulMembers | None:
    """How many members would help, beside how many there are ``now``; None until a member was busy."""
    useful = state.useful
    return UsefulMembers(now, useful.members, useful.because or None) if useful is not None else None


def judged_skew(model: GroupModel | None, judged: Judgement, members: int) -> float | None:
    """The skew that everything shows: judged work, greatest ÷ mean. None with one member, or where nothing was judged."""
    if model is not None:
        return model.shown_skew
    # No model was built: the fast path found nothing behind, so the spread is even.
    return 1.0 if members > 1 and judged.suppressed_by is None else None


def _reason(judged: Judgement) -> str | None:
    reason = judged.rejected_by or judged.suppressed_by
    # As in the explanation: a group with something the matter has a reason, also before there is enough evidence of what it is.
    found = judged.verdict != "balanced" or judged.findings
    return REASONS.get(reason, reason) if reason and found else None


def milestones(state: JudgeState, findings: tuple[Finding, ...] = ()) -> Milestones:
    """What is remembered of the group's case."""
    incident = state.incident
    # Only a finding with enough evidence: what flickers for a tick is not part of the story.
    ripe = next((f for f in findings if f.ripe), None) if incident is None else None
    return Milestones(
        first_seen_ms=ripe.since or None if ripe else None,
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
        # A commit before the log start: the records between are gone, and no lag (`lost`).
        behind = ends.end[partition[here]] - np.maximum(committed[here], ends.start[partition[here]])
        total, known = total + int(np.maximum(behind, 0).sum()), True
    return total if known else None


def _member_rows(model: GroupModel) -> dict[str, tuple[float, float, float]]:
    """Name → shown lag, seconds behind, inflow."""
    lag, inflow = _per_member(model, model.lags.shown), _per_member(model, model.lags.inflow)
    rows = zip(lag.tolist(), members_behind_s(model).tolist(), inflow.tolist(), strict=True)
    return dict(zip(model.names, rows, strict=True))


def _per_member(model: GroupModel, column: Any) -> Any:
    use = model.lags.known & (model.owner >= 0)
    # bincount with weights: the sum of a column by member, in one pass.
    return np.bincount(model.owner[use], column[use], len(model.names))


def columns(
    seen: Observation, judged: Judgement, state: JudgeState, policy: Policy, redaction: Redaction = CLEAR
) -> GroupColumns:
    """The group in full as it stands now."""
    model, findings = look_at(judged, seen, state, policy)
    story = explain(judged, (model, findings))
    return GroupColumns(
        kind=str(model.kind),
        state=model.roster.state if model.roster else "empty",
        protocol=model.roster.protocol if model.roster else None,
        generation=model.roster.generation if model.roster else None,
        by_member=model.by_member,
        threshold=policy.threshold,
        work_unit="seconds" if model.works_in_seconds else "records",
        members=_members(model, redaction),
        partitions=_partitions(model, findings),
        story=story,
        lines=lines(story),
        draft=story.get("recommendation"),
    )


def _members(model: GroupModel, redaction: Redaction) -> MemberColumns:
    names = model.names
    members = model.roster.members if model.by_member and model.roster else ()
    windows = [len(kept(model.member_state(at).windows, model.now)) for at in range(len(names))]
    low, _ = model.seconds_of_work
    pace = _paces(model)
    return MemberColumns(
        name=list(names),
        member_id=[redaction.member_id(m.member_id) for m in members] or [""] * len(names),
        client_id=[redaction.client_id(m.client_id) for m in members] or [""] * len(names),
        host=[redaction.host(m.host) for m in members] or [""] * len(names),
        lag_records=_per_member(model, model.lags.shown).astype(int).tolist(),
        seconds_behind=members_behind_s(model).round(1).tolist(),
        inflow_per_s=_per_member(model, model.lags.inflow).round(2).tolist(),
        work=low.round(3).tolist(),
        speed=[
            round(p, 3) if m else None
            for p, m in zip(pace.tolist(), model.capacity.measured.tolist(), strict=True)
        ],
        speed_intervals=windows,
        known=(model.columns.committed_at > 0).tolist(),
    )


def _paces(model: GroupModel) -> Any:
    """Each member's capacity over the usual one of those that were measured."""
    rate, measured = model.capacity.rate.mid, model.capacity.measured
    # The median: one slow member must not make the others look fast.
    usual = float(np.median(rate[measured])) if measured.any() else 0.0
    return rate / usual if usual > 0 else np.ones(len(rate))


def _partitions(model: GroupModel, findings: tuple[Finding, ...]) -> PartitionColumns:
    lags = model.lags
    unread = lags.known & (lags.shown > model.policy.allowed_lag)
    # Committed up to the last stable offset: a read_committed consumer cannot go further (KIP-98).
    waits = unread & (lags.stable != UNKNOWN) & (lags.stable < lags.end) & (lags.committed >= lags.stable)
    stalled = _marked(model, findings, NO_PROGRESS)
    hot = _hot(model, findings)
    return PartitionColumns(
        topics=list(lags.topics),
        topic=lags.topic.tolist(),
        partition=lags.partition.tolist(),
        member=model.owner.tolist(),
        committed=[c if c >= 0 else None for c in lags.committed.tolist()],
        lag_records=[lag if lag != UNKNOWN else None for lag in lags.shown.tolist()],
        seconds_late=np.where(lags.known & (lags.low > 0), model.as_it_is.age[0], 0.0).round(1).tolist(),
        inflow_per_s=lags.inflow.round(2).tolist(),
        work=_work(model).round(3).tolist(),
        stalled=(unread & ~waits & (model.excluded | stalled)).tolist(),
        open_transaction=waits.tolist(),
        hot=(unread & (hot | _outweighs(model))).tolist(),
        lost_records=lags.lost.tolist(),
    )


def _work(model: GroupModel) -> Any:
    """Work of each partition: seconds of its holder's capacity where that is known, else records."""
    speed = np.ones(len(model.names)) if not model.works_in_seconds else model.capacity.rate.mid
    held = model.owner >= 0
    per_s = speed[np.where(held, model.owner, 0)] if len(speed) else np.ones(len(model.owner))
    return np.where(held, model.columns.backlog * model.cost / per_s, 0.0)


def _marked(model: GroupModel, findings: tuple[Finding, ...], verdicts: frozenset[Verdict]) -> Any:
    marked = np.zeros(len(model.lags), bool)
    for finding in findings:
        if finding.verdict in verdicts:
            marked[list(finding.rows)] = True
    return marked


def _hot(model: GroupModel, findings: tuple[Finding, ...]) -> Any:
    """Partitions that a finding calls hot."""
    names = hot_partition.named_in(findings)
    return np.array([bool(names) and model.lags.name(at) in names for at in range(len(model.lags))], bool)


def _outweighs(model: GroupModel) -> Any:
    """Partitions with more work than a member's mean share: no assignment makes the spread even."""
    size, count = np.where(model.counted, _work(model), 0.0), len(model.names)
    if count < 2 or not size.any():
        return np.zeros(len(model.lags), bool)
    # Alone more than the threshold times a member's mean: its holder is over the threshold in any assignment.
    return size > model.policy.threshold * size.sum() / count
