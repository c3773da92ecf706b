"""What must hold before anything is said: streaks of evaluations, and every reason for not (yet) speaking."""

from __future__ import annotations

from dataclasses import replace

from kagent.advice.look import Look
from kagent.advice.state import Streak
from kagent.advice.verdicts import Finding
from kagent.contract.recommendation import Verdict

REWOUND_PATIENCE = 7_200_000
GROUP_READY = frozenset({"Stable", "Empty"})


class Streaks:
    """Evaluations in a row of the same kind of finding about the same member."""

    @staticmethod
    def follow(before: Streak | None, lead: Finding | None, look: Look) -> Streak | None:
        """The streak after this look; None if nothing is the matter."""
        if lead is None:
            return None
        member = look.names[lead.members[0]] if lead.members else ""
        if before is None or before.kind != lead.kind or not _same(look, before, lead, member):
            lag, commit = _evidence(look, lead, member)
            return Streak(lead.kind, member, look.now, int(lead.ripe), commit, 1, lag)
        _, commit = _evidence(look, lead, before.member)
        newer = commit > before.commit
        return replace(
            before,
            count=before.count + 1 if lead.ripe else 0,
            confirmed=before.confirmed if lead.ripe else 0,
            asked=before.asked if lead.ripe else 0,
            commit=max(commit, before.commit),
            commits=before.commits + newer,
        )


def _same(look: Look, before: Streak, lead: Finding, member: str) -> bool:
    """Whether it is still about the same: the member of before, or one of several that are overloaded alike."""
    if before.member == member:
        return True
    if lead.kind != "spread" or before.member not in look.names:
        return False
    if lead.verdict is Verdict.UNDER_PROVISIONED:
        return True
    return look.load.share(look.names.index(before.member)) >= look.policy.threshold


def _evidence(look: Look, lead: Finding, member: str) -> tuple[float, int]:
    """Lag of the member concerned and time of its newest commit."""
    if lead.kind == "spread":
        at = look.names.index(member)
        return float(look.load.lag[at]), int(look.load.commit[at])
    return float(look.lags.shown[list(lead.rows)].sum()), 0


def why_not(look: Look, lead: Finding, streak: Streak | None) -> str | None:
    """Why this finding is not spoken of (yet); None if it may be."""
    policy, state, now = look.policy, look.state, look.now
    if look.seen.muted:
        return "muted"
    if now < state.cooldown_until:
        return "cooldown"
    if learning(look):
        return "learning"
    if not lead.ripe:
        return "min_behind"
    if streak is None or streak.count < policy.evaluations:
        return "evaluations"
    held = _spread_only(look, lead, streak) if lead.kind == "spread" else None
    return "confirming" if held is None and now - streak.asked < _gap(look, lead) else held


def _gap(look: Look, lead: Finding) -> float:
    """The usual gap between commits of the partitions concerned, in ms: no sooner does a second answer tell anything new of
    how work is spread. What stands still has been seen over several gaps already; there the next look is enough."""
    rows = list(lead.rows)
    return float(look.lags.cadence[rows].max()) if rows and lead.kind == "spread" else 0.0


def learning(look: Look) -> bool:
    """Whether the group is too new to kagent to be judged: its habits are not known yet."""
    commits = sum(c.commits for c in look.seen.commits.values())
    young = look.now - look.state.first_seen < look.policy.learn * 1000
    return young or commits < look.policy.learn_commits


def _spread_only(look: Look, lead: Finding, streak: Streak) -> str | None:
    policy, state = look.policy, look.state
    roster = look.roster
    if roster is None or roster.state not in GROUP_READY or roster.stale:
        return "not_stable"
    cadence = float(look.lags.cadence.max(initial=0.0))
    if look.now - state.generation_at < max(policy.settle * 1000, 3 * cadence):
        return "settling"
    if streak.commits < 2:
        return "one_commit"
    if look.now - streak.since < policy.hold * 1000:
        return "may_drain"
    if drains_soon(look, streak):
        return "draining"
    if all_alike(look, lead):
        return "level"
    if rewound(look, streak):
        return "rewound"
    return None


def all_alike(look: Look, lead: Finding) -> bool:
    """Whether most of what the member has to do is late as everything of that topic is, and not ever later: nobody is worse
    off than the others, and it may be meant to be."""
    rows = list(lead.rows)
    size = look.load.size[rows]
    return bool(rows) and float(size[look.level[rows]].sum()) > 0.5 * float(size.sum())


def shrinking(look: Look, streak: Streak) -> float | None:
    """Records/s by which the overloaded member's lag falls since the streak began; None before a second commit."""
    began = look.now - streak.since
    if streak.commits < 2 or began <= 0:
        return None
    lag = float(look.load.lag[look.names.index(streak.member)])
    return (streak.lag - lag) * 1000 / began


def drains_soon(look: Look, streak: Streak) -> bool:
    """Whether the member will have caught up by itself within the policy's ``hold``."""
    falls = shrinking(look, streak)
    if falls is None or falls <= 0:
        return False
    lag = float(look.load.lag[look.names.index(streak.member)])
    return lag / falls <= look.policy.hold


def rewound(look: Look, streak: Streak) -> bool:
    """Whether somebody set the group back not long ago and it is working through what it reads again."""
    last = max((c.rewound for c in look.seen.commits.values()), default=0)
    if not last or look.now - last > REWOUND_PATIENCE:
        return False
    falls = shrinking(look, streak)
    return falls is None or falls > 0
