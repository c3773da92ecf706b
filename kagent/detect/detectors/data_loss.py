"""lost_data: retention deleted records before the group read them.

Holds where a committed offset lies below the log start and its member committed again since without moving past it, or is found to
stand (``stalled``, ``stuck_member``): who commits nothing reads nothing. Holds too where a commit leapt from below the log start to beyond it by more than
can have been read. A client that has fetched the records already commits beyond the log start soon: it lost nothing, and
until then it does not stand for longer than it may. Reported for an hour after the last loss, however small the lag is by then.
Severity: page. Confirmed once: what is lost does not come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.commit_gaps import LONGEST_GAP_S, USUAL_GAP_S
from kagent.detect.facts import NAMED, holders, named, worst
from kagent.detect.finding import ROWS, Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND, NEVER
from kagent.detect.state import JudgeState
from kagent.lag.chance import NOT_CHANCE, TAIL
from kagent.lag.log_ends import PAUSE
from kagent.lag.observation import Observation
from kagent.lag.time_units import SECOND_MS
from kagent.policy import Policy
from kagent.text import counted, partition_name, shown

VERDICT = Verdict.LOST_DATA
SPREAD = False
URGENCY = Urgency.LOSS
MEMBERS_MAY_HELP = True
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.STABLE
REMEDIES = (Remedy.RESTART_SILENT, Remedy.KEEP_LONGER)
REPORTED_MS = round(LONGEST_GAP_S * SECOND_MS)
"""Nothing of a loss is to be seen once the group has read on. It is reported for an hour all the same: by then every group has committed
again, and would show another one."""


def remembered(seen: Observation, state: JudgeState, policy: Policy) -> int:
    """A sign: a loss is still reported, or a partition was near its log start when it was last looked at closely."""
    return seen.now if state.lost or state.trail else NEVER


SIGNS = (*BEHIND, remembered)


def find(model: GroupModel, stuck: Set[int] = frozenset()) -> Iterator[Finding]:
    """The partitions that lost records lately. ``stuck``: codes of the members that are found to be silent: theirs will lose more."""
    count = np.zeros(len(model.lags), np.int64)
    place = model.lags.places
    first = model.now
    for key, (time, records) in model.state.lost.items():
        if key in place:
            count[place[key]], first = records, min(first, time)
    rows = worst(model.relevant & (count > model.policy.allowed_lag), count)
    if rows:
        lost = [int(count[at]) for at in rows]
        evidence = {"lost": sum(lost), "partitions": named(model, rows), "lost_by_partition": lost[:NAMED]}
        # Who will lose more comes first.
        members = tuple(sorted(holders(model, rows), key=lambda member: member not in stuck))
        silent = [model.names[member] for member in members if member in stuck]
        if silent:
            evidence["silent_members"] = silent[:NAMED]
        behind = float(model.age[0][list(rows)].max())
        yield Finding(VERDICT, members, rows, behind, evidence, since=first)


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    places = [partition_name(*place) for place in finding.evidence["partitions"]]
    left = len(finding.rows) - 3
    more = f" and {counted(left, 'more partition')}" if left > 0 else ""
    lost = f"Retention deleted {finding.evidence['lost']:,} records of {', '.join(places[:3])}{more} before they were read"
    silent = finding.evidence.get("silent_members", [])
    goes_on = f"; {shown(silent[0])} makes no progress, so more will follow" if silent else ""
    return f"{lost}{goes_on}."


def learn(model: GroupModel, stand: Set[int]) -> JudgeState:
    """The state after looking for losses: what was below the log start at the last evaluation, and what is lost for certain.
    ``stand``: places of the partitions that are found to stand."""
    state, lags = model.state, model.lags
    behind = model.relevant & ((lags.lost > 0) | ((model.columns.backlog > 0) & (lags.start > 0)))
    if not behind.any() and not state.trail and not state.lost:
        return state
    # The furthest below, or the nearest above, its log start first: these are the next to lose records.
    rows = np.flatnonzero(behind)[np.argsort((lags.committed - lags.start)[behind], kind="stable")][:ROWS]
    trail = dict(zip(lags.keys(rows.tolist()), lags.committed[rows].tolist(), strict=True))
    trail |= _undecided(model, state.trail)
    lost = {key: (at, n) for key, (at, n) in state.lost.items() if model.now - at < REPORTED_MS}
    place = lags.places
    for key, before in state.trail.items():
        records = _lost(model, place[key], before, stand) if key in place else 0
        if records > model.policy.allowed_lag and records > lost.get(key, (0, 0))[1]:
            lost[key] = (model.now, records)
    if lost == dict(state.lost) and trail == dict(state.trail):
        return state
    return replace(state, lost=lost, trail=trail)


def _undecided(model: GroupModel, trail: Mapping[str, int]) -> dict[str, int]:
    """Of the offsets at the last evaluation those that are kept: of partitions whose commit has leapt since, while no log start is known that is
    younger than the commit."""
    lags, kept = model.lags, dict[str, int]()
    for key, before in trail.items():
        at = lags.places.get(key)
        if at is None or int(lags.committed[at]) - before <= _can_read(model, at):
            continue
        if model.seen.ends[lags.topics[int(lags.topic[at])]].last <= int(lags.time[at]):
            kept[key] = before
    return kept


def _lost(model: GroupModel, at: int, before: int, stand: Set[int]) -> int:
    """Records that are lost for certain at this partition, whose committed offset was ``before`` at the last evaluation."""
    lags = model.lags
    start, committed = int(lags.start[at]), int(lags.committed[at])
    gone = start - before
    if gone <= 0:
        return 0
    owner = int(model.owner[at])
    if committed < start:
        again = owner >= 0 and int(model.columns.committed_at[owner]) > int(lags.time[at])
        return start - committed if again or lags.time[at] > lags.moved[at] or at in stand else 0
    return gone if committed - before > _can_read(model, at) else 0


def _can_read(model: GroupModel, at: int) -> float:
    """Records that may have been read since the commit before."""
    owner = int(model.owner[at])
    # How long the leap may have taken; without a member no gap is known. Commits come in polls: a shorter time tells of no rate.
    since_s = max(PAUSE / 1000, float(model.columns.gap[owner]) * NOT_CHANCE if owner >= 0 else USUAL_GAP_S)
    speed = float(model.capacity.rate.high[owner]) if owner >= 0 else 0.0
    # A leap of more than twice what the member can have read since its last commit is a reset.
    return TAIL * since_s * max(speed, float(model.lags.inflow[at]))
