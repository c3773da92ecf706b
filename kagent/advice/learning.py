"""What a state learns from one look: changes of membership, busy intervals, and how long standstills last that end by
themselves. Pure: state in, state out, the same object where nothing was learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kagent.advice.look import RISING, UNEVEN, UNEVEN_LEAST, Look
from kagent.advice.rates import MIN_INTERVAL, Busy
from kagent.advice.state import JudgeState, Pace
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy

MOST_NAMES = 500
MOST_STOPS = 100
STOP_WORTH = 60_000
EVEN = 0.8
"""So great a share of a topic's partitions that can tell must be equally late."""
LEAST_LATE = 10.0
TELLING = 5.0
"""Records that must have come in the time by which a topic is late, for a partition to tell."""
DRIFT, DRIFT_GUESSED, LEAST_DRIFT = 0.04, 0.07, 6.0
"""A lateness that differs by less than this share of it, or so many seconds, is the same."""
MOST_RISE = 2
"""A single look counts for so many rises at most: somebody may have set another delay."""
PACED_FOR, PACED_FOR_AFTER_RISES = 600_000, 6_000_000
LOSS_TOLD = 3_600_000
SINCE_LAST = 60.0
"""Seconds of inflow that may well have been read between two looks."""


def membership(state: JudgeState, seen: Observation, policy: Policy) -> JudgeState:
    """The state after a look at who is in the group."""
    roster = seen.roster
    if roster is None or roster.type == "simple":
        return state
    new = _presence(state, roster, seen.now)
    if roster.generation != state.generation or roster.digest != state.digest:
        new |= _changed(state, roster, seen, policy)
    return replace(state, **new) if new else state


def _presence(state: JudgeState, roster: Roster, now: int) -> dict[str, Any]:
    """When it was last seen with members, and for how long it usually has none."""
    if not roster.members:
        if not state.empty_since and state.members_at:
            return {"empty_since": max(now, roster.last_change)}
        return {}
    if state.empty_since:
        away = max(now - state.empty_since, state.longest_absence)
        return {"empty_since": 0, "members_at": now, "longest_absence": away}
    return {"members_at": now} if now - state.members_at > 3_600_000 else {}


def _changed(state: JudgeState, roster: Roster, seen: Observation, policy: Policy) -> dict[str, Any]:
    now, first = seen.now, state.generation is None and not state.digest
    since = now - policy.storm_window * 1000
    kept = tuple(g for g in state.generations if g[0] >= since)
    older = (
        state.generations[len(state.generations) - len(kept) - 1 :][:1]
        if len(kept) < len(state.generations)
        else ()
    )
    generation = roster.generation if roster.generation is not None else (state.generation or 0) + 1
    names = tuple(sorted(roster.names))[:MOST_NAMES]
    comings = dict(state.comings) if kept else {}
    if state.names or kept:
        for name in set(names) - set(state.names):
            comings[name] = comings.get(name, 0) + (1 if name in comings or not first else 0)
    else:
        comings = {}
    for name in set(state.names) - set(names):
        comings.setdefault(name, 0)
    at = min(roster.last_change, now) if first and roster.last_change else now
    return {
        "generation": roster.generation,
        "digest": roster.digest,
        "generation_at": at,
        "restless_since": now if not kept and not first else state.restless_since,
        "generations": state.generations if first else (*older, *kept, (now, generation))[-32:],
        "names": names,
        "comings": dict(sorted(comings.items())[:MOST_NAMES]),
        "marks": {},
    }


def lessons(look: Look) -> JudgeState:
    """The state after what a look with a backlog teaches."""
    state = _pace(look, look.state)
    look = look.after(state)
    return _losses(look, _stops(look, _busy(look, look.state)))


def _busy(look: Look, state: JudgeState) -> JudgeState:
    if not look.by_member or not look.roster or look.roster.state != "Stable":
        return replace(state, marks={}) if state.marks else state
    lags, names = look.lags, look.names
    backlog = lags.counted & (lags.low > 0) & lags.fresh & ~look.aside
    marks: dict[str, tuple[int, float, Mapping[str, int]]] = {}
    busy = dict(state.busy)
    for member in np.unique(lags.owner[backlog]).tolist():
        name, mine = names[member], lags.owner == member
        at = int(lags.time[mine & backlog].max())
        done = {
            t: int(lags.committed[mine & (lags.topic == code) & lags.counted].sum())
            for code, t in enumerate(lags.topics)
            if (mine & (lags.topic == code) & lags.counted).any()
        }
        lag = float(lags.low[mine & backlog].sum())
        began = state.marks.get(name)
        cadence = float(lags.cadence[mine & backlog].max()) / 1000
        seconds = (at - began[0]) / 1000 if began else 0.0
        if began is None or set(began[2]) != set(done) or seconds < 0:
            marks[name] = (at, lag, done)
        elif seconds < max(MIN_INTERVAL, 2 * cadence):
            marks[name] = began
        else:
            records = {t: float(max(0, n - began[2][t])) for t, n in done.items()}
            if sum(records.values()) > 0:
                busy[name] = busy.get(name, Busy()).add(seconds, records)
            marks[name] = (at, lag, done)
    if marks == state.marks and busy == state.busy:
        return state
    return replace(state, marks=marks, busy=state.busy if busy == state.busy else _bounded(busy))


def _bounded(busy: dict[str, Busy]) -> dict[str, Busy]:
    """Names of members that are gone are forgotten once there are too many, the least known first."""
    if len(busy) <= 2 * MOST_NAMES:
        return busy
    best = sorted(busy, key=lambda n: -busy[n].intervals)[:MOST_NAMES]
    return {name: busy[name] for name in sorted(best)}


def _pace(look: Look, state: JudgeState) -> JudgeState:
    """Topics all of whose partitions are equally late, and stay so: they are read with a delay, on purpose.

    What counts is how late they are when they commit, and the commits' own time: a look in between sees them later by the
    commit's age, and a group that does not commit at all is not late on purpose.
    """
    lags = look.lags
    paces: dict[str, Pace] = {}
    for code in np.unique(lags.topic[look.late > 0]).tolist():
        mine = look.relevant & (lags.topic == code) & (lags.inflow > 0)
        usual = float(np.median(look.late[mine & (look.late > 0)])) if (mine & (look.late > 0)).any() else 0.0
        telling = mine & ((look.late > 0) | (lags.inflow * usual > TELLING + look.policy.allowed_lag))
        away = np.abs(look.late[telling] - usual)
        alike = away <= np.maximum(UNEVEN * usual, UNEVEN_LEAST) + 2 / lags.inflow[telling]
        if usual < LEAST_LATE or alike.mean() < EVEN:
            continue
        topic, at = lags.topics[code], int(lags.time[telling].max())
        share = DRIFT_GUESSED if look.guessed[telling].any() else DRIFT
        cadence = float(lags.cadence[telling].max())
        paces[topic] = _paced(state.paces.get(topic), usual, share, at, cadence)
    if paces == state.paces:
        return state
    settled = {t for t, pace in paces.items() if pace.settled}
    if settled - {t for t, pace in state.paces.items() if pace.settled}:
        # Who waits on purpose was not busy, though there was a backlog at both ends.
        state = replace(state, busy={}, marks={})
    return replace(state, paces=paces)


def _paced(known: Pace | None, usual: float, share: float, at: int, cadence: float) -> Pace:
    """A topic's pace after a look that finds all its partitions ``usual`` seconds late at ``at``; ``share``: of it that means
    nothing."""
    if known is None:
        return Pace(at, round(usual, 1))
    drift = usual - known.age
    limit = max(LEAST_DRIFT, share * known.age)
    if abs(drift) > limit:
        rises = known.rises + min(MOST_RISE, int(drift / limit)) if drift > 0 else 0
        return Pace(at, round(usual, 1), rises)
    patience = PACED_FOR if known.rises < RISING else PACED_FOR_AFTER_RISES
    if not known.settled and at - known.began >= max(patience, 2 * cadence):
        return replace(known, settled=True, rises=known.rises if known.rises < RISING else 0)
    return known


def _losses(look: Look, state: JudgeState) -> JudgeState:
    """A commit that leapt from below the log start to beyond it: a reader that was reset past what retention took."""
    lags = look.lags
    lost = {place: (at, n) for place, (at, n) in state.lost.items() if look.now - at < LOSS_TOLD}
    for place, before in state.trail.items():
        topic, _, number = place.rpartition("/")
        if topic not in lags.topics:
            continue
        at = np.flatnonzero((lags.topic == lags.topics.index(topic)) & (lags.partition == int(number)))
        if len(at) and before < lags.start[at[0]] <= lags.committed[at[0]]:
            gone = int(lags.start[at[0]]) - before
            pace = float(lags.inflow[at[0]]) * SINCE_LAST
            if gone > pace:
                lost[place] = (look.now, gone)
    behind = look.relevant & (lags.low > 0) & (lags.start > 0)
    order = np.flatnonzero(behind)[np.argsort((lags.committed - lags.start)[behind], kind="stable")]
    trail = {
        f"{lags.name(i)[0]}/{int(lags.partition[i])}": int(lags.committed[i])
        for i in order[:MOST_STOPS].tolist()
    }
    if lost == state.lost and trail == state.trail:
        return state
    return replace(state, lost=lost, trail=trail)


def _stops(look: Look, state: JudgeState) -> JudgeState:
    """Standstills that end by themselves are the group's habit: a paused topic, a batch job that keeps its members."""
    lags = look.lags
    long = look.waiting > np.maximum(STOP_WORTH, 2 * lags.cadence)
    stopped: dict[str, int] = {}
    for at in np.flatnonzero(long).tolist()[:MOST_STOPS]:
        stopped[f"{lags.name(at)[0]}/{int(lags.partition[at])}"] = int(look.waiting[at])
    stops, resumed = dict(state.stops), dict(state.resumed)
    for place, waited in state.stopped.items():
        topic = place.rpartition("/")[0]
        if place not in stopped:
            stops[topic] = max(waited, stops.get(topic, 0))
            resumed[topic] = look.now
    if stopped == state.stopped and stops == state.stops:
        return state
    return replace(state, stopped=stopped, stops=stops, resumed=resumed)
