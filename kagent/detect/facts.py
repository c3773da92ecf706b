"""What several detectors ask of a group: the worst places, names for evidence, where a transaction is open."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.detect.group_model import GroupModel
from kagent.detect.lateness import backlog
from kagent.lag.measure import Flags, Floats, Longs
from kagent.lag.membership import NOBODY

# Bounds of a message: places listed in its evidence, and places that a finding keeps.
NAMED = 20
ROWS = 200


def worst(which: Flags, by: Floats | npt.NDArray[np.int64], limit: int = ROWS) -> tuple[int, ...]:
    """The places where it holds, greatest first."""
    rows = np.flatnonzero(which)
    return tuple(rows[np.argsort(-by[rows], kind="stable")][:limit].tolist())


def named(model: GroupModel, rows: tuple[int, ...]) -> list[list[Any]]:
    """Topic and partition of the first of these places."""
    return [list(model.lags.name(at)) for at in rows[:NAMED]]


def holders(model: GroupModel, rows: tuple[int, ...]) -> tuple[int, ...]:
    """Codes of the members that hold these partitions, each once."""
    return tuple(dict.fromkeys(int(model.owner[at]) for at in rows if model.owner[at] != NOBODY))


def at_stable(model: GroupModel) -> Flags:
    """Partitions whose commit stands at the last stable offset while the log goes on beyond it: a transaction is open."""
    lags, allowed = model.lags, model.policy.allowed_lag
    # UNKNOWN (-1) where a sample came without last stable offsets, or the partition's leader did not answer.
    open_ = (lags.stable >= 0) & (lags.stable < lags.end - allowed)
    return np.asarray(open_ & (lags.committed >= lags.stable - allowed))


def cadence_s(model: GroupModel, topic: str) -> float | None:
    """The usual time between two commits of a partition of the topic; None until three such times have been seen."""
    row = model.seen.commits.get(topic)
    # Not by the number of commits: four members that commit once an hour make four within the first.
    return row.cadence / 1000 if row is not None and row.cadence is not None else None


ROLL_S = 120.0
"""How long a rolling restart takes a member, generously."""


def may_be_deployment(model: GroupModel) -> bool:
    """Whether the latest rebalances may be a rolling restart or a change of scale: every member comes and goes in turn, and it has
    not lasted beyond `deploy_silence` and two minutes a member."""
    state = model.state
    patience = max(model.policy.deploy_silence, ROLL_S * len(state.names)) * 1000
    # To the latest change, not to now: two deployments within a quarter of an hour are over when the second is.
    lasted = max((time for time, _ in state.generations), default=0) - state.restless_since
    return not come_and_go(model) and lasted < patience


def come_and_go(model: GroupModel) -> dict[str, int]:
    """The members that left and came back out of turn within the storm window, and how often: twice more than another member, or
    three times. A deployment that is taken back brings everybody back twice."""
    state = model.state
    least = min((state.comings.get(name, 0) for name in state.names), default=0)
    return {name: times for name, times in state.comings.items() if times >= min(least + 2, 3)}


def crashes_in_turn(model: GroupModel) -> bool:
    """Whether the latest rebalances show members that crash, not a deployment: some come and go while others stay."""
    stayed = set(model.state.names) - model.state.comings.keys()
    return bool(come_and_go(model) or (stayed and not may_be_deployment(model)))


GAPS = 3
FETCH_FACTOR, FETCH_LONGEST_S = 1.5, 3600.0


def fetch_s(model: GroupModel, rows: Longs, at: int) -> float:
    """How long a client without a bound on its poll may commit nothing: what it had before it when it fetched last, within a
    commit gap of its last move, at its speed, half as much again. What came since is not in that fetch, though some clients go on
    committing where they are. No longer than three gaps of members that commit on the way through a backlog."""
    speed = float(max(model.capacity.rate.mid[at], model.inflow.mid[at]))
    whole = FETCH_FACTOR * waited(model, rows) / speed if speed > 0 else FETCH_LONGEST_S
    return min(whole, GAPS * gap_behind_s(model), FETCH_LONGEST_S)


def gap_behind_s(model: GroupModel) -> float:
    """The longest of the latest gaps between commits, s, of those members that commit while records wait that are older than
    three such gaps; inf if there are none. All members run the same client."""
    found = [gap for at, gap in _longest_gaps_s(model) if _behind_ms(model, at) > GAPS * 1000 * gap]
    return max(found, default=math.inf)


def _longest_gaps_s(model: GroupModel) -> Iterator[tuple[int, float]]:
    for at in range(len(model.names)):
        gaps = model.member_state(at).gaps
        if len(gaps) >= GAPS:
            yield at, max(gaps) / 1000


def _behind_ms(model: GroupModel, at: int) -> int:
    """How old the oldest unread record of a partition was when the member committed progress there last, at most, ms."""
    since = model.columns.waiting_since
    rows = (model.owner == at) & (since > 0)
    return int((model.lags.moved[rows] - since[rows]).max(initial=0))


def waited(model: GroupModel, rows: Longs) -> float:
    """Work that waited at most a commit gap after one of these partitions moved last: then the next fetch had begun."""
    owners = model.owner[rows]
    gap_ms = round(1000 * float(model.columns.gap[owners[owners >= 0]].max(initial=0.0)))
    last = np.full(len(model.lags), int(model.lags.moved[rows].max(initial=0)) + gap_ms, np.int64)
    # The upper bound of the backlog: what may have been in the fetch.
    _, waits = backlog(model.lags, model.seen.ends, last, model.policy.allowed_lag)
    return float((waits[rows] * model.cost[rows]).sum())
