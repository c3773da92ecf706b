"""From a finding to the words: the recommendation as it goes on the topic."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kagent.advice.actions import SHIPPED, Advice, Option, actions, shares
from kagent.advice.load import NONE
from kagent.advice.look import Look
from kagent.advice.options import options
from kagent.advice.relief import Relief, relieve
from kagent.advice.verdicts import SPREAD, Finding
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
from kagent.text import shown

WHOLE = 2000
"""Up to so many partitions the whole assignment is told."""
MOVES = 200
WORTH_MOVING = 1 / 3
"""A plan that takes so much off the greatest work leads, even if a single partition bounds what is left."""
PAGING = frozenset({Verdict.LOST_DATA, Verdict.STALLED, Verdict.STUCK_MEMBER, Verdict.UNSTABLE})
LASTING = frozenset({Verdict.IDLE_MEMBERS, Verdict.NO_MEMBERS})


@dataclass(frozen=True)
class Story:
    """A finding with its plan, alternatives and actions; all that a message says."""

    look: Look
    finding: Finding
    relief: Relief | None
    options: tuple[Option, ...]
    actions: tuple[Action, ...]

    @property
    def verdict(self) -> Verdict:
        return self.finding.verdict

    @property
    def best(self) -> Action:
        """The best action."""
        return self.actions[0]

    @property
    def member(self) -> str:
        return self.look.names[self.finding.members[0]] if self.finding.members else ""


def tell(look: Look, finding: Finding) -> Story:
    """The whole story of a finding; a verdict on spread is decided here, by what a plan can do."""
    relief = relieve(look) if look.by_member else None
    finding = _decided(look, finding, relief)
    other = options(look, relief)
    advice = Advice(look, finding, relief, other, shares(look))
    return Story(look, finding, relief, other, tuple(actions(advice)))


def _decided(look: Look, finding: Finding, relief: Relief | None) -> Finding:
    """Rebalance only where moves help; else one partition is the bound."""
    if finding.verdict is not Verdict.REBALANCE or relief is None:
        return finding
    helped = relief.gain >= look.policy.min_gain and relief.plan.skew_after < look.policy.threshold
    worth = relief.gain >= max(look.policy.min_gain, WORTH_MOVING)
    bounded = relief.gain < look.policy.min_gain or _one_bound(relief)
    if helped or worth or not bounded or _drains_sooner(relief, max(look.policy.min_gain, WORTH_MOVING)):
        return finding
    rows = _largest(look, relief, finding)
    share = float(look.load.size[rows[0]] / max(look.load.size.sum(), 1e-9)) if rows else 0.0
    evidence = {**finding.evidence, "share_of_work": round(share, 3)}
    return Finding(Verdict.HOT_PARTITION, finding.members, rows, finding.behind, evidence)


def _drains_sooner(relief: Relief, share: float) -> bool:
    """Whether the plan ends the backlog that would never end, or much sooner: what arrives is relieved too, and a single
    partition's backlog is no bound if its new holder can keep up with it."""
    now, after = relief.plan.drain_now, relief.plan.drain_after
    if now is None or after is None or not np.isfinite(after.max()):
        return False
    return bool(after.max() <= (1 - share) * now.max())


def _one_bound(relief: Relief) -> bool:
    problem = relief.plan.problem
    work = problem.lag * (1.0 if problem.cost is None else problem.cost[problem.topic])
    return bool(work.max() >= 0.8 * relief.after)


def _largest(look: Look, relief: Relief, finding: Finding) -> tuple[int, ...]:
    order = np.argsort(-look.load.size, kind="stable")
    return tuple(order[:1].tolist()) if len(order) else finding.rows


def severity(story: Story) -> Severity:
    """Page for loss and standstill, ticket where something feasible helps, info for the rest; the settings win."""
    policy, verdict = story.look.policy, story.verdict
    if verdict.value in policy.severity:
        return Severity(policy.severity[verdict.value])
    if verdict is Verdict.LOST_DATA:
        return Severity.PAGE
    if verdict in PAGING:
        return Severity.PAGE if story.finding.behind >= policy.page_behind else Severity.TICKET
    if verdict in LASTING or confidence(story) == "low":
        return Severity.INFO
    helpful = story.best.feasible == "yes" and story.best.type not in (ActionType.NONE, ActionType.WAIT)
    return Severity.TICKET if helpful else Severity.INFO


def confidence(story: Story) -> Literal["high", "low"]:
    """Low where offsets of different topics were added up, or a compacted topic's holes counted as lag."""
    look = story.look
    if story.verdict in SPREAD and not look.load.exact:
        return "low"
    rows = list(story.finding.rows)
    return "low" if rows and bool(look.lags.at_most[rows].any()) else "high"


def reason(story: Story) -> str:
    """One sentence for a person."""
    look, finding = story.look, story.finding
    who = shown(story.member) or "no member"
    late = span(finding.behind)
    place = _place(look, finding)
    skew = look.load.skew
    share = _share(look)
    e: Mapping[str, Any] = finding.evidence
    words: dict[Verdict, Callable[[], str]] = {
        Verdict.REBALANCE: lambda: (
            f"{who} holds {share} of the group's backlog and is {late} behind (skew {skew:.1f}); "
            f"{_moves(story)} would even it out."
        ),
        Verdict.HOT_PARTITION: lambda: (
            f"{place} alone holds {e.get('share_of_work', 0):.0%} of the group's backlog ({who} is {late} behind, skew "
            f"{skew:.1f}); no assignment can help."
        ),
        Verdict.SLOW_MEMBER: lambda: (
            f"{who} works at {e['speed']:.0%} of the others' speed on the same topics and is {late} behind."
        ),
        Verdict.STUCK_MEMBER: lambda: _stuck(e, who, late),
        Verdict.STALLED: lambda: (
            f"{place} stands at offset {e['offset']} for {span(e['stands_s'])} while the other partitions move on: "
            "most likely a record that cannot be processed."
        ),
        Verdict.BLOCKED_BY_TRANSACTION: lambda: (
            f"{place} cannot be read beyond offset {e['last_stable_offset']}: a transaction on it is open for {late}."
        ),
        Verdict.UNDER_PROVISIONED: lambda: (
            f"All {e['members']} members are busy and {late} behind: the inflow takes {e['needed']} of them."
        ),
        Verdict.UNSTABLE: lambda: (
            f"{e['generations']} rebalances in {span(e['window_s'])}"
            + (f", with {shown(e['come_and_go'][0])} leaving and coming back." if e["come_and_go"] else ".")
        ),
        Verdict.LOST_DATA: lambda: (
            f"{e['lost']} records of {place} were deleted by retention before they were read."
        ),
        Verdict.NO_MEMBERS: lambda: (
            f"The group has had no members for {span(e['absent_s'])} while {e['unread']} records wait."
        ),
        Verdict.IDLE_MEMBERS: lambda: f"{len(finding.members)} members hold no partition.",
        Verdict.BALANCED: lambda: "Nothing is the matter.",
    }
    return words[finding.verdict]()


def _stuck(evidence: Mapping[str, Any], who: str, late: str) -> str:
    names = evidence["members"]
    if evidence["whole_group"]:
        return f"No member has made progress for {span(evidence['stands_s'])}; {evidence['unread']} records wait."
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{who}{more} is in the group but has made no progress for {span(evidence['stands_s'])} ({late} behind)."


def _place(look: Look, finding: Finding) -> str:
    if not finding.rows:
        return "a partition"
    topic, partition = look.lags.name(finding.rows[0])
    return f"{shown(topic)}-{partition}"


def _share(look: Look) -> str:
    load = look.load
    if load.greatest == NONE:
        return "most"
    total = load.high.copy()
    total[load.greatest] = load.low[load.greatest]
    return f"{load.low[load.greatest] / total.sum():.0%}"


def _moves(story: Story) -> str:
    count = story.relief.plan.move_count if story.relief else 0
    noun = "partition number" if story.relief and story.relief.paired else "partition"
    return f"moving {count} {noun}{'s' if count != 1 else ''}"


def span(seconds: float) -> str:
    """A length of time as a person says it."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def incident_id(cluster: str, group: str, began: int) -> str:
    """The same for the same incident, however often it is computed: from cluster, group and its first evaluation."""
    return hashlib.sha256(f"{cluster}\0{group}\0{began}".encode()).hexdigest()[:16]


def compose(story: Story, id_: str, opened_at: int, status: Status) -> Recommendation:
    """The recommendation of a story."""
    look, relief, policy = story.look, story.relief, story.look.policy
    whole = relief is not None and len(relief.plan.problem) <= WHOLE
    moves = relief.plan.moves if relief else ()
    return Recommendation(
        id=id_,
        cluster=look.seen.cluster,
        group=look.seen.group,
        status=status,
        verdict=story.verdict,
        severity=severity(story),
        confidence=confidence(story),
        reason=reason(story),
        group_kind=look.kind,
        opened_at=opened_at,
        as_of=look.as_of,
        valid_until=look.now + int(policy.valid * 1000),
        skew=_skew(story),
        work_unit="seconds" if look.load.unit == "seconds" else "records",
        members=_members(story),
        moves=[
            Move(topic=m.topic, partition=m.partition, source=m.source, to=m.to, lag=int(m.lag))
            for m in (moves if whole else moves[:MOVES])
        ],
        move_count=len(moves),
        assignment={m: [(t, p) for t, p in held] for m, held in relief.plan.assignment().items()}
        if relief and whole
        else None,
        assignment_digest=look.roster.digest if look.roster else None,
        frontier=[(k, round(w, 3)) for k, w in relief.plan.frontier if np.isfinite(w)] if relief else [],
        alternatives=[_alternative(story, o) for o in story.options],
        actions=list(story.actions),
        evidence=story.finding.evidence,
        basis=_basis(look),
        topic_ids=_topic_ids(look),
        owner=policy.owner,
        runbook_url=policy.runbook_url,
        labels=dict(policy.labels),
    )


def _skew(story: Story) -> Skew:
    look, relief = story.look, story.relief
    if not look.by_member:
        return Skew(now=None, after=None, threshold=look.policy.threshold, lower_bound=None)
    return Skew(
        now=round(look.load.skew, 3),
        after=round(relief.plan.skew_after, 3) if relief else None,
        threshold=look.policy.threshold,
        lower_bound=round(relief.bound, 3) if relief else None,
    )


def _members(story: Story) -> list[MemberWork]:
    look, load = story.look, story.look.load
    if look.roster is None:
        return []
    after = story.relief.plan.work_after if story.relief else None
    now = story.relief.plan.work_now if story.relief else np.where(load.low > 0, load.low, load.high)
    order = np.argsort(-now, kind="stable").tolist() if len(now) else []
    members, told = look.roster.members, look.roster.redaction
    return [
        MemberWork(
            member=load.names[at],
            member_id=told.member_id(members[at].member_id),
            client_id=told.client_id(members[at].client_id),
            host=told.host(members[at].host),
            partitions=int(load.partitions[at]),
            lag=int(load.lag[at]) if load.known[at] else None,
            seconds_behind=round(float(load.behind[at]), 1) if load.known[at] else None,
            work_now=round(float(now[at]), 3),
            work_after=round(float(after[at]), 3) if after is not None else None,
        )
        for at in order[:WHOLE]
    ]


def _alternative(story: Story, option: Option) -> Alternative:
    ships = option.strategy in SHIPPED.get(story.look.kind, ())
    return Alternative(
        strategy=option.strategy,
        skew=round(option.skew, 3),
        greatest=round(option.greatest, 3),
        moves=option.moves,
        feasible="yes" if ships and not option.unsafe else "no",
        unsafe=option.unsafe,
    )


def _topic_ids(look: Look) -> dict[str, str]:
    """Only a broker's assignor needs them, and it is there in KIP-848 groups alone."""
    if look.kind is not GroupKind.CONSUMER:
        return {}
    ids = {topic: look.seen.ends[topic].topic_id for topic in look.lags.topics}
    return {topic: id_ for topic, id_ in ids.items() if id_}


def _basis(look: Look) -> Basis:
    roster = look.roster
    return Basis(
        generation=roster.generation if roster else None,
        digest=roster.digest if roster else "",
        progress=look.seen.as_of,
        partitions={t: look.seen.ends[t].partitions for t in look.lags.topics},
    )
