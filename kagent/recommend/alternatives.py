"""What every other strategy would give a group as it stands, measured as the plan is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kagent.detect.group_model import GroupModel
from kagent.lag.bound import Bound
from kagent.lag.membership import Roster
from kagent.planner.comparison import Alternative, alternatives
from kagent.recommend.reassignment import Reassignment
from kagent.strategies import Scenario

MOST: Bound = 20_000
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
    return scenario_from(roster, counts, column)


def scenario_from(
    roster: Roster,
    counts: Mapping[str, int],
    lags: Mapping[str, npt.ArrayLike] | None = None,
    topic_ids: Mapping[str, str] | None = None,
) -> Scenario:
    """The scenario of a group's membership, of these topics with ``counts`` partitions each."""
    topics = tuple(counts)
    # A member without topics has a pattern or an unknown subscription, which bars nothing.
    kinds = [
        tuple(t for t in topics if not names or t in names) for names in map(frozenset, roster.columns.kinds)
    ]
    members, owned = roster.columns.subscribed_to(kinds), roster.held.of_topics(topics)
    return Scenario.of(members, counts, owned=owned, lags=lags, topic_ids=topic_ids)
