"""Advances the spells of members that are late, once the model says how late each is. Pure: state in, state out.

A spell advances only when its member has committed again: nothing counts ticks, and the same events in one batch or in thirty
give the same spells. How much of it is enough is in ``kagent.detect.evidence``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from kagent.detect.capacity import RARE_GAP_S
from kagent.detect.evidence import BACKLOG, COMMITS_RARE, PAUSE_SHARE, SPELL, LatenessLimits
from kagent.detect.extrapolation import (
    older_of_topics,
    rescaled,
)
from kagent.detect.group_model import GroupModel
from kagent.detect.habits import learned, learned_again
from kagent.detect.lateness_error import unsure_of_topics, unsure_s
from kagent.detect.lateness_sample import LatenessSample
from kagent.detect.state import Backlog, Fall, JudgeState, MemberState, Older, Spell, Window
from kagent.lag.bound import Bound

MOST_LOOKS: Bound = 25
"""Looks whose lateness is remembered."""


def advance(model: GroupModel, before: JudgeState) -> JudgeState:
    """The state with the spells of members that have committed since ``before``. No spell runs right after a rebalance: lags are
    the pause's then, not the assignment's."""
    state, limits = model.state, LatenessLimits.of(model.policy)
    if model.settles:
        return state
    members, habits = dict(state.members), state.habits
    learn = learned if state.incident is None else learned_again
    for at, name in enumerate(model.names):
        known = members.get(name)
        if known is None:
            continue
        earlier = before.members.get(name, MemberState())
        if known.time > earlier.time:
            known = _after_look(model, at, known, earlier, limits)
        ended_s = _ended_by_itself_s(known, earlier)
        late_s = known.longest_late_s if known.on_time_at == known.time else 0.0
        habits = learn(learn(habits, SPELL, ended_s, known.time), BACKLOG, late_s, known.time)
        members[name] = _slim(_without_ended(known, ended_s, late_s), not model.has_work(at))
    # What equals the default is left out: rows of healthy groups stay small, and equal states are not written again.
    return replace(state, members={n: m for n, m in members.items() if m != MemberState()}, habits=habits)


def _ended_by_itself_s(known: MemberState, earlier: MemberState) -> float:
    """How long the spell was that this sample shows to have ended by itself, s: the longest if the member is on time again or as late as
    when that one began, else the one that it fell back from; 0 if none did."""
    # Spells that restart during an illness are no habit.
    if known.longest_spell_s and known.on_time_at == known.time:
        return known.longest_spell_s
    spell = earlier.spell
    if spell is None or not _fell_back(known, spell):
        return 0.0
    # From a short one: a member that goes on falling behind has not caught up with the long one before.
    back = known.lateness[-1][1] <= known.longest_from
    return known.longest_spell_s if back else _length_s(spell)


def _without_ended(known: MemberState, spell_s: float, late_s: float) -> MemberState:
    """The member without the spell and the backlog of these lengths (s; 0: none) that have ended by themselves."""
    if spell_s and spell_s >= known.longest_spell_s:
        known = replace(known, longest_spell_s=0.0, longest_from=0.0)
    return replace(known, longest_late_s=0.0) if late_s else known


def _length_s(spell: Spell) -> float:
    """How long the spell has been as a habit, s: what rises while it is extrapolated may be the inflow's noise."""
    return 0.0 if spell.extrapolated_s else spell.grown_s - spell.carried_s


def _fell_back(known: MemberState, spell: Spell) -> bool:
    """Whether the spell ended since the member is as late again as it was when it began: late on purpose, or by habit."""
    # Later in it than ever since it became late: that is how a member falls behind by one burst after another.
    latest_yet = known.backlog is not None and known.backlog.most_at >= spell.began
    return known.spell is None and known.lateness[-1][1] <= spell.reference and not latest_yet


def _after_look(
    model: GroupModel, at: int, known: MemberState, earlier: MemberState, limits: LatenessLimits
) -> MemberState:
    """The member with its spell, backlog clock and ramp advanced by its newest commit."""
    sample = _sample(model, at, known, earlier, limits)
    known = rescaled(known, sample)
    sample = replace(
        sample,
        unsure_s=unsure_s(model, at, known.spell, sample),
        unsure=unsure_of_topics(model, at, known.spell, sample),
    )
    known = replace(known, spell=measured(known.spell, sample), windows=_with_lateness(known.windows, sample))
    spell = next_spell(known, sample, limits)
    longest = _longest(known)
    on_time = known.time if sample.lateness < limits.on_time else known.on_time_at
    ramp_s, ramp_records = _ramp(sample, known, earlier, on_time == known.time)
    known = replace(
        known,
        ramp_s=ramp_s,
        ramp_records=ramp_records,
        on_time_at=on_time,
        longest_spell_s=longest[0],
        longest_from=longest[1],
        longest_late_s=max(known.longest_late_s, known.backlog.late_s if known.backlog else 0.0),
    )
    backlog = next_backlog(known, sample, limits)
    return replace(known, spell=spell, backlog=backlog, lateness=history(known, sample, limits))


def _longest(known: MemberState) -> tuple[float, float]:
    """How long the longest spell since the member was last not late has been, s, and how late it was when that one began, s."""
    spell, before = known.spell, (known.longest_spell_s, known.longest_from)
    return max(before, (_length_s(spell), spell.reference)) if spell else before


def _with_lateness(windows: tuple[Window, ...], sample: LatenessSample) -> tuple[Window, ...]:
    """The windows; the newest with how late the member was in the end, where this sample ended it."""
    if not windows or windows[-1].until != sample.time:
        return windows
    return (*windows[:-1], replace(windows[-1], late_s=round(sample.trend, 1)))


def measured(spell: Spell | None, sample: LatenessSample) -> Spell | None:
    """The spell. One whose beginning was extrapolated is held against now once the lateness is measured: what it rose by may be the error
    of then. Who falls behind goes on to; how long it has seemed to counts as evidence, and as no habit."""
    if spell is None:
        return None
    if spell.extrapolated_s and not sample.extrapolated_s:
        return replace(spell, **_beginning(sample), commits=0, voted=0, carried_s=spell.grown_s)
    return _topics_measured(spell, sample, spell.older.keys() - sample.older.keys())


def _topics_measured(spell: Spell, sample: LatenessSample, found: Set[str]) -> Spell:
    """The spell with the beginnings of these topics held against now."""
    if not found:
        return spell
    older = {topic: part for topic, part in spell.older.items() if topic not in found}
    now = {topic: (round(sample.topics[topic], 1),) * 2 for topic in found if topic in sample.topics}
    return replace(spell, older=older, topics={**spell.topics, **now})


def _beginning(sample: LatenessSample) -> dict[str, Any]:
    """What is remembered of the sample at which a spell begins."""
    return {
        "began": sample.time,
        "reference": sample.trend,
        "topics": _topics({}, sample, began=True),
        "older": sample.older,
        "extrapolated_s": round(sample.extrapolated_s, 1),
        "unsure_s": 0.0,
    }


def _sample(
    model: GroupModel, at: int, known: MemberState, earlier: MemberState, limits: LatenessLimits
) -> LatenessSample:
    lateness, drain = float(model.lateness[at]), float(model.drain_low[at])
    records = sum(max(0, n - earlier.done.get(key, n)) for key, n in known.done.items())
    late = limits.is_late(lateness, drain)
    speed = float(model.capacity.rate.mid[at]) if model.capacity.measured[at] else 0.0
    worked_s = records / speed if speed else 0.0
    trend = float(model.lateness_at_commit[at])
    # Of the others, which are most, only the lateness is looked at.
    watched = late or known.running
    extrapolated_s = model.beyond_known_s(at, model.held_of(at), trend) if watched else 0.0
    topics = model.topic_lateness_at_commit(at) if watched else {}
    return LatenessSample(
        time=known.time,
        lateness=lateness,
        late=late,
        drain=drain,
        gap=float(model.columns.gap[at]),
        records=records,
        trend=trend,
        worked_s=worked_s,
        topics=topics,
        older=older_of_topics(model, at, topics),
        extrapolated_s=extrapolated_s,
        continued=round(model.continued_inflow(at), 6) if extrapolated_s else 0.0,
    )


def _ramp(
    sample: LatenessSample, known: MemberState, earlier: MemberState, on_time: bool
) -> tuple[float, int]:
    """How long the member has fallen behind since it was on time, s, and what it did meanwhile, until it was late."""
    if known.backlog is not None or not earlier.time:
        return known.ramp_s, known.ramp_records
    seconds = (sample.time - earlier.time) / 1000
    fell = sample.trend - (earlier.lateness[-1][1] if earlier.lateness else 0.0)
    # On time and not falling behind: the ramp starts afresh.
    before_s, before = (
        (0.0, 0) if on_time and fell < PAUSE_SHARE * seconds else (known.ramp_s, known.ramp_records)
    )
    if fell < PAUSE_SHARE * seconds:
        return before_s, before
    return before_s + seconds, before + sample.records


def _slim(known: MemberState, idle: bool) -> MemberState:
    """A member that is on time and idle is remembered by its speed and habits alone."""
    if not idle or known.running:
        return known
    return MemberState(
        gaps=known.gaps, windows=known.windows, on_time_at=known.on_time_at if known.windows else 0
    )


def growing(known: MemberState, sample: LatenessSample, limits: LatenessLimits) -> bool:
    """Whether the lateness is not below its value of as much commit time ago as the least evidence takes."""
    # Compared with a while ago, not with the sample before: a client that serves large blocks swings from sample to sample.
    before = [v for t, v in known.lateness if t <= sample.time - limits.growing_need * 1000]
    return not known.lateness or sample.trend >= (before[-1] if before else known.lateness[0][1])


def history(
    known: MemberState, sample: LatenessSample, limits: LatenessLimits
) -> tuple[tuple[int, float], ...]:
    """The lateness of the last three minutes with this sample."""
    kept_ms = limits.draining_need * 1000
    kept = tuple(item for item in known.lateness if sample.time - item[0] <= kept_ms)
    # Short ticks would fill the row, which goes to a changelog topic, with three minutes of looks.
    return (*kept, (sample.time, round(sample.trend, 1)))[-MOST_LOOKS:]


def step_s(sample: LatenessSample, before: int, limits: LatenessLimits) -> float:
    """Commit time that a sample adds, s: at most half of the least evidence (30 s), as that takes two commits, or the time that its records
    took. A long gap is a pause unless work fills it."""
    return min((sample.time - before) / 1000, max(limits.growing_need / COMMITS_RARE, sample.worked_s))


def next_spell(known: MemberState, sample: LatenessSample, limits: LatenessLimits) -> Spell | None:
    """The member's spell after a sample; None where there is none, or it has ended."""
    grows, spell = sample.late and growing(known, sample, limits), known.spell
    if spell is None:
        return Spell(last=sample.time, grew_at=sample.time, **_beginning(sample)) if grows else None
    # With rare commits the first sample alone is the reference: a second one comes a gap later, and its growth would raise it.
    began = sample.time - spell.began <= limits.growing_need * 1000 and sample.gap < RARE_GAP_S
    first = _beginning(sample) if began and sample.trend >= spell.reference else {}
    reference = first.get("reference", spell.reference)
    grown = spell.grown_s + (step_s(sample, spell.last, limits) if grows else 0.0)
    after = replace(
        spell,
        last=sample.time,
        reference=reference,
        extrapolated_s=first.get("extrapolated_s", spell.extrapolated_s),
        unsure_s=round(sample.unsure_s, 1),
        grown_s=grown,
        grew_at=sample.time if grows else spell.grew_at,
        commits=spell.commits + 1,
        records=spell.records + sample.records,
        topics=_topics(spell.topics, sample, began),
        older=_older(spell, sample) if began else spell.older,
    )
    # Back to where it began: late by habit or on purpose, not later and later.
    fell = not began and sample.trend <= reference and _was_back(known, spell, reference, limits)
    over = sample.lateness < limits.over or sample.drain < limits.drain_over
    # Not grown for as long as is evidence that it grows. Two gaps on top, or a member with rare commits would end its spell between two
    # of them.
    rests = sample.time - after.grew_at > (limits.growing_need + 2 * sample.gap) * 1000
    return None if fell or over or rests else after


def _topics(
    before: Mapping[str, tuple[float, float]], sample: LatenessSample, began: bool
) -> dict[str, tuple[float, float]]:
    """Each topic's reference and its latest lateness, at least. One that the member did not hold when the spell began was on time then."""
    found = {}
    for topic, late in sample.topics.items():
        then, _ = before.get(topic, (0.0, 0.0))
        least = late - sample.unsure.get(topic, 0.0)
        found[topic] = round(max(then, late) if began else then, 1), round(least, 1)
    return found


def _older(spell: Spell, sample: LatenessSample) -> dict[str, Older]:
    """How much of each topic's reference is older than the log ends that were known, after a sample that may have raised it."""
    raised = {
        t: part for t, part in sample.older.items() if sample.topics[t] >= spell.topics.get(t, (0.0, 0.0))[0]
    }
    return {**spell.older, **raised}


def _was_back(known: MemberState, spell: Spell, reference: float, limits: LatenessLimits) -> bool:
    """Whether all looks of the stretch before this one, which came after the spell's first stretch, were back at its beginning."""
    if not known.lateness:
        return False
    stretch_ms = limits.growing_need * 1000
    last, _ = known.lateness[-1]
    # Like with like: the reference is the highest of a stretch. A member that is slow and fast by turns, or serves its partitions in turn,
    # swings from sample to sample and is not back in the trough.
    latest = [(time, late) for time, late in known.lateness if time >= last - stretch_ms]
    return latest[0][0] - spell.began > stretch_ms and all(late <= reference for _, late in latest)


def next_backlog(known: MemberState, sample: LatenessSample, limits: LatenessLimits) -> Backlog | None:
    """The stretch in which the member is late; None where it is not."""
    before = known.backlog
    if (
        sample.lateness < limits.over
        or sample.drain < limits.drain_over
        or (before is None and not sample.late)
    ):
        return None
    if before is None:
        ramp = {"ramp_s": known.ramp_s, "ramp_records": known.ramp_records}
        falls = _falls({}, sample, limits)
        return Backlog(sample.time, sample.time, sample.trend, sample.time, falls=falls, **ramp)  # type: ignore[arg-type]
    peak = sample.trend >= before.most
    return replace(
        before,
        last=sample.time,
        most=max(before.most, sample.trend),
        most_at=sample.time if peak else before.most_at,
        late_s=before.late_s + step_s(sample, before.last, limits),
        commits=before.commits + 1,
        records=before.records + sample.records,
        falls=_falls(before.falls, sample, limits),
    )


def _falls(before: Mapping[str, Fall], sample: LatenessSample, limits: LatenessLimits) -> dict[str, Fall]:
    now = sample.topics or {"": sample.trend}
    return {topic: next_fall(before.get(topic), late, sample, limits) for topic, late in now.items()}


def next_fall(before: Fall | None, lateness: float, sample: LatenessSample, limits: LatenessLimits) -> Fall:
    """The fall of a lateness (s) after a sample. It is over once as much time as a drain must last has brought less than the least rise
    of a spell: what remains is constant, as a delay on purpose is after a pause."""
    ends_ms = (limits.draining_need + 2 * sample.gap) * 1000
    if before is None or lateness >= before.most or sample.time - before.least_at > ends_ms:
        return Fall(round(lateness, 1), sample.time, round(lateness, 1), sample.time)
    fell = lateness <= before.least - limits.rise
    return replace(before, least=round(lateness, 1), least_at=sample.time) if fell else before
