"""The judgement: an observation and what is remembered in, messages and what is to be remembered out. Pure.

    judgement = judge(observation, state, policy)       at every tick
    if judgement.candidate:                             ask the coordinator, then commits and log ends afresh
        judgement = confirm(judgement.candidate, fresh, judgement.state, policy)
    write judgement.state if it is not the same object; send judgement.messages

Nothing opens before it was confirmed, as often as the policy says and one commit gap apart. While blind nothing opens and nothing resolves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kagent.advice import incident as incidents
from kagent.advice.gates import Streaks, why_not
from kagent.advice.learning import lessons, membership
from kagent.advice.look import Look
from kagent.advice.message import Story, incident_id, tell
from kagent.advice.state import JudgeState, Streak
from kagent.advice.verdicts import Finding, findings
from kagent.contract.recommendation import Recommendation, Verdict
from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.observation import Observation
from kagent.policy import Policy

IGNORED_TYPES = frozenset({None, "consumer", "streams", "share"})
"""Protocol types of groups that consume; others (Connect's and Schema Registry's workers) only share a coordinator."""

ABANDONED = 86_400_000
AT_ONCE = frozenset({Verdict.UNSTABLE, Verdict.LOST_DATA})
"""Confirmed once: the generations tell of the one, and the other does not heal."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What would open, once the coordinator and fresh numbers agree. ``assignment``: digest it rests on."""

    cluster: str
    group: str
    id: str
    verdict: str
    since: int
    assignment: str
    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    """Leaders of the partitions concerned, where known."""


@dataclass(frozen=True)
class Judgement:
    """What came of it. ``dropped``: why a candidate was not published, a counted reason; ``held``: why what is the matter
    is not (yet) spoken of; ``verdict``: the leading one; ``skew`` and ``lag`` for metrics."""

    state: JudgeState
    messages: tuple[Recommendation, ...] = ()
    candidate: Candidate | None = None
    verdict: str = "balanced"
    dropped: str | None = None
    held: str | None = None
    skew: float | None = None
    lag: int | None = None
    look: Look | None = field(default=None, repr=False)
    findings: tuple[Finding, ...] = ()


def judge(seen: Observation, state: JudgeState | None, policy: Policy) -> Judgement:
    """One tick of one group. A tick at or before the last judged one changes nothing."""
    known = state or JudgeState(first_seen=seen.now)
    if state is not None and seen.now <= state.last_tick:
        return Judgement(known)
    if ignored(seen, policy):
        return Judgement(known, held="ignored")
    if seen.blind is not None:
        return incidents.blinded(seen, known, policy)
    if seen.unwatched:
        return Judgement(known, held="unwatched")
    known = membership(known, seen, policy)
    if known.incident is None and known.streak is None and quiet(seen, known, policy):
        return Judgement(known)
    return _judged(Look(seen, policy, known))


def ignored(seen: Observation, policy: Policy) -> bool:
    """Whether the group is none that kagent judges."""
    roster = seen.roster
    return policy.ignore or bool(roster and roster.protocol_type not in IGNORED_TYPES)


def quiet(seen: Observation, state: JudgeState, policy: Policy) -> bool:
    """Whether a cheap look finds nothing that could be the matter: most groups, most of the time, stop here."""
    if _abandoned(seen):
        return True
    if minded(state, seen.now, policy):
        return False
    steady = seen.now - state.generation_at > policy.idle_after * 1000
    if steady and seen.roster is not None and any(not m.assigned for m in seen.roster.members):
        return False
    now = seen.as_of or seen.now
    return all(
        _topic_quiet(commits, seen.ends[topic], policy, now - unread_since(policy, commits.cadence or 0))
        for topic, commits in seen.commits.items()
        if topic in seen.ends and commits.partition
    )


def unread_since(policy: Policy, cadence: int) -> int:
    """For how long unread records may lie about without a word, in ms: young ones are no standstill, whatever the group's
    habits, and two of its usual gaps between commits (``cadence``, ms) are young."""
    return max(min(60_000, int(policy.stall_after * 1000)), 2 * cadence)


def minded(state: JudgeState, now: int, policy: Policy) -> bool:
    """Whether something is remembered of the group that asks for a close look, whatever its lag."""
    turns = state.generations
    restless = len(turns) >= 3 and turns[-3][0] >= now - policy.storm_window * 1000
    return bool(restless or state.empty_since or state.marks or state.stopped or state.trail or state.lost)


def _abandoned(seen: Observation) -> bool:
    """Whether nobody is in the group and nobody has committed for a day: a job that ended, not one that is late."""
    members = seen.roster.members if seen.roster is not None else ()
    return not members and all(seen.now - row.last > ABANDONED for row in seen.commits.values())


def _topic_quiet(commits: TopicCommits, ends: EndHistory, policy: Policy, floor: int) -> bool:
    """No commit was behind when it was made, none is overtaken by retention, none with unread data after it is old."""
    listed, allowed = commits.partition, policy.allowed_lag
    if not ends.samples:
        return True
    if listed[-1] >= ends.partitions:
        return False
    committed = np.array(commits.committed, np.int64)
    whole = len(listed) == ends.partitions  # partitions are listed in order, so these are all of them
    partition = slice(None) if whole else np.array(listed, np.int64)
    unread = (ends.end[partition] - committed) > allowed
    if not unread.any():
        return True
    if min(commits.committed) == GONE:
        unread &= committed != GONE
    if min(commits.moved) < floor and (unread & (np.array(commits.moved, np.int64) < floor)).any():
        return False
    if (unread & (ends.start[partition] > committed)).any():
        return False
    slack = int(policy.clock_slack * 1000)
    late = unread & (ends.at(max(commits.time) - slack)[partition] - committed > allowed)
    if not late.any():
        return True
    before, _ = ends.bracket(np.array(listed, np.int64), np.array(commits.time, np.int64), slack)
    return not bool((late & (before != UNKNOWN) & (before - committed > allowed)).any())


def _judged(look: Look) -> Judgement:
    state = lessons(look)
    look = look.after(state)
    found = findings(look)
    lead = found[0] if found else None
    if state.incident is not None:
        return incidents.carried_on(look, found)
    streak = Streaks.follow(state.streak, lead, look)
    state = replace(state, streak=streak, last_tick=look.now) if streak or state.streak else state
    held = why_not(look, lead, streak) if lead else None
    ready = lead is not None and streak is not None and held is None
    return Judgement(
        state,
        candidate=_candidate(look, lead, streak) if ready and lead and streak else None,
        verdict=str(lead.verdict) if lead and lead.ripe else "balanced",
        held=held,
        skew=look.load.skew if look.by_member else None,
        lag=int(look.lags.shown[look.lags.known & ~look.lags.orphaned].sum()),
        look=look,
        findings=tuple(found),
    )


def _candidate(look: Look, lead: Finding, streak: Streak) -> Candidate:
    topics = tuple(dict.fromkeys(look.lags.name(at)[0] for at in lead.rows))
    return Candidate(
        cluster=look.seen.cluster,
        group=look.seen.group,
        id=incident_id(look.seen.cluster, look.seen.group, streak.since),
        verdict=str(lead.verdict),
        since=streak.since,
        assignment=look.roster.assignment if look.roster else "",
        topics=topics,
        brokers=_leaders(look, lead),
    )


def _leaders(look: Look, lead: Finding) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for at in lead.rows:
        topic, partition = look.lags.name(at)
        info = look.seen.topics.get(topic)
        if info and partition < len(info.leaders):
            found[info.leaders[partition]] = None
    return tuple(found)


def confirm(candidate: Candidate, fresh: Observation, state: JudgeState, policy: Policy) -> Judgement:
    """The candidate seen afresh: published, kept until it is confirmed again, or dropped with a reason that is counted.

    ``fresh``: roster as the coordinator describes it now, commits and log ends asked for just now (last stable offsets
    too, for partitions with lag).
    """
    look = Look(fresh, policy, state)
    if state.incident is not None:
        return Judgement(state, dropped="already_open")
    reason = _refused(candidate, look)
    found = findings(look)
    if reason is None and not (found and found[0].ripe):
        reason = "not_confirmed"
    if reason is not None:
        return dropped(state, reason)
    streak = state.streak
    if (
        streak is not None
        and candidate.verdict not in AT_ONCE
        and streak.confirmed + 1 < policy.confirmations
    ):
        streak = replace(streak, confirmed=streak.confirmed + 1, asked=look.now)
        return Judgement(replace(state, streak=streak), verdict=candidate.verdict, held="confirming")
    story = tell(look, found[0])
    return incidents.opened(story, candidate.id, candidate.since)


def _refused(candidate: Candidate, look: Look) -> str | None:
    roster = look.roster
    if look.seen.blind is not None:
        return "blind"
    if candidate.verdict == Verdict.UNSTABLE:
        return None  # that it is not stable is what is to be said
    if look.by_member and roster is not None:
        if roster.state != "Stable":
            return "not_stable"
        if roster.assignment != candidate.assignment:
            return "assignment_changed"
    return None


def dropped(state: JudgeState, reason: str) -> Judgement:
    """A candidate that is not published, because of what the coordinator said or because it could not be asked."""
    return Judgement(replace(state, streak=None), dropped=reason)


__all__ = ["Candidate", "Judgement", "Story", "confirm", "dropped", "judge", "quiet"]
