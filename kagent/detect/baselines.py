"""Who is in the group, since when, and who came and went: what is learned from membership. Pure: state in, state out, the same
object where nothing was learned."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from operator import itemgetter
from typing import Any

from kagent.detect.standstill import reassigned
from kagent.detect.state import JudgeState, MemberState, Standing
from kagent.lag.bound import Bound
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation
from kagent.lag.time_units import HOUR_MS
from kagent.policy import Policy

MOST_NAMES: Bound = 500
"""Members of which is remembered when they came and went: the row of a larger group would be too large for a message."""

MOST_GENERATIONS: Bound = 32
"""Generations whose time is remembered."""


def update_membership(state: JudgeState, seen: Observation, policy: Policy) -> JudgeState:
    """The state after a look at who is in the group."""
    roster = seen.roster
    if roster is None or roster.type == "simple":
        return state
    new = _presence(state, roster, seen.now)
    if roster.generation != state.generation or roster.digest != state.digest:
        new |= _changed(state, roster, seen, policy)
    held = roster.holdings
    if held != state.assignment:
        new |= _reassigned(replace(state, **new) if new else state, roster, held, seen.now)
    return replace(state, **new) if new else state


def _presence(state: JudgeState, roster: Roster, now: int) -> dict[str, Any]:
    """When it was last seen with members, and for how long it usually has none."""
    if not roster.members:
        if not state.empty_since and state.members_at:
            return {"empty_since": max(now, roster.last_change)}
        return {}
    if state.empty_since:
        away = max(now - state.empty_since, state.longest_absence)
        return {"empty_since": 0, "members_at": now, "returned_at": now, "longest_absence": away}
    return {"members_at": now} if now - state.members_at > HOUR_MS else {}


def _changed(state: JudgeState, roster: Roster, seen: Observation, policy: Policy) -> dict[str, Any]:
    now, first = seen.now, state.generation is None and not state.digest
    since = now - round(policy.storm_window * 1000)
    # Whether another rebalance came within the window.
    goes_on = bool(state.generations) and state.generations[-1][0] >= since
    names = tuple(sorted(roster.names))[:MOST_NAMES]
    processes = _processes(roster)
    again = _started_again(state, roster.names, processes)
    returns = _comings(state.comings if goes_on else {}, set(state.names), names, again, now, since)
    return {
        "generation": roster.generation,
        "digest": roster.digest,
        # At first sight the record's own time, or a group that has been stable for days would settle again at each start of kagent.
        "generation_at": min(roster.last_change, now) if first and roster.last_change else now,
        **_restless(state, now, goes_on or first, policy),
        # Being seen for the first time is no rebalance.
        "generations": state.generations if first else _generations(state, roster, now, since),
        "names": names,
        "processes": processes,
        "comings": returns if state.names or goes_on else {},
        "standing": _after_restarts(_after_departures(state, names), again),
        "members": _without_windows(state.members, again),
    }


def _generations(state: JudgeState, roster: Roster, now: int, since: int) -> tuple[tuple[int, int], ...]:
    """When the rebalances since then (ms) came, this one the last, and the one before them: generations are counted from its number (see
    ``generations_within``)."""
    before = bisect_left(state.generations, since, key=itemgetter(0)) - 1
    # Where a generation is unknown, each change counts as one.
    number = roster.generation if roster.generation is not None else (state.generation or 0) + 1
    return (*state.generations[max(0, before) :], (now, number))[-MOST_GENERATIONS:]


def _processes(roster: Roster) -> tuple[str, ...]:
    """A short hash of each member's id, in the order of the names."""
    ids = (hashlib.sha256(m.member_id.encode(errors="surrogatepass")).hexdigest()[:8] for m in roster.members)
    return tuple(ids)[:MOST_NAMES]


def _started_again(state: JudgeState, names: Sequence[str], processes: Sequence[str]) -> frozenset[str]:
    """The members that are there under their names as before, and by other processes."""
    # A process that is killed leaves when its session ends, and by then the next one has joined: no generation is without its name.
    known, before = set(state.processes), set(state.names)
    # Where none is gone, a newcomer has taken the number of another one with its name.
    if known <= set(processes):
        return frozenset()
    pairs = zip(names, processes, strict=False)  # of the largest groups the first MOST_NAMES
    return frozenset(name for name, process in pairs if name in before and process not in known)


def _without_windows(members: Mapping[str, MemberState], again: frozenset[str]) -> Mapping[str, MemberState]:
    """The members; those that were started again begin a new window: the time in which no process ran is none of work."""
    if not again:
        return members
    return {name: replace(m, mark=None) if name in again else m for name, m in members.items()}


def _after_restarts(standing: Mapping[str, Standing], again: frozenset[str]) -> Mapping[str, Standing]:
    """The clocks of partitions that stand: another process of the holder has had no turn yet."""
    if not again:
        return standing
    return {key: reassigned(clock) if clock.holder in again else clock for key, clock in standing.items()}


def _after_departures(state: JudgeState, names: tuple[str, ...]) -> Mapping[str, Standing]:
    """The clocks of partitions that stand, with who has left without holding them."""
    gone = set(state.names) - set(names)
    if not gone:
        return state.standing
    return {
        key: replace(clock, others_left=clock.others_left + len(gone - {clock.holder}))
        for key, clock in state.standing.items()
    }


def _restless(state: JudgeState, now: int, goes_on: bool, policy: Policy) -> dict[str, Any]:
    """Since when and from which generation the group has been rebalancing, and for how long without a pause."""
    if not goes_on:
        return {"restless_since": now, "restless_from": state.generation, "restless_s": 0.0}
    gap_s = (now - state.generations[-1][0]) / 1000 if state.generations else 0.0
    # Slower than this, rebalances are no storm: the next one begins another deployment, which has its own time.
    pace_s = policy.storm_window / policy.storm_generations
    return {"restless_s": state.restless_s + gap_s if gap_s <= pace_s else 0.0}


def _comings(
    known: Mapping[str, tuple[int, ...]],
    before: Set[str],
    names: tuple[str, ...],
    again: frozenset[str],
    now: int,
    since: int,
) -> dict[str, tuple[int, ...]]:
    """When each member came back after leaving, within the storm window. Coming for the first time is no return. ``again``: those whose
    process was started again."""
    comings = {name: tuple(time for time in times if time >= since) for name, times in known.items()}
    for name in set(names) - before:
        comings[name] = (*comings[name], now) if name in comings else ()
    for name in again:
        comings[name] = (*comings.get(name, ()), now)
    for name in before - set(names):
        comings.setdefault(name, ())
    return dict(sorted(comings.items())[:MOST_NAMES])


def _reassigned(state: JudgeState, roster: Roster, held: str, now: int) -> dict[str, Any]:
    """Another assignment ends the spells: what follows is another assignment's work. Speeds are the members' own and stay."""
    first = not state.assignment
    members = {
        name: MemberState(gaps=known.gaps, windows=known.windows)
        for name, known in state.members.items()
        if known.windows or known.gaps
    }
    changed_at = min(roster.last_change, now) if roster.last_change else now
    # Only members with known gaps: a pause is measured as the excess over the usual gap.
    stopping = {n: m.time for n, m in state.members.items() if 0 < m.time < changed_at and m.gaps}
    return {
        "stopping": {} if first else dict(sorted(stopping.items())[:MOST_NAMES]),
        "stopped_at": changed_at,
        "assignment": held,
        "assigned_at": changed_at if first else now,
        "members": state.members if first else members,
        "standing": state.standing if first else {key: reassigned(c) for key, c in state.standing.items()},
    }
