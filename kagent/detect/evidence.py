"""Evidence: how long a member has been late and getting later, in commit time, against what ends by itself.

The unit of evidence is the spell, not the commit or the tick: excursions are independent, commits are not. With S the survival
function of healthy spells, 1{still going}/S(d) is a non-negative martingale of mean 1, so a healthy spell lasts as long as
``need`` with at most the probability S(need) (Ville's inequality). Blind time advances no clock and erases none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kagent.detect.capacity import RARE_GAP_S
from kagent.detect.habits import habit
from kagent.detect.state import Backlog, JudgeState, MemberState, Spell
from kagent.policy import Policy

SPELL = "spell"
BACK, KEPT = 1.25, 2.2
"""A lateness below its value this many times the least evidence ago (75 s) is falling; it is kept for a little longer."""
RISE = 1 / 12
"""A spell must rise above the greatest lateness of its first stretch (the least evidence, 60 s) by this share of it (5 s)."""
COMMITS, COMMITS_RARE = 3, 2
"""A trend needs three points; two at rare commits save five minutes and opened nothing more in 24 simulated days."""
RECORDS = 30
"""Ten records of five seconds each are noise."""
HABIT_FACTOR = 2.0
"""The next spell is longer than the longest of n with probability 1/(n+1); the factor buys the tail."""
LONGEST_NEED_S = 1800.0
"""Beyond it a habit is reported each day."""
QUIET_GROWTH = 2.0
"""A spell ends when it has not grown for this many times the least evidence (120 s) and two gaps."""
STEP = 0.5
"""A commit adds at most this share of the least evidence (30 s), or the time that its records took: a long gap is a pause unless work
fills it."""
# A backlog that drains opens only if it has fallen by at least 30 s, a tenth of its peak, and half of what capacity and inflow
# promise. Without that, a consumer that is late on purpose is reported whenever a log-end sample is missing.
DRAIN_COMMITS = 4
FALL_S, FALL_SHARE, FALL_PROMISED = 30.0, 0.1, 0.5
NEW_GROWING, NEW_DRAINING, NEW_MS = 4.0, 2.0, 3_600_000
"""A group whose first hour is not over has unknown habits: it needs four times the evidence, and twice of a backlog that drains,
so that a group first seen badly spread is still reported within ten minutes."""


IDLE_SHARE = 1 / 3
"""A member with less than this share of ``min_behind`` of its inflow waiting (20 s) has nothing to be looked at."""


def idle_s(policy: Policy) -> float:
    """Below how many seconds of its inflow a member's backlog is nothing."""
    return IDLE_SHARE * policy.min_behind


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
        """A member is late from ``min_behind`` on and on time below half of it; a drain within ``hold`` is left alone; a fifth
        of ``hold`` of growth is evidence (60 s of 300: p50 of detection is the same at 20 s, a minute more at 120 s)."""
        behind, hold = policy.min_behind, policy.hold
        # Each end lies below its beginning (60 s → 40 s, 300 s → 180 s), so that noise around a limit does not end a spell.
        return cls(behind, behind / 2, behind * 2 / 3, hold, 0.6 * hold, hold / 5, 0.6 * hold)


FIRST_VERDICT_SLACK = 1.25
"""Commits, samples and ticks between the evidence and the message: with the usual policy, ten minutes in all."""


def first_verdict_s(policy: Policy) -> float:
    """Within how many seconds a group that is badly spread when it is first seen is reported."""
    limits = LatenessLimits.of(policy)
    need = max(NEW_GROWING * limits.growing_need, NEW_DRAINING * limits.draining_need)
    return FIRST_VERDICT_SLACK * (policy.settle + policy.min_behind + policy.evidence * need)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a member with a newer commit: its time (ms), lateness (s), whether it counts as late, T at the optimist's
    ends (s), median commit gap (s), records done since the last look, and how long they took at the member's speed (s; 0: unknown).
    ``trend``: the lateness that is compared with earlier and later ones, s."""

    time: int
    lateness: float
    late: bool
    drain: float
    gap: float
    records: int
    trend: float
    worked_s: float = 0.0


def growing(known: MemberState, look: Look, limits: LatenessLimits) -> bool:
    """Whether the lateness is not below its value of a while of commit time ago."""
    # Compared with a while ago, not with the look before: a client that serves large blocks swings from look to look.
    back_ms = BACK * limits.growing_need * 1000
    before = [v for t, v in known.lateness if t <= look.time - back_ms]
    return not known.lateness or look.trend >= (before[-1] if before else known.lateness[0][1])


def history(known: MemberState, look: Look, limits: LatenessLimits) -> tuple[tuple[int, float], ...]:
    """The lateness of the last two minutes with this look."""
    kept_ms = KEPT * limits.growing_need * 1000
    kept = tuple(item for item in known.lateness if look.time - item[0] <= kept_ms)
    # At most 25 looks, or short ticks would fill the row, which goes to a changelog topic, with two minutes of them.
    return (*kept[-24:], (look.time, round(look.trend, 1)))


def step_s(look: Look, before: int, limits: LatenessLimits) -> float:
    """Commit time that a look adds, s."""
    return min((look.time - before) / 1000, max(STEP * limits.growing_need, look.worked_s))


def next_spell(known: MemberState, look: Look, limits: LatenessLimits) -> Spell | None:
    """The member's spell after a look; None where there is none, or it has ended."""
    grows, spell = look.late and growing(known, look, limits), known.spell
    if spell is None:
        return Spell(look.time, look.time, look.trend, grew_at=look.time) if grows else None
    # With rare commits the first look alone is the reference: a second one comes a gap later, and its growth would raise it.
    began = look.time - spell.began <= limits.growing_need * 1000 and look.gap < RARE_GAP_S
    reference = max(spell.reference, look.trend) if began else spell.reference
    grown = spell.grown_s + (step_s(look, spell.last, limits) if grows else 0.0)
    after = replace(
        spell,
        last=look.time,
        reference=reference,
        grown_s=grown,
        grew_at=look.time if grows else spell.grew_at,
        commits=spell.commits + 1,
        records=spell.records + look.records,
    )
    # Back to where it began: late by habit or on purpose, not later and later. For two looks: a client that serves its partitions
    # in turn swings from look to look by what one fetch holds.
    fell = not began and look.trend <= reference and _was_back(known, spell, reference, limits)
    over = look.lateness < limits.over or look.drain < limits.drain_over
    # Two gaps on top, or a member with rare commits would end its spell between two of them.
    rests = look.time - after.grew_at > (QUIET_GROWTH * limits.growing_need + 2 * look.gap) * 1000
    return None if fell or over or rests else after


def _was_back(known: MemberState, spell: Spell, reference: float, limits: LatenessLimits) -> bool:
    """Whether the look before, if it came after the spell's first stretch, was back at its beginning already."""
    if not known.lateness:
        return False
    time, lateness = known.lateness[-1]
    return time - spell.began > limits.growing_need * 1000 and lateness <= reference


def next_backlog(known: MemberState, look: Look, limits: LatenessLimits) -> Backlog | None:
    """The stretch in which the member is late; None where it is not."""
    before = known.backlog
    if look.lateness < limits.over or look.drain < limits.drain_over or (before is None and not look.late):
        return None
    if before is None:
        ramp = {"ramp_s": known.ramp_s, "ramp_records": known.ramp_records}
        return Backlog(look.time, look.time, look.trend, look.time, **ramp)  # type: ignore[arg-type]
    peak = look.trend >= before.most
    return replace(
        before,
        last=look.time,
        most=max(before.most, look.trend),
        most_at=look.time if peak else before.most_at,
        late_s=before.late_s + step_s(look, before.last, limits),
        commits=before.commits + 1,
        records=before.records + look.records,
    )


def needed_s(state: JudgeState, base: float, now: int, factor: float, new_factor: float) -> float:
    """Seconds of evidence that this group needs: the least (times the policy's ``evidence``), or twice the longest spell after
    which it caught up by itself."""
    new = now - state.first_seen < NEW_MS
    # Ville's inequality bounds how likely a healthy spell lasts as long as this:
    # https://en.wikipedia.org/wiki/Ville%27s_inequality
    least = factor * base * (new_factor if new and not state.habits else 1.0)
    return max(least, min(LONGEST_NEED_S, HABIT_FACTOR * habit(state.habits, SPELL, now)))


def enough_growth(member: MemberState, gap: float, need: float, limits: LatenessLimits) -> bool:
    """Whether the spell is long enough to open."""
    spell = member.spell
    if spell is None or spell.grown_s < need or spell.records < RECORDS:
        return False
    lateness = member.lateness[-1][1]
    return (
        spell.commits >= (COMMITS_RARE if gap >= RARE_GAP_S else COMMITS)
        and lateness > spell.reference + RISE * limits.growing_need
    )


def enough_drain(member: MemberState, need: float, speed_over_inflow: float) -> bool:
    """Whether a backlog that drains has been seen to drain for long enough: half of the fall that capacity and inflow promise.
    Without the fall, a delay on purpose would pass."""
    backlog = member.backlog
    if (
        backlog is None
        or backlog.late_s < need
        or backlog.commits < DRAIN_COMMITS
        or backlog.records < RECORDS
    ):
        return False
    fallen = backlog.most - member.lateness[-1][1]
    # Seconds of lateness that fall per second: speed ÷ inflow − 1 (V is time of the log, and the log grows at the inflow).
    promised = (backlog.last - backlog.most_at) / 1000 * max(0.0, speed_over_inflow - 1)
    least = max(FALL_S, FALL_SHARE * backlog.most, FALL_PROMISED * min(promised, backlog.most))
    return fallen >= least


def voted(votes: Mapping[str, int], verdict: str) -> dict[str, int]:
    """The votes with one more."""
    return {**votes, verdict: votes.get(verdict, 0) + 1}


def most_voted(votes: Mapping[str, int]) -> str | None:
    """The verdict that most looks gave."""
    # On a tie the verdict that came first: Counter keeps the order in which its keys were added.
    return Counter(votes).most_common(1)[0][0] if votes else None
