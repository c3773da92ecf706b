"""The plan: for the time to catch up, without what stands, and promised only as an interval that can be held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kagent.policy import Policy
from kagent.recommend.reassignment import expected_s, promised, reassign
from tests.fixtures.findings import CALM, FINE, FOUR, HOT, LATE, STANDS

Make = Callable[..., Any]


def test_two_hot_partitions_are_taken_apart_and_the_drain_is_an_interval(group: Make) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    found = reassign(made.look(members=made.at_work({"m0": 500, "m1": 500})))

    assert found is not None
    assert found.helps
    assert found.drain[0] is None
    owner = dict(zip(map(tuple, [("t", p) for p in range(8)]), found.plan.assigned.tolist(), strict=True))
    assert owner["t", 0] != owner["t", 1]
    assert found.promise is not None
    assert found.promise[0] < (found.drain[1] or 0) < found.promise[1]


def test_a_partition_that_stands_is_not_moved(group: Make) -> None:
    made = group({"t": [STANDS, HOT, *6 * [CALM]]}, FOUR)
    found = reassign(made.look(members=made.at_work({"m0": 350, "m1": 500}), standing=made.stood()))

    assert found is not None
    assert ("t", 0) not in {(m.topic, m.partition) for m in found.plan.moves}


def test_where_nobody_can_catch_up_nothing_is_promised(group: Make) -> None:
    made = group({"t": 8 * [LATE]}, FOUR)
    found = reassign(made.look(members=made.at_work(dict.fromkeys(FOUR, 150))))

    assert found is not None
    assert found.promise is None


def test_where_nothing_waits_or_nobody_is_known_there_is_no_plan(group: Make) -> None:
    assert reassign(group({"t": 8 * [FINE]}, FOUR).look()) is None
    assert reassign(group({"t": 8 * [LATE]}, {}, type="simple").look()) is None


def test_topics_move_by_partition_number_only_where_that_is_known(group: Make) -> None:
    topics = {"a": [HOT, HOT, CALM, CALM], "b": 4 * [CALM]}
    members = {"m0": {"a": [0, 1], "b": [0, 1]}, "m1": {"a": [2, 3], "b": [2, 3]}}
    made = group(topics, members)
    free, paired = (reassign(made.look(Policy(co_partitioned=known))) for known in (None, True))

    assert free is not None
    assert paired is not None
    assert not free.paired
    assert paired.paired
    by_number = {m.partition: m.to for m in paired.plan.moves}
    assert len(paired.plan.moves) == 2 * len(by_number)


def _strays(model: Any, share: float) -> Any:
    """The group with an inflow that is so much more and less in turn, minute by minute; the median stays."""
    signs = np.array([0.0, 1.0, -1.0, 1.0, -1.0])[: len(model.columns.rates), None]
    usual = np.median(model.columns.rates, axis=0)
    return replace(model, columns=replace(model.columns, rates=usual * (1 + share * signs)))


def test_the_more_the_inflow_strays_the_wider_is_the_promise_until_there_is_none(group: Make) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    model = made.look(members=made.at_work({"m0": 500, "m1": 500}))
    found = [reassign(_strays(model, share)) for share in (0.0, 0.05, 0.1)]
    promises = [one.promise for one in found if one is not None and one.promise is not None]

    assert len(promises) == 3
    assert promises[0][1] < promises[1][1] < promises[2][1]
    wild = reassign(_strays(model, 0.9))
    assert wild is not None
    assert wild.promise is None


def test_a_plan_that_drains_under_no_cautious_numbers_has_a_bound_as_every_other_action_has(
    group: Make,
) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    model = made.look(members=made.at_work({"m0": 500, "m1": 500}))
    # Cautious numbers take half of a latest minute that is above the usual one for the inflow that comes.
    rates = model.columns.rates.copy()
    rates[0] *= 3
    usual, risen = (
        reassign(replace(model, columns=replace(model.columns, rates=each)))
        for each in (model.columns.rates, rates)
    )

    assert usual is not None
    assert risen is not None
    assert risen.promise is not None
    assert risen.promise == usual.promise
    assert risen.promise[0] < (risen.drain[1] or 0) < risen.promise[1]


def test_what_is_likely_lies_within_the_promise_also_for_an_assignment_that_is_not_the_plan(
    group: Make,
) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    model = made.look(members=made.at_work({"m0": 500, "m1": 500}))
    found = reassign(model)
    assert found is not None
    assigned = np.roll(found.plan.assigned, 1)
    promise = promised(model, assigned, found.rows)

    assert promise is not None
    assert promise[0] < expected_s(model, assigned, found.rows) < promise[1]
