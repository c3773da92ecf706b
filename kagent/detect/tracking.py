"""Advances what is remembered of a group: the clocks of standstill, capacity windows, spells of lateness. Pure: state in, state out.

Every clock advances only when a member has committed again, or when its peers have moved: nothing counts ticks, and the same
events in one batch or in thirty give the same clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect import capacity as capacities
from kagent.detect import evidence, pauses, standstill
from kagent.detect.finding import NO_PROGRESS
from kagent.detect.inflow import names_of
from kagent.detect.lateness import GAPS_KEPT
from kagent.detect.standstill import learned
from kagent.detect.state import Habit, JudgeState, MemberState, Standing, Window, WindowStart
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.measure import Flags, Longs
from kagent.policy import Policy

if TYPE_CHECKING:
    from kagent.detect.group_model import GroupModel
    from kagent.detect.observed_columns import ObservedColumns

REST_S = 60.0
"""A group none of whose partitions moves for a minute while records wait is at rest."""
SILENT_S, SILENT_GAPS = 30.0, 2
"""A member is checked for silence after this time, or this many of its gaps, without a move."""
FALLS_SHARE = 0.5
"""A member whose lateness rises by half of the time that passes falls behind."""
STOPPED = NO_PROGRESS | {Verdict.BLOCKED_BY_TRANSACTION}


def advance_standing(
    columns: ObservedColumns, state: JudgeState, as_of: int, first_commit: int, settle_s: float
) -> JudgeState:
    """The state with the clocks of partitions, members and the group that stand. ``first_commit``: of the group, ms."""
    group = standstill.ProgressColumns(
        columns.lags, columns.owner, columns.committed_at, columns.waiting_since, columns.relevant
    )
    rows = standstill.standing_rows(group).tolist()
    names = dict(zip(rows, names_of(columns.lags, rows), strict=True))
    clocks = standstill.advance(group, state.standing, names, columns.units.names, as_of)
    # Longer than a reassignment takes to settle it was given back, not handed over: a batch job ended, its members left.
    if as_of - state.assigned_at <= settle_s * 1000:
        clocks = standstill.between_holders(columns.lags, columns.units.owner, state.standing) | clocks
    habits = _ended_pauses(state, clocks, as_of)
    new = replace(state, standing=clocks, habits=habits, committers=columns.units.committers)
    return _advance_rest(columns, _advance_silence(columns, new), as_of, first_commit)


def _ended_pauses(state: JudgeState, clocks: Mapping[str, Standing], now: int) -> Mapping[str, Habit]:
    """What stood and moves again ended by itself, unless it had been reported."""
    habits = state.habits
    if _standstill_is_open(state):
        return habits
    for key, clock in state.standing.items():
        if key in clocks and clocks[key].since == clock.since:
            continue
        habits = learned(habits, "passed_over", clock.passed_over_s, now)
        habits = learned(habits, "idle", clock.idle_s, now)
    return habits


def _standstill_is_open(state: JudgeState) -> bool:
    """Whether a standstill has been reported: a person may have mended what ends now, so it is no habit of the group."""
    return state.incident is not None and state.incident.verdict in STOPPED


def moved_at(columns: ObservedColumns) -> Longs:
    """When a partition of each member last made progress, ms."""
    out = np.zeros(columns.members, np.int64)
    held = columns.owner >= 0
    np.maximum.at(out, columns.owner[held], columns.lags.moved[held])
    return out


def waits_since(columns: ObservedColumns) -> Longs:
    """Since when each member has had something unread and not moved, ms; 0 where it has nothing unread."""
    # The greatest integer stands for "nothing unread", so that np.minimum.at can find the least.
    oldest = np.full(columns.members, np.iinfo(np.int64).max)
    held = (columns.owner >= 0) & (columns.waiting_since > 0)
    np.minimum.at(oldest, columns.owner[held], columns.waiting_since[held])
    return np.where(oldest < np.iinfo(np.int64).max, np.maximum(oldest, moved_at(columns)), 0)


def _advance_silence(columns: ObservedColumns, state: JudgeState) -> JudgeState:
    # Without a second member nothing tells a hang from a group that sleeps.
    if columns.members < 2:
        return state
    moved = moved_at(columns)
    members = {**state.members, **_silences(columns, state.members, moved)}
    return replace(state, members=members, habits=_ended_silences(state, members, int(moved.max())))


def _silences(
    columns: ObservedColumns, before: Mapping[str, MemberState], moved: Longs
) -> dict[str, MemberState]:
    """Those members whose clock of silence runs on or ends."""
    since, members = waits_since(columns), dict[str, MemberState]()
    # The latest move of any other member is the group's latest, or the second latest for the member that made that one.
    first, second = np.sort(moved)[-1], np.sort(moved)[-2]
    for at, name in enumerate(columns.units.names):
        others = int(second if moved[at] == first else first)
        known = before.get(name, MemberState())
        quiet_s = (others - int(since[at])) / 1000
        if since[at] <= 0 or quiet_s < max(SILENT_S, SILENT_GAPS * columns.gap[at]):
            if known.silent_s:
                members[name] = replace(known, silent_s=0.0, silent_seen=0)
            continue
        # After a sleep of the whole group, the first that wakes would otherwise make all others silent for the length of the sleep.
        cap = max(REST_S, 3 * float(columns.gap.max()))
        length = standstill.silence(known.silent_s, known.silent_seen, others, int(since[at]), cap)
        members[name] = replace(known, silent_s=length, silent_seen=others)
    return members


def _ended_silences(state: JudgeState, members: Mapping[str, MemberState], now: int) -> Mapping[str, Habit]:
    habits = state.habits
    if _standstill_is_open(state):
        return habits
    for name, known in state.members.items():
        if members[name].silent_s < known.silent_s:
            habits = learned(habits, "silent", known.silent_s, now)
    return habits


def _advance_rest(columns: ObservedColumns, state: JudgeState, as_of: int, first_commit: int) -> JudgeState:
    """The whole group: how long it has been at rest, or since when it has gone on."""
    waits = waits_since(columns)
    began = int(waits[waits > 0].min(initial=np.iinfo(np.int64).max))
    last = int(columns.lags.moved[columns.relevant].max(initial=0))
    rest = (as_of - max(began, last)) / 1000 if (waits > 0).any() else 0.0
    going = state.going_since or first_commit
    if rest >= REST_S:
        return replace(state, at_rest_s=rest, going_since=going)
    if not state.at_rest_s:
        return state if going == state.going_since else replace(state, going_since=going)
    ended_by_itself = not _standstill_is_open(state)
    habits = learned(state.habits, "rest", state.at_rest_s, as_of) if ended_by_itself else state.habits
    return replace(state, at_rest_s=0.0, going_since=last, habits=habits)


def tracked(columns: ObservedColumns, state: JudgeState, excluded: Flags, idle: float) -> list[int]:
    """Codes of the members that have something to do, or whose clocks run."""
    held = (columns.owner >= 0) & ~excluded
    waits = np.bincount(columns.owner[held], columns.backlog[held], columns.members)
    flow = np.median(columns.rates, axis=0)
    comes = np.bincount(columns.owner[held], flow[held], columns.members)
    busy = waits > idle * comes
    for at, name in enumerate(columns.units.names):
        known = state.members.get(name)
        # An open window is followed to its end even if the member has caught up meanwhile.
        if known is not None and (known.running or known.mark is not None):
            busy[at] = True
    return np.flatnonzero(busy).tolist()


def advance_windows(
    columns: ObservedColumns,
    state: JudgeState,
    excluded: Flags,
    ends: Mapping[str, EndHistory],
    policy: Policy,
) -> JudgeState:
    """The state with what each tracked member committed since the last look, and with the capacity windows that closed."""
    state = pauses.learned(state, dict(zip(columns.units.names, columns.committed_at.tolist(), strict=True)))
    members = dict(state.members)
    for at in tracked(columns, state, excluded, evidence.idle_s(policy)):
        name = columns.units.names[at]
        known, now = members.get(name, MemberState()), int(columns.committed_at[at])
        if now > known.time:
            members[name] = _committed(columns, at, known, now, excluded, ends, policy.hold)
    return replace(state, members=members)


def _committed(
    columns: ObservedColumns,
    at: int,
    known: MemberState,
    now: int,
    excluded: Flags,
    ends: Mapping[str, EndHistory],
    hold: float,
) -> MemberState:
    rows = np.flatnonzero(columns.owner == at)
    keys = names_of(columns.lags, rows.tolist())
    done = dict(zip(keys, columns.lags.committed[rows].tolist(), strict=True))
    gaps = (*known.gaps, now - known.time)[-GAPS_KEPT:] if known.time else known.gaps
    new = replace(known, time=now, done=done, gaps=gaps)
    mark = known.mark
    # Another set of partitions: records that a former holder committed must not count as this member's speed.
    if mark is None or set(mark.committed) != set(done):
        return replace(new, mark=WindowStart(now, done))
    busy_s = _busy_s(columns, at, rows, mark.time, known.time, now, excluded, ends)
    if busy_s <= 0:
        return replace(new, mark=WindowStart(now, done))
    mark = replace(mark, busy_s=round(mark.busy_s + busy_s, 3))
    if (now - mark.time) / 1000 < capacities.window_length_s(float(columns.gap[at]), hold):
        return replace(new, mark=mark)
    window = Window(now, mark.busy_s, _records(columns, rows, keys, mark))
    windows = capacities.kept((*known.windows, window), now)
    return replace(new, windows=windows, mark=WindowStart(now, done))


def _busy_s(
    columns: ObservedColumns,
    at: int,
    rows: Longs,
    began: int,
    before: int,
    now: int,
    excluded: Flags,
    ends: Mapping[str, EndHistory],
) -> float:
    """For how long the member was certainly busy between two commits (ms), s; 0 if that is not certain. ``began``: when
    the window did, ms."""
    length, best = (now - before) / 1000, 0.0
    for row in rows.tolist():
        committed = int(columns.lags.committed[row])
        # Not served since the window began: it may be paused or stuck, and keeps nobody busy.
        if excluded[row] or columns.lags.moved[row] < began:
            continue
        history = ends[columns.lags.topics[columns.lags.topic[row]]]
        partition = columns.lags.partition[row : row + 1]
        end, _ = history.bracket(partition, np.array([before]))
        # The certificate: the log end at the first commit lies beyond what is committed at the second: a record waited throughout.
        if end[0] != UNKNOWN and end[0] > committed:
            return length
        oldest = int(columns.waiting_since[row])
        # Interval-censored: a record waited for at least half of the time (500 of its 1,000 ms a second), so the busy time lies
        # between that and the whole; the mean of both is taken. With rare commits few windows would count otherwise.
        if columns.gap[at] >= capacities.RARE_GAP_S and oldest and now - oldest >= length * 500:
            best = max(best, (length + (now - oldest) / 1000) / 2)
    return best


def _records(columns: ObservedColumns, rows: Longs, keys: list[str], mark: WindowStart) -> dict[str, int]:
    out: dict[str, int] = {}
    for row, key in zip(rows.tolist(), keys, strict=True):
        topic = columns.lags.topics[columns.lags.topic[row]]
        out[topic] = out.get(topic, 0) + max(0, int(columns.lags.committed[row]) - mark.committed[key])
    return {topic: count for topic, count in out.items() if count}


def advance_clocks(model: GroupModel, before: JudgeState) -> JudgeState:
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
