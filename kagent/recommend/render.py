"""From a finding to the message: the diagnosis with its plan, alternatives and actions, and the recommendation that states it.

The verdict is decided before (``kagent.detect.decision``); nothing here changes it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kagent.contract.recommendation import (
    Action,
    ActionType,
    Alternative,
    Basis,
    GroupKind,
    MemberWork,
    Move,
    Recommendation,
    Severity,
    Skew,
    Status,
    Verdict,
)
from kagent.detect.detectors import MOVES_CURE, OF, SPREAD, skew, under_provisioned
from kagent.detect.finding import ROWS, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.seconds_behind import members_behind_s, uncommitted_s
from kagent.lag.bound import Bound
from kagent.lag.measure import Flags, Floats
from kagent.planner import comparison as planned
from kagent.recommend.actions import actions
from kagent.recommend.advice import Advice, gains
from kagent.recommend.alternatives import alternatives_of
from kagent.recommend.member_counts import counts
from kagent.recommend.reassignment import Reassignment, reassign

# A message must stay well below max.message.bytes (1 MiB by default).
WHOLE: Bound = 2000
"""Up to this many partitions the message has the whole assignment and all moves; it lists up to this many members. Of a
larger group it has the first ROWS moves of the plan."""


@dataclass(frozen=True)
class Diagnosis:
    """A finding with its plan, alternatives and actions: all that a message states."""

    model: GroupModel
    finding: Finding
    reassignment: Reassignment | None
    alternatives: tuple[planned.Alternative, ...]
    actions: tuple[Action, ...]

    @property
    def verdict(self) -> Verdict:
        return self.finding.decided

    @property
    def best(self) -> Action:
        """The best action."""
        return self.actions[0]

    @property
    def member(self) -> str:
        return self.model.names[self.finding.members[0]] if self.finding.members else ""


def diagnose(model: GroupModel, finding: Finding) -> Diagnosis:
    """The diagnosis of a finding, with a plan for the backlog of this moment."""
    # The same costs as the finding's, or the plan would level another work than the one that was reported.
    model = skew.model_of(model, finding)
    made = reassign(model)
    others = alternatives_of(model, made)
    more = counts(model, bool(finding.evidence.get("may_not_be_enough")))
    return Diagnosis(model, finding, made, others, tuple(actions(Advice(model, finding, made, others, more))))


def severity(diagnosis: Diagnosis) -> Severity:
    """Page for loss and standstill, ticket where something feasible helps or may help, info for the rest; the settings win."""
    policy, verdict = diagnosis.model.policy, diagnosis.verdict
    # Users' own choice before any rule.
    if verdict.value in policy.severity:
        return Severity(policy.severity[verdict.value])
    urgency = OF[verdict].URGENCY
    if urgency is Urgency.LOSS:
        return Severity.PAGE
    if urgency is Urgency.STANDSTILL:
        return Severity.PAGE if diagnosis.finding.behind >= policy.page_behind else Severity.TICKET
    # That a plan may not be enough makes the lateness no less certain.
    if urgency is Urgency.CAN_WAIT or _may_be_holes(diagnosis):
        return Severity.INFO
    helpful = diagnosis.best.feasible == "yes" and diagnosis.best.type not in (
        ActionType.NONE,
        ActionType.WAIT,
    )
    return Severity.TICKET if helpful else Severity.INFO


def confidence(diagnosis: Diagnosis) -> Literal["high", "low"]:
    """Low where the plan may not be enough, most members' speeds are not known, or a compacted topic's holes were counted as lag."""
    finding = diagnosis.finding
    unsure = finding.evidence.get("may_not_be_enough") or under_provisioned.is_assumed(finding)
    return "low" if unsure or _may_be_holes(diagnosis) else "high"


def _may_be_holes(diagnosis: Diagnosis) -> bool:
    """Whether a compacted topic's holes may be counted as lag."""
    return bool(diagnosis.model.lags.at_most[list(diagnosis.finding.rows)].any())


def reason(diagnosis: Diagnosis) -> str:
    """One sentence for a person."""
    sentence = str(OF[diagnosis.verdict].reason(diagnosis.model, diagnosis.finding))
    if diagnosis.verdict not in MOVES_CURE:
        return sentence
    made = diagnosis.reassignment
    if made is None or not made.plan.move_count:
        return f"{sentence}."
    noun = "partition number" if made.paired else "partition"
    count = made.plan.move_count
    if not made.earns_back:
        return f"{sentence}; the pause of a rebalance ({made.cost.pause_s:.0f} s) costs more than moving partitions gains."
    if not gains(made, diagnosis.model):
        return f"{sentence}; moving partitions would gain less than {diagnosis.model.policy.min_gain:.0%}."
    may = "may help" if diagnosis.finding.evidence.get("may_not_be_enough") else "would help"
    return f"{sentence}; moving {count} {noun}{'s' if count != 1 else ''} {may}."


def incident_id(cluster: str, group: str, began: int) -> str:
    """The same for the same incident, however often it is computed: from cluster, group and since when it holds."""
    return hashlib.sha256(f"{cluster}\0{group}\0{began}".encode()).hexdigest()[:16]


def compose(diagnosis: Diagnosis, id_: str, opened_at: int, status: Status) -> Recommendation:
    """The recommendation that states a diagnosis."""
    model, made, policy = diagnosis.model, diagnosis.reassignment, diagnosis.model.policy
    whole = made is not None and len(made.plan.problem) <= WHOLE
    moves = made.plan.moves if made else ()
    return Recommendation(
        id=id_,
        cluster=model.seen.cluster,
        group=model.seen.group,
        status=status,
        verdict=diagnosis.verdict,
        severity=severity(diagnosis),
        confidence=confidence(diagnosis),
        reason=reason(diagnosis),
        group_kind=model.kind,
        opened_at=opened_at,
        as_of=model.as_of,
        valid_until=model.now + int(policy.valid * 1000),
        skew=_skew(diagnosis),
        work_unit="seconds" if model.works_in_seconds else "records",
        members=_members(diagnosis),
        moves=[
            Move(topic=m.topic, partition=m.partition, source=m.source, to=m.to, lag=int(m.lag))
            for m in (moves if whole else moves[:ROWS])
        ],
        move_count=len(moves),
        assignment={m: [(t, p) for t, p in held] for m, held in made.plan.assignment().items()}
        if made and whole
        else None,
        assignment_digest=model.roster.digest if model.roster else None,
        frontier=[(k, round(w, 3)) for k, w in made.plan.frontier if np.isfinite(w)] if made else [],
        alternatives=[_alternative(a) for a in diagnosis.alternatives],
        actions=list(diagnosis.actions),
        evidence=_evidence(diagnosis),
        basis=_basis(model),
        topic_ids=_topic_ids(model),
        owner=policy.owner,
        runbook_url=policy.runbook_url,
        labels=dict(policy.labels),
    )


def _evidence(diagnosis: Diagnosis) -> dict[str, object]:
    evidence = dict(diagnosis.finding.evidence)
    if not (diagnosis.finding.members and _by_member(diagnosis.model)):
        # Of what no member holds, no member's row says how late it is.
        evidence["behind_s"] = round(diagnosis.finding.behind)
    made = diagnosis.reassignment
    if made is not None and made.promise is not None and diagnosis.verdict in SPREAD:
        evidence["drain_between_s"] = [round(bound) for bound in made.promise]
    return evidence


def _skew(diagnosis: Diagnosis) -> Skew:
    model, made = diagnosis.model, diagnosis.reassignment
    threshold = model.policy.threshold
    if model.shown_skew is None:
        return Skew(now=None, after=None, threshold=threshold, lower_bound=None)
    return Skew(
        now=model.shown_skew,
        after=round(made.plan.skew_after, 3) if made else None,
        threshold=threshold,
        lower_bound=round(made.bound, 3) if made else None,
    )


def _by_member(model: GroupModel) -> bool:
    """Whether the message has rows of members."""
    return model.roster is not None and model.by_member and bool(model.roster.members)


def _members(diagnosis: Diagnosis) -> list[MemberWork]:
    model, made = diagnosis.model, diagnosis.reassignment
    if model.roster is None or not _by_member(model):
        return []
    now = model.seconds_of_work[0] if made is None else made.plan.work_now
    after = made.plan.work_after if made else None
    order = np.argsort(-now, kind="stable").tolist() if len(now) else []
    members, redaction = model.roster.members, model.roster.redaction
    held = np.bincount(model.lags.owner[model.lags.owner >= 0], minlength=len(members))
    uncommitted = uncommitted_s(model)
    behind = members_behind_s(model)
    waits = _waiting(model, uncommitted > 0)
    return [
        MemberWork(
            member=model.names[at],
            member_id=redaction.member_id(members[at].member_id),
            client_id=redaction.client_id(members[at].client_id),
            host=redaction.host(members[at].host),
            partitions=int(held[at]),
            lag=int(waits[at]),
            seconds_behind=round(float(behind[at]), 1),
            work_now=round(float(now[at]), 3),
            work_after=round(float(after[at]), 3) if after is not None else None,
        )
        for at in order[:WHOLE]
    ]


def _waiting(model: GroupModel, silent: Flags) -> Floats:
    """Records behind per member: at its latest commit; of those that commit nothing, all that is not committed."""
    columns, counts = model.columns, model.relevant & (model.owner >= 0)
    at_commit, now = (
        np.bincount(model.owner[counts], column[counts], columns.members)
        for column in (columns.backlog, model.lags.shown)
    )
    return np.where(silent, now, at_commit)


def _alternative(option: planned.Alternative) -> Alternative:
    feasible: Literal["yes", "no", "unknown"] = "yes" if option.feasible == "yes" else "unknown"
    if option.feasible == "no" or option.unsafe:
        feasible = "no"
    return Alternative(
        strategy=option.strategy,
        skew=round(option.skew, 3),
        greatest=round(option.greatest, 3) if np.isfinite(option.greatest) else None,
        moves=option.moves,
        feasible=feasible,
        unsafe=option.unsafe,
    )


def _topic_ids(model: GroupModel) -> dict[str, str]:
    """Only a broker's assignor needs them, and it runs in KIP-848 groups alone."""
    if model.kind is not GroupKind.CONSUMER:
        return {}
    ids = {topic: model.seen.ends[topic].topic_id for topic in model.lags.topics}
    return {topic: id_ for topic, id_ in ids.items() if id_}


def _basis(model: GroupModel) -> Basis:
    roster = model.roster
    return Basis(
        generation=roster.generation if roster else None,
        digest=roster.digest if roster else "",
        progress=model.seen.as_of,
        partitions={t: model.seen.ends[t].partitions for t in model.lags.topics},
    )
