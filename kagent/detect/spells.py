"""Advances the spells of members that are late, once the model says how late each is. Pure: state in, state out.

A spell advances only when its member has committed again: nothing counts ticks, and the same events in one batch or in thirty
give the same spells. What makes a spell is in ``kagent.detect.evidence``.
"""

from __future__ import annotations

from dataclasses import replace

from kagent.detect import evidence
from kagent.detect.group_model import GroupModel
from kagent.detect.habits import learned
from kagent.detect.state import JudgeState, MemberState

FALLS_SHARE = 0.5
"""A member whose lateness rises by half of the time that passes falls behind."""


def advance(model: GroupModel, before: JudgeState) -> JudgeState:
    """The state with the spells of members that have committed since ``before``. No spell runs right after a rebalance: lags are
    the pause's then, not the assignment's."""
    state, limits = model.state, evidence.LatenessLimits.of(model.policy)
    if model.as_of - state.assigned_at < model.policy.settle * 1000:
        return state
    members, habits = dict(state.members), state.habits
    for at, name in enumerate(model.names):
        known = members.get(name)
        if known is None:
            continue
        earlier = before.members.get(name, MemberState())
        if known.time > earlier.time:
            known = _after_look(model, at, known, earlier, limits)
        # Learned only once the member is on time again, or as late as before: spells that restart during an illness are no habit.
        if known.longest_spell_s and (known.on_time_at == known.time or _fell_back(known, earlier)):
            habits = learned(habits, evidence.SPELL, known.longest_spell_s, known.time)
            known = replace(known, longest_spell_s=0.0)
        members[name] = _slim(known, model.work[at] <= evidence.idle_s(model.policy) * model.inflow.mid[at])
    # What equals the default is left out: rows of healthy groups stay small, and equal states are not written again.
    return replace(state, members={n: m for n, m in members.items() if m != MemberState()}, habits=habits)


def _fell_back(known: MemberState, earlier: MemberState) -> bool:
    """Whether a spell ended since the member is as late again as it was when the spell began: late on purpose, or by habit."""
    spell = earlier.spell
    return spell is not None and known.spell is None and known.lateness[-1][1] <= spell.reference


def _after_look(
    model: GroupModel, at: int, known: MemberState, earlier: MemberState, limits: evidence.LatenessLimits
) -> MemberState:
    """The member with its spell, backlog clock and ramp advanced by its newest commit."""
    look = _look(model, at, known, earlier, limits)
    spell = evidence.next_spell(known, look, limits)
    longest = max(known.longest_spell_s, known.spell.grown_s if known.spell else 0.0)
    on_time = known.time if look.lateness < limits.on_time else known.on_time_at
    ramp_s, ramp_records = _ramp(look, known, earlier, on_time == known.time)
    known = replace(
        known, ramp_s=ramp_s, ramp_records=ramp_records, on_time_at=on_time, longest_spell_s=longest
    )
    backlog = evidence.next_backlog(known, look, limits)
    return replace(known, spell=spell, backlog=backlog, lateness=evidence.history(known, look, limits))


def _look(
    model: GroupModel, at: int, known: MemberState, earlier: MemberState, limits: evidence.LatenessLimits
) -> evidence.Look:
    lateness, drain = float(model.lateness[at]), float(model.drain_low[at])
    records = sum(max(0, n - earlier.done.get(key, n)) for key, n in known.done.items())
    late = lateness >= limits.late and drain > limits.drain
    speed = float(model.capacity.rate.mid[at]) if model.capacity.measured[at] else 0.0
    worked_s = records / speed if speed else 0.0
    return evidence.Look(
        time=known.time,
        lateness=lateness,
        late=late,
        drain=drain,
        gap=float(model.columns.gap[at]),
        records=records,
        trend=float(model.lateness_at_commit[at]),
        worked_s=worked_s,
    )


def _ramp(look: evidence.Look, known: MemberState, earlier: MemberState, on_time: bool) -> tuple[float, int]:
    """How long the member has fallen behind since it was on time, s, and what it did meanwhile, until it was late."""
    if known.backlog is not None or not earlier.time:
        return known.ramp_s, known.ramp_records
    seconds = (look.time - earlier.time) / 1000
    fell = look.trend - (earlier.lateness[-1][1] if earlier.lateness else 0.0)
    # On time and not falling behind: the ramp starts afresh.
    before_s, before = (
        (0.0, 0) if on_time and fell < FALLS_SHARE * seconds else (known.ramp_s, known.ramp_records)
    )
    if fell < FALLS_SHARE * seconds:
        return before_s, before
    return before_s + seconds, before + look.records


def _slim(known: MemberState, idle: bool) -> MemberState:
    """A member that is on time and idle is remembered by its speed and habits alone."""
    if not idle or known.running:
        return known
    return MemberState(
        gaps=known.gaps, windows=known.windows, on_time_at=known.on_time_at if known.windows else 0
    )
