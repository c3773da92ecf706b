"""What every other strategy would give a group as it stands, measured as the plan is."""

from __future__ import annotations

import numpy as np

from kagent.detect.group_model import GroupModel
from kagent.planner.comparison import Alternative, alternatives
from kagent.recommend.reassignment import Reassignment
from kagent.strategies import Member, Scenario

MOST = 20_000
"""Above this many partitions the other strategies are left to `kagent plan`."""


def alternatives_of(model: GroupModel, reassignment: Reassignment | None) -> tuple[Alternative, ...]:
    """One entry per strategy that has an answer, the one that catches up first at the head."""
    if reassignment is None or model.roster is None or len(reassignment.rows) > MOST:
        return ()
    ids = [m.member_id for m in model.roster.members]
    return alternatives(reassignment.plan, scenario_of(model, reassignment), str(model.kind), ids)


def scenario_of(model: GroupModel, reassignment: Reassignment) -> Scenario:
    """The group as the strategies see it: members, subscriptions, partition counts, who owns what, and lags."""
    roster, lags = model.roster, model.lags
    assert roster is not None
    counts = {t: model.seen.ends[t].partitions for t in lags.topics if model.seen.ends[t].partitions}
    column = {t: np.zeros(n, np.int64) for t, n in counts.items()}
    for at, lag in zip(reassignment.rows.tolist(), reassignment.plan.problem.lag.tolist(), strict=True):
        topic, partition = lags.name(at)
        column[topic][partition] = int(lag)
    members = [
        Member(
            m.member_id,
            tuple(t for t in counts if roster.eligible(at, t)),
            m.instance_id,
            m.rack,
            generation=roster.generation,
            remembered_generation=roster.generation,
        )
        for at, m in enumerate(roster.members)
    ]
    owned = {
        m.member_id: [(t, p) for t, ps in m.assigned.items() if t in counts for p in ps]
        for m in roster.members
    }
    return Scenario.of(members, counts, owned=owned, lags=column)
