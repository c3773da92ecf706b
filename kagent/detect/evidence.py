"""Evidence: how long a member has been late and getting later, in commit time, against what ends by itself.

The unit of evidence is the spell, not the commit or the tick: excursions are independent, commits are not. With S the survival
function of healthy spells, 1{still going}/S(d) is a non-negative martingale of mean 1, so a healthy spell lasts as long as
``need`` with at most the probability S(need) (Ville's inequality). Blind time advances no clock and erases none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kagent.detect.capacity import PRIOR_SD, RARE_GAP_S, RECENT_MS
from kagent.detect.commit_gaps import LONGEST_GAP_S, USUAL_GAP_S
from kagent.detect.habits import habit
from kagent.detect.state import Backlog, Fall, JudgeState, MemberState, Spell
from kagent.lag.chance import CLEARLY, NOT_CHANCE, TAIL, UNSEEN
from kagent.lag.time_units import SECOND_MS
from kagent.policy import Policy, shortened

SPELL, BACKLOG = "spell", "backlog"
COMMITS_RARE = NOT_CHANCE - 1
"""A trend needs three points; two at rare commits save five minutes and opened nothing more in 24 simulated days."""
GROWTH = USUAL_GAP_S / Policy().hold
"""Of ``hold``, a fifth: so long must a lateness have grown to be evidence, and a backlog that drains have been late for three times as long. What lasts for
less than USUAL_GAP_S says nothing (60 s of 300: p50 of detection is the same at 20 s, a minute more at 120 s), and a shorter ``hold`` shortens it."""
RECORDS = round(1 / (PRIOR_SD * PRIOR_SD))
"""Fewer prove nothing, 25: their number alone strays by more than a window does (PRIOR_SD), as n events stray by √n (Poisson). Ten records of five seconds
each are noise, and so is where a group has read so few."""
# A backlog that drains opens only if it has fallen by as much as a member may be late that is on time (30 s), and
# half of what capacity and inflow promise. Without that, a consumer that is late on purpose is reported whenever a log-end sample is
# missing.
NEW_GROWING, NEW_DRAINING, NEW_MS = TAIL * TAIL, TAIL, round(LONGEST_GAP_S * SECOND_MS)
"""A group whose first hour (LONGEST_GAP_S) is not over has unknown habits: it needs four times the evidence, and twice of a backlog
that drains, so that a group first seen badly spread is still reported within ten minutes."""
PAUSE_SHARE = 1 / TAIL
"""Who works does at least half of what it can. In a pause a member's lateness rises by half of the time that passes, and it does less
than half; a backlog that drains falls by half of what is promised."""


def idle_s(policy: Policy) -> float:
    """Below how many seconds of its inflow a member's backlog is nothing, and it has nothing to be looked at."""
    return policy.min_behind / NOT_CHANCE


@dataclass(frozen=True, slots=True)
class LatenessLimits:
    """What counts as late, in s, all derived from the policy's ``min_behind`` and ``hold``."""

    late: float
    on_time: float
    over: float
    drain: float
    drain_over: float
    growing_need: float
    draining_need: float

    @classmethod
    def of(cls, policy: Policy) -> LatenessLimits:
        """A member is late from ``min_behind`` on and on time below half of it; a drain within ``hold`` is left alone."""
        behind, hold = policy.min_behind, policy.hold
        growing, draining = GROWTH * hold, NOT_CHANCE * GROWTH * hold
        # Each end lies below its beginning (60 s → 40 s, 300 s → 200 s), so that noise around a limit does not end a spell.
        return cls(behind, behind / TAIL, behind / CLEARLY, hold, hold / CLEARLY, growing, draining)

    @property
    def rise(self) -> float:
        """What a lateness must change by to have risen or fallen, s: more than that of a member that falls behind may be off after the least
        evidence (3 s)."""
        return UNSEEN * self.growing_need

    def is_late(self, lateness: float, drain: float) -> bool:
        """Whether so much lateness (s) is too much where it drains in ``drain`` s at best."""
        return lateness >= self.late and drain > self.drain


def first_verdict_s(policy: Policy) -> float:
    """Within how many seconds a group that is badly spread when it is first seen is reported."""
    limits = LatenessLimits.of(policy)
    need = max(NEW_GROWING * limits.growing_need, NEW_DRAINING * limits.draining_need)
    # Commits at both ends of the evidence, each with its gap.
    return policy.settle + policy.min_behind + policy.evidence * need + TAIL * USUAL_GAP_S


def growing_need_s(state: JudgeState, now: int, policy: Policy) -> float:
    """How long (s) a member of this group must have been late and getting later."""
    return _need_s(state, (SPELL,), LatenessLimits.of(policy).growing_need, NEW_GROWING, now, policy)


def draining_need_s(state: JudgeState, now: int, policy: Policy) -> float:
    """How long (s) a member of this group whose backlog drains must have been late: who has worked off backlogs of this length before
    most likely works off this one."""
    base = LatenessLimits.of(policy).draining_need
    return _need_s(state, (SPELL, BACKLOG), base, NEW_DRAINING, now, policy)


def _need_s(
    state: JudgeState, kinds: tuple[str, ...], base: float, new_factor: float, now: int, policy: Policy
) -> float:
    """The least (times the policy's ``evidence``), or twice the longest of these kinds after which the group caught up by itself."""
    usual = max(habit(state.habits, kind, now) for kind in kinds)
    new = now - state.first_seen < NEW_MS
    # Ville's inequality bounds how likely a healthy spell lasts as long as this:
    # https://en.wikipedia.org/wiki/Ville%27s_inequality
    least = policy.evidence * base * (new_factor if new and not usual else 1.0)
    # A habit of being late for longer than anybody waits for a drain is reported each day.
    return max(least, min(policy.await_drain, TAIL * usual))


def enough_growth(member: MemberState, gap: float, need: float, limits: LatenessLimits) -> bool:
    """Whether the spell is long enough to open."""
    spell = member.spell
    if spell is None or spell.grown_s < need or spell.records < RECORDS:
        return False
    enough = spell.commits >= (COMMITS_RARE if gap >= RARE_GAP_S else NOT_CHANCE)
    # By more than it may be off.
    rose = member.lateness[-1][1] > spell.reference + limits.rise + spell.unsure_s
    return enough and rose and _some_topic_grows(spell, limits)


def _some_topic_grows(spell: Spell, limits: LatenessLimits) -> bool:
    """Whether one of the member's topics is late, and later for itself than it was."""
    # The mean over topics also rises when less arrives of one that is on time beside one that is read late on purpose, as a topic of
    # delayed retries: nothing is read later than before.
    # Nor is one that is on time and swings by what a poll holds.
    return not spell.topics or any(
        now >= limits.late and now > then + limits.rise for then, now in spell.topics.values()
    )


def enough_drain(member: MemberState, need: float, speed_over_inflow: float, limits: LatenessLimits) -> bool:
    """Whether a backlog that drains has been seen to drain for long enough: one of the member's topics by half of what capacity and
    inflow promise. Without the fall, a delay on purpose would pass."""
    backlog = member.backlog
    if backlog is None or backlog.late_s < need or backlog.commits < NOT_CHANCE or backlog.records < RECORDS:
        return False
    falls = backlog.falls.values()
    return any(_falls_as_promised(f, backlog.last, speed_over_inflow, limits) for f in falls)


def _falls_as_promised(fall: Fall, last: int, speed_over_inflow: float, limits: LatenessLimits) -> bool:
    # Seconds of lateness that fall per second: speed ÷ inflow − 1 (V is time of the log, and the log grows at the inflow).
    promised = (last - fall.since) / 1000 * max(0.0, speed_over_inflow - 1)
    return fall.most - fall.least >= max(limits.on_time, PAUSE_SHARE * min(promised, fall.most))


def voted(votes: Mapping[str, float], verdict: str, most: float) -> dict[str, float]:
    """The votes with one more. Beyond ``most`` looks, the earlier ones count for less and less."""
    # Or a load that rises slowly, which passes some verdicts on its way, would need twice as many looks for the right one as for all
    # of them before.
    share = min(1.0, (most - 1) / max(1.0, sum(votes.values())))
    faded = {name: round(looks * share, 2) for name, looks in votes.items()}
    return {**faded, verdict: faded.get(verdict, 0.0) + 1}


def looks_that_count(clock: Spell | Backlog, limits: LatenessLimits, stood_s: float = 0.0) -> float:
    """How many looks of this spell or backlog come within the most evidence that a verdict needs, at least those of a trend; more
    where a verdict was published ``stood_s`` ago."""
    # What has been published for an hour is not refuted by three minutes: looks of all that time count, at most of the ten minutes of
    # which windows count, so that one window of the inflow (five minutes) that was unusual by chance changes no verdict.
    counted_s = max(limits.draining_need, min(stood_s, shortened(RECENT_MS / 1000, limits.drain)))
    return max(NOT_CHANCE, clock.commits * counted_s * 1000 / max(1, clock.last - clock.began))


def agreed(votes: Mapping[str, float], verdict: str) -> bool:
    """Whether enough of the looks gave this verdict for it to be published."""
    looks = sum(votes.values())
    # Not just most of the looks: on the edge of two verdicts, the noise of the first minutes would decide. Of 30 simulated groups on such
    # edges 28 were called right by two of three, and 25 by most of the looks.
    return CLEARLY * votes.get(verdict, 0) >= looks > 0
