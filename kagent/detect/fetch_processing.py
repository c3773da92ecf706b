"""How long a client may commit nothing because it still processes what it fetched."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kagent.detect.backlog import backlog
from kagent.detect.commit_gaps import LONGEST_GAP_S
from kagent.detect.group_model import GroupModel
from kagent.lag.chance import CLEARLY, NOT_CHANCE
from kagent.lag.measure import Longs


def fetch_s(model: GroupModel, rows: Longs, at: int) -> float:
    """How long a client without a bound on its poll may process one fetch and commit nothing meanwhile.

    The fetch holds at most what waited a commit gap after the client's last move. It is processed at the member's speed, or as fast as
    its records arrive where it has never been late, and CLEARLY allows for slower records (fetches of 215 to 490 s were measured). Where other members commit while they work off a backlog, three of their gaps are the limit.
    """
    # Of all its partitions: its inflow lacks those that are set aside, and with its only one nothing would be left.
    arrives = float((model.columns.median_rates[rows] * model.cost[rows]).sum())
    speed = max(float(model.capacity.rate.mid[at]), arrives)
    return min(whole_fetch_s(model, rows, speed), NOT_CHANCE * gap_behind_s(model))


def fetch_left_s(model: GroupModel, rows: Longs, at: int) -> float:
    """The same from when the first log end is known: a silent member has processed its fetch since it moved last, or was given its partitions,
    also while kagent did not look."""
    known_since = model.known_since(rows)
    before_s = (known_since - max(_begun_at(model, rows), model.state.assigned_at)) / 1000
    return max(0.0, fetch_s(model, rows, at) - max(0.0, before_s))


def whole_fetch_s(model: GroupModel, rows: Longs, speed: float) -> float:
    """How long the records that these partitions' last fetch may hold take at this speed (work per s), at most LONGEST_GAP_S."""
    return min(CLEARLY * _waited(model, rows) / speed, LONGEST_GAP_S) if speed > 0 else LONGEST_GAP_S


def gap_behind_s(model: GroupModel) -> float:
    """The longest of the latest gaps between commits, s, of those members that commit while records wait that are older than
    three such gaps; inf if there are none. All members run the same client."""
    found = [gap for at, gap in _longest_gaps_s(model) if _behind_ms(model, at) > NOT_CHANCE * 1000 * gap]
    return max(found, default=math.inf)


def _longest_gaps_s(model: GroupModel) -> Iterator[tuple[int, float]]:
    for at in range(len(model.names)):
        gaps = model.member_state(at).gaps
        if len(gaps) >= NOT_CHANCE:
            yield at, max(gaps) / 1000


def _behind_ms(model: GroupModel, at: int) -> int:
    """How old the oldest unread record of a partition was when the member committed progress there last, at most, ms."""
    since = model.columns.waiting_since
    rows = (model.owner == at) & (since > 0)
    return int((model.lags.moved[rows] - since[rows]).max(initial=0))


def _begun_at(model: GroupModel, rows: Longs) -> int:
    """When the next fetch of these partitions had begun, ms: a commit gap after one of them moved last."""
    owners = model.owner[rows]
    gap_ms = round(1000 * float(model.columns.gap[owners[owners >= 0]].max(initial=0.0)))
    return int(model.lags.moved[rows].max(initial=0)) + gap_ms


def _waited(model: GroupModel, rows: Longs) -> float:
    """Work that waited at most when the next fetch of these partitions had begun."""
    begun = _begun_at(model, rows)
    # The upper bound of the backlog: what may have been in the fetch, whatever retention has deleted since.
    _, waits = backlog(
        model.lags.undeleted, model.seen.ends, np.full(len(model.lags), begun), model.policy.allowed_lag
    )
    # By the first known log end; from the fetch to that, at least the least inflow came, and was not in it.
    unknown_s = max(0.0, (model.known_since(rows) - begun) / 1000)
    known = np.maximum(0.0, waits - model.columns.least_rates * unknown_s)
    return float((known[rows] * model.cost[rows]).sum())
