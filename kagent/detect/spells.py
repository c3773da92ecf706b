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
    beyond_known_s,
    older_of_topics,
    rescaled,
)
from kagent.detect.group_model import GroupModel
from kagent.detect.habits import learned, learned_again
from kagent.detect.lateness_error import unsure_of_topics, unsure_s
from kagent.detect.look import Look
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
    """How long the spell was that this look shows to have ended by itself, s: the longest if the member is on time again or as late as
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
    look = _look(model, at, known, earlier, limits)
    known = rescaled(known, look)
    look = replace(
        look,
        unsure_s=unsure_s(model, at, known.spell, look),
        unsure=unsure_of_topics(model, at, known.spell, look),
    )
    known = replace(known, spell=measured(known.spell, look), windows=_with_lateness(known.windows, look))
    spell = next_spell(known, look, limits)
    longest = _longest(known)
    on_time = known.time if look.lateness < limits.on_time else known.on_time_at
    ramp_s, ramp_records = _ramp(look, known, earlier, on_time == known.time)
    known = replace(
        known,
        ramp_s=ramp_s,
        ramp_records=ramp_records,
        on_time_at=on_time,
        longest_spell_s=longest[0],
        longest_from=longest[1],
        longest_late_s=max(known.longest_late_s, known.backlog.late_s if known.backlog else 0.0),
    )
    backlog = next_backlog(known, look, limits)
    return replace(known, spell=spell, backlog=backlog, lateness=history(known, look, limits))


def _longest(known: MemberState) -> tuple[float, float]:
    """How long the longest spell since the member was last not late has been, s, and how late it was when that one began, s."""
    spell, before = known.spell, (known.longest_spell_s, known.longest_from)
    return max(before, (_length_s(spell), spell.reference)) if spell else before


def _with_lateness(windows: tuple[Window, ...], look: Look) -> tuple[Window, ...]:
    """The windows; the newest with how late the member was in the end, where this look ended it."""
    if not windows or windows[-1].until != look.time:
        return windows
    return (*windows[:-1], replace(windows[-1], late_s=round(look.trend, 1)))


def measured(spell: Spell | None, look: Look) -> Spell | None:
    """The spell. One whose beginning was extrapolated is held against now once the lateness is measured: what it rose by may be the error
    of then. Who falls behind goes on to; how long it has seemed to counts as evidence, and as no habit."""
    if spell is None:
        return None
    if spell.extrapolated_s and not look.extrapolated_s:
        return replace(spell, **_beginning(look), commits=0, voted=0, carried_s=spell.grown_s)
    return _topics_measured(spell, look, spell.older.keys() - look.older.keys())


def _topics_measured(spell: Spell, look: Look, found: Set[str]) -> Spell:
    """The spell with the beginnings of these topics held against now."""
    if not found:
        return spell
    older = {topic: part for topic, part in spell.older.items() if topic not in found}
    now = {topic: (round(look.topics[topic], 1),) * 2 for topic in found if topic in look.topics}
    return replace(spell, older=older, topics={**spell.topics, **now})


def _beginning(look: Look) -> dict[str, Any]:
    """What is remembered of the look at which a spell begins."""
    return {
        "began": look.time,
        "reference": look.trend,
        "topics": _topics({}, look, began=True),
        "older": look.older,
        "extrapolated_s": round(look.extrapolated_s, 1),
        "unsure_s": 0.0,
    }


def _look(
    model: GroupModel, at: int, known: MemberState, earlier: MemberState, limits: LatenessLimits
) -> Look:
    lateness, drain = float(model.lateness[at]), float(model.drain_low[at])
    records = sum(max(0, n - earlier.done.get(key, n)) for key, n in known.done.items())
    late = limits.is_late(lateness, drain)
    speed = float(model.capacity.rate.mid[at]) if model.capacity.measured[at] else 0.0
    worked_s = records / speed if speed else 0.0
    trend = float(model.lateness_at_commit[at])
    # Of the others, which are most, only the lateness is looked at.
    watched = late or known.running
    extrapolated_s = beyond_known_s(model, at, trend) if watched else 0.0
    topics = model.topic_lateness_at_commit(at) if watched else {}
    return Look(
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


def _ramp(look: Look, known: MemberState, earlier: MemberState, on_time: bool) -> tuple[float, int]:
    """How long the member has fallen behind since it was on time, s, and what it did meanwhile, until it was late."""
    if known.backlog is not None or not earlier.time:
        return known.ramp_s, known.ramp_records
    seconds = (look.time - earlier.time) / 1000
    fell = look.trend - (earlier.lateness[-1][1] if earlier.lateness else 0.0)
    # On time and not falling behind: the ramp starts afresh.
    before_s, before = (
        (0.0, 0) if on_time and fell < PAUSE_SHARE * seconds else (known.ramp_s, known.ramp_records)
    )
    if fell < PAUSE_SHARE * seconds:
        return before_s, before
    return before_s + seconds, before + look.records


def _slim(known: MemberState, idle: bool) -> MemberState:
    """A member that is on time and idle is remembered by its speed and habits alone."""
    if not idle or known.running:
        return known
    return MemberState(
        gaps=known.gaps, windows=known.windows, on_time_at=known.on_time_at if known.windows else 0
    )


def growing(known: MemberState, look: Look, limits: LatenessLimits) -> bool:
    """Whether the lateness is not below its value of as much commit time ago as the least evidence takes."""
    # Compared with a while ago, not with the look before: a client that serves large blocks swings from look to look.
    before = [v for t, v in known.lateness if t <= look.time - limits.growing_need * 1000]
    return not known.lateness or look.trend >= (before[-1] if before else known.lateness[0][1])


def history(known: MemberState, look: Look, limits: LatenessLimits) -> tuple[tuple[int, float], ...]:
    """The lateness of the last three minutes with this look."""
    kept_ms = limits.draining_need * 1000
    kept = tuple(item for item in known.lateness if look.time - item[0] <= kept_ms)
    # Short ticks would fill the row, which goes to a changelog topic, with three minutes of looks.
    return (*kept, (look.time, round(look.trend, 1)))[-MOST_LOOKS:]


def step_s(look: Look, before: int, limits: LatenessLimits) -> float:
    """Commit time that a look adds, s: at most half of the least evidence (30 s), as that takes two commits, or the time that its records
    took. A long gap is a pause unless work fills it."""
    return min((look.time - before) / 1000, max(limits.growing_need / COMMITS_RARE, look.worked_s))


def next_spell(known: MemberState, look: Look, limits: LatenessLimits) -> Spell | None:
    """The member's spell after a look; None where there is none, or it has ended."""
    grows, spell = look.late and growing(known, look, limits), known.spell
    if spell is None:
        return Spell(last=look.time, grew_at=look.time, **_beginning(look)) if grows else None
    # With rare commits the first look alone is the reference: a second one comes a gap later, and its growth would raise it.
    began = look.time - spell.began <= limits.growing_need * 1000 and look.gap < RARE_GAP_S
    first = _beginning(look) if began and look.trend >= spell.reference else {}
    reference = first.get("reference", spell.reference)
    grown = spell.grown_s + (step_s(look, spell.last, limits) if grows else 0.0)
    after = replace(
        spell,
        last=look.time,
        reference=reference,
        extrapolated_s=first.get("extrapolated_s", spell.extrapolated_s),
        unsure_s=round(look.unsure_s, 1),
        grown_s=grown,
        grew_at=look.time if grows else spell.grew_at,
        commits=spell.commits + 1,
        records=spell.records + look.records,
        topics=_topics(spell.topics, look, began),
        older=_older(spell, look) if began else spell.older,
    )
    # Back to where it began: late by habit or on purpose, not later and later.
    fell = not began and look.trend <= reference and _was_back(known, spell, reference, limits)
    over = look.lateness < limits.over or look.drain < limits.drain_over
    # Not grown for as long as is evidence that it grows. Two gaps on top, or a member with rare commits would end its spell between two
    # of them.
    rests = look.time - after.grew_at > (limits.growing_need + 2 * look.gap) * 1000
    return None if fell or over or rests else after


def _topics(
    before: Mapping[str, tuple[float, float]], look: Look, began: bool
) -> dict[str, tuple[float, float]]:
    """Each topic's reference and its latest lateness, at least. One that the member did not hold when the spell began was on time then."""
    found = {}
    for topic, late in look.topics.items():
        then, _ = before.get(topic, (0.0, 0.0))
        least = late - look.unsure.get(topic, 0.0)
        found[topic] = round(max(then, late) if began else then, 1), round(least, 1)
    return found


def _older(spell: Spell, look: Look) -> dict[str, Older]:
    """How much of each topic's reference is older than the log ends that were known, after a look that may have raised it."""
    raised = {
        t: part for t, part in look.older.items() if look.topics[t] >= spell.topics.get(t, (0.0, 0.0))[0]
    }
    return {**spell.older, **raised}


def _was_back(known: MemberState, spell: Spell, reference: float, limits: LatenessLimits) -> bool:
    """Whether all looks of the stretch before this one, which came after the spell's first stretch, were back at its beginning."""
    if not known.lateness:
        return False
    stretch_ms = limits.growing_need * 1000
    last, _ = known.lateness[-1]
    # Like with like: the reference is the highest of a stretch. A member that is slow and fast by turns, or serves its partitions in turn,
    # swings from look to look and is not back in the trough.
    latest = [(time, late) for time, late in known.lateness if time >= last - stretch_ms]
    return latest[0][0] - spell.began > stretch_ms and all(late <= reference for _, late in latest)


def next_backlog(known: MemberState, look: Look, limits: LatenessLimits) -> Backlog | None:
    """The stretch in which the member is late; None where it is not."""
    before = known.backlog
    if look.lateness < limits.over or look.drain < limits.drain_over or (before is None and not look.late):
        return None
    if before is None:
        ramp = {"ramp_s": known.ramp_s, "ramp_records": known.ramp_records}
        falls = _falls({}, look, limits)
        return Backlog(look.time, look.time, look.trend, look.time, falls=falls, **ramp)  # type: ignore[arg-type]
    peak = look.trend >= before.most
    return replace(
        before,
        last=look.time,
        most=max(before.most, look.trend),
        most_at=look.time if peak else before.most_at,
        late_s=before.late_s + step_s(look, before.last, limits),
        commits=before.commits + 1,
        records=before.records + look.records,
        falls=_falls(before.falls, look, limits),
    )


def _falls(before: Mapping[str, Fall], look: Look, limits: LatenessLimits) -> dict[str, Fall]:
    now = look.topics or {"": look.trend}
    return {topic: next_fall(before.get(topic), late, look, limits) for topic, late in now.items()}


def next_fall(before: Fall | None, lateness: float, look: Look, limits: LatenessLimits) -> Fall:
    """The fall of a lateness (s) after a look. It is over once as much time as a drain must last has brought less than the least rise
    of a spell: what remains is constant, as a delay on purpose is after a pause."""
    ends_ms = (limits.draining_need + 2 * look.gap) * 1000
    if before is None or lateness >= before.most or look.time - before.least_at > ends_ms:
        return Fall(round(lateness, 1), look.time, round(lateness, 1), look.time)
    fell = lateness <= before.least - limits.rise
    return replace(before, least=round(lateness, 1), least_at=look.time) if fell else before
