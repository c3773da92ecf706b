"""When a group has caught up with another number of members: the forecast of a plan, for an assignment that is not known yet.

Which partitions each of them gets is up to the group's assignor. What is likely holds if they are dealt out like cards, the most work
first, as the number itself was decided (``kagent.detect.enough_members``); what is promised must hold for the member that gets the
most work that any assignor gives one which deals out equal numbers.
"""

from __future__ import annotations

import numpy as np

from kagent.detect.dealing import dealt, fullest, piles_of
from kagent.detect.forecast import drain_s
from kagent.detect.group_model import GroupModel
from kagent.detect.inflow import Interval, totals
from kagent.lag.measure import Floats, Longs
from kagent.recommend.reassignment import promised


def gain_of_count(model: GroupModel, members: int, together: bool = False) -> dict[str, float | None]:
    """Time to catch up now and with this number of usual members, s, as the gain of an action has it; empty where no member's speed is known.
    ``together``: with a strategy that deals all topics out together."""
    if not model.works_in_seconds:
        return {}
    rows = model.placement_rows
    units = model.columns.moved_together(rows)
    load = units.sums(_work_s(model, rows))
    pile = np.zeros(len(load), np.int64) if together else piles_of(model, units.first)
    most = np.full(len(load), -1, np.int64)
    most[fullest(load, pile, members)] = 0
    promise = promised(model, most[units.code], rows, _usual(model, 1))
    return {
        "now": _seconds(model.longest_drain),
        "likely": _seconds(_likely_s(model, rows, dealt(load, pile, members)[units.code], members)),
        "after": _seconds(promise[1]) if promise else None,
    }


def _work_s(model: GroupModel, rows: Longs) -> Floats:
    """What each of these partitions asks of its member within the policy's ``hold``, work."""
    waits_and_comes = model.columns.backlog[rows] + model.columns.usual_rates[rows] * model.policy.hold
    return np.asarray(waits_and_comes * model.cost[rows])


def _likely_s(model: GroupModel, rows: Longs, assigned: Longs, members: int) -> float:
    cost = model.cost[rows]
    waits = totals(assigned, model.columns.backlog[rows] * cost, members)
    comes = totals(assigned, model.columns.usual_rates[rows] * cost, members)
    return float(drain_s(waits, comes, _usual(model, members).mid).max(initial=0.0))


def _usual(model: GroupModel, members: int) -> Interval:
    """The speed of this number of usual members: the median of those that were measured."""
    rate, measured = model.capacity.rate, model.capacity.measured
    ends = (float(np.median(end[measured])) for end in (rate.low, rate.mid, rate.high))
    return Interval(*(np.full(members, end) for end in ends))


def _seconds(drain: float) -> float | None:
    return round(drain, 1) if np.isfinite(drain) else None
