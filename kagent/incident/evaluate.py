"""One evaluation of one group: an observation and what is remembered in, messages and what is to be remembered out. Pure.

    judgement = judge(observation, state, policy)       at every tick
    if judgement.candidate:                             ask the coordinator, then commits and log ends afresh
        judgement = confirm(judgement.candidate, fresh, judgement.state, policy)
    write judgement.state if it is not the same object; send judgement.messages

Nothing opens before the coordinator confirmed it. While blind nothing opens, nothing resolves, and no clock advances.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kagent.contract.recommendation import GroupKind, Recommendation, Verdict
from kagent.detect import committers, useful_members
from kagent.detect.baselines import update_membership
from kagent.detect.clock_set_back import latest_ms, set_back
from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.decision import examine
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.state import JudgeState
from kagent.incident import lifecycle
from kagent.incident.confirmation import GroupNow, refusal
from kagent.incident.fast_path import fast_path_healthy
from kagent.incident.suppression import leading_first, suppression_reason
from kagent.lag.log_ends import IN_FLIGHT_MS
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.recommend.render import diagnose, incident_id


@dataclass(frozen=True)
class Candidate:
    """What would open, once the coordinator and fresh numbers agree. ``assignment``: digest it rests on; ``since``: onset, ms;
    ``first_sight``: whether the group was first seen like this; ``brokers``: leaders of the partitions concerned, of
    ``broker_count`` brokers that lead any partition."""

    cluster: str
    group: str
    id: str
    verdict: str
    since: int
    assignment: str
    kind: GroupKind = GroupKind.CLASSIC
    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    broker_count: int = 1
    first_sight: bool = False


@dataclass(frozen=True)
class Judgement:
    """What came of it. ``rejected_by``: why a candidate was not published, a counted reason; ``suppressed_by``: why what is the
    matter is not (yet) published; ``verdict``: the leading one; ``skew`` and ``lag`` for metrics."""

    state: JudgeState
    messages: tuple[Recommendation, ...] = ()
    candidate: Candidate | None = None
    verdict: str = "balanced"
    rejected_by: str | None = None
    suppressed_by: str | None = None
    skew: float | None = None
    lag: int | None = None
    model: GroupModel | None = field(default=None, repr=False)
    findings: tuple[Finding, ...] = ()


def judge(seen: Observation, state: JudgeState | None, policy: Policy) -> Judgement:
    """One tick of one group. A tick at or before the last judged one changes nothing."""
    known = state or JudgeState(first_seen=seen.now)
    # A state that is further ahead than a tick that comes again was made by a clock that was.
    if latest_ms(known) - seen.now > IN_FLIGHT_MS:
        known = set_back(known, seen.now, round(policy.cooldown * 1000))
    elif seen.now <= known.last_tick:
        return Judgement(known)
    if policy.ignore or not seen.consumes:
        return Judgement(known, suppressed_by="ignored")
    # Before anything is learned: what cannot be seen must neither advance a clock nor look like health.
    if seen.blind is not None:
        return _of_incident(lifecycle.blinded(seen, known, policy), suppressed_by="blind")
    if seen.unwatched:
        return Judgement(known, suppressed_by="unwatched")
    # Before the glance: who commits together shows while all goes well, and not when a partition stands.
    known = committers.learned(update_membership(known, seen, policy), seen)
    # An open incident needs a close look at each tick, or nothing would resolve it.
    if known.incident is None and fast_path_healthy(seen, known, policy):
        return Judgement(known)
    model, found = examine(seen, known, policy)
    model = replace(model, state=useful_members.advance(model, found))
    return _judged((model, leading_first(model, found)))


def _judged(looked: tuple[GroupModel, tuple[Finding, ...]]) -> Judgement:
    model, found = looked
    if model.state.incident is not None:
        return _of_incident(lifecycle.carried_on(model, found), model, found)
    lead = found[0] if found else None
    suppressed = suppression_reason(model, lead) if lead else None
    return Judgement(
        model.state,
        candidate=_candidate(model, lead) if lead and suppressed is None else None,
        verdict=str(lead.verdict) if lead and lead.ripe else "balanced",
        suppressed_by=suppressed,
        skew=model.shown_skew,
        lag=int(model.lags.shown[model.lags.known & ~model.lags.orphaned].sum()),
        model=model,
        findings=found,
    )


def _of_incident(
    change: lifecycle.IncidentChange,
    model: GroupModel | None = None,
    found: tuple[Finding, ...] = (),
    suppressed_by: str | None = None,
) -> Judgement:
    incident = change.state.incident
    return Judgement(
        change.state,
        change.messages,
        verdict=incident.verdict if incident else "balanced",
        suppressed_by=suppressed_by,
        skew=model.shown_skew if model is not None else None,
        lag=int(model.lags.shown[model.lags.known & ~model.lags.orphaned].sum()) if model else None,
        model=model,
        findings=found,
    )


def _candidate(model: GroupModel, lead: Finding) -> Candidate:
    seen = model.seen
    leaders = {leader for info in seen.topics.values() for leader in info.leaders}
    return Candidate(
        cluster=seen.cluster,
        group=seen.group,
        id=incident_id(seen.cluster, seen.group, lead.since),
        verdict=str(lead.verdict),
        since=lead.since,
        assignment=model.roster.assignment if model.roster else "",
        kind=model.kind,
        topics=tuple(dict.fromkeys(model.lags.name(at)[0] for at in lead.rows)),
        brokers=_leaders(model, lead),
        broker_count=len(leaders),
        first_sight=lead.since - model.state.first_seen < USUAL_GAP_S * 1000,
    )


def _leaders(model: GroupModel, lead: Finding) -> tuple[int, ...]:
    # A dict keeps the order of the rows, the worst first, and each leader once.
    found: dict[int, None] = {}
    for at in lead.rows:
        topic, partition = model.lags.name(at)
        info = model.seen.topics.get(topic)
        if info and partition < len(info.leaders):
            found[info.leaders[partition]] = None
    return tuple(found)


def confirm(candidate: Candidate, fresh: Observation, state: JudgeState, policy: Policy) -> Judgement:
    """The candidate seen afresh: published, or rejected with a reason that is counted; its evidence stands.

    ``fresh``: roster as the coordinator describes it now, commits and log ends asked for just now (last stable offsets too, for
    partitions with lag).
    """
    # The coordinator answers later than the tick asked: meanwhile another tick may have opened the incident.
    if state.incident is not None:
        return Judgement(state, rejected_by="already_open")
    model, found = examine(fresh, state, policy)
    found = leading_first(model, found)
    reason = _refused(candidate, model)
    if reason is None and not (found and found[0].ripe):
        reason = "not_confirmed"
    if reason is not None:
        return rejected(state, reason)
    # The tick's state, not this look's: the clocks advanced at the tick, and nothing may be counted twice.
    model = replace(model, state=replace(state, last_tick=max(state.last_tick, fresh.now)))
    return _of_incident(lifecycle.opened(diagnose(model, found[0]), candidate.id), model, found[:1])


def _refused(candidate: Candidate, model: GroupModel) -> str | None:
    """Why the group as it is seen afresh refutes the candidate whatever the detectors find."""
    roster = model.roster
    if model.seen.blind is not None:
        return "blind"
    # Without members the detectors decide: the fresh look at the group is what they are asked about.
    if not model.by_member or roster is None:
        return None
    now = GroupNow(roster.state, bool(roster.owners), roster.assignment == candidate.assignment)
    return refusal(Verdict(candidate.verdict), True, now)


def rejected(state: JudgeState, reason: str) -> Judgement:
    """A candidate that is not published, because of what the coordinator answered or because it could not be asked."""
    return Judgement(state, rejected_by=reason)
