"""What every other strategy would give a group as it stands, measured as the plan is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from kagent.detect.group_model import GroupModel
from kagent.lag.membership import Roster
from kagent.planner.comparison import Alternative, alternatives
from kagent.recommend.reassignment import Reassignment
from kagent.strategies import Assignment, Member, Scenario
from kagent.strategies.layout import distinct

# Columns by map() and attrgetter: at 2,100 members, a loop over the members took longer than the strategies themselves.
COLUMNS = attrgetter("member_id"), attrgetter("instance_id"), attrgetter("rack"), attrgetter("assigned")
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
    return scenario_from(roster, counts, column)


def scenario_from(
    roster: Roster,
    counts: Mapping[str, int],
    lags: Mapping[str, npt.ArrayLike] | None = None,
    topic_ids: Mapping[str, str] | None = None,
) -> Scenario:
    """The scenario of a group's membership, of these topics with ``counts`` partitions each."""
    generation = roster.generation
    ids, instances, racks, held = (list(map(column, roster.members)) for column in COLUMNS)
    topics = _eligible(roster, tuple(counts))
    members = list(map(Member, ids, topics, instances, racks, repeat(generation), repeat(generation)))
    owned = Assignment.from_holdings(ids, held, tuple(counts))
    return Scenario.of(members, counts, owned=owned, lags=lags, topic_ids=topic_ids)


def _eligible(roster: Roster, topics: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The topics that each member may hold, see ``Roster.eligible``; worked out once for members that are alike."""
    kinds, which = distinct([() if m.regex else tuple(m.subscriptions) for m in roster.members])
    every = [frozenset(names or topics) for names in kinds]
    allowed = [tuple(t for t in topics if t in names) for names in every]
    for at, (m, kind) in enumerate(zip(roster.members, which.tolist(), strict=True)):
        # What it holds beyond its subscription is being taken from it, and is its own until then.
        beyond = not every[kind].issuperset(m.assigned)
        yield tuple(t for t in topics if roster.eligible(at, t)) if beyond else allowed[kind]
