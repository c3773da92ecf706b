"""Lines for ``kagent plan``: what they mean, and errors that name the field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kagent.errors import InputError
from kagent.planner import plan
from kagent.planner.comparison import alternatives
from kagent.planner.problem_lines import problem_of


def line(**more: Any) -> dict[str, Any]:
    members = [
        {"id": "a", "topics": ["x", "y"], "owned": [["x", 0], ["x", 1], ["y", 0]], "generation": 3},
        {"id": "b", "topics": ["x", "y"], "owned": [["y", 1]], "generation": 3},
    ]
    return {"members": members, "lags": {"x": [[1, 20], [0, 10]], "y": [[0, 30], [1, 40]]}, **more}


def test_a_line_becomes_columns() -> None:
    problem, _, kind = problem_of(line(costs={"y": 0.5}, speeds={"b": 2}, pinned=[["y", 1]], kind="consumer"))

    assert problem.lag.tolist() == [10, 20, 30, 40]
    assert problem.owner.tolist() == [0, 0, 0, 1]
    assert (problem.cost.tolist(), problem.speed.tolist()) == ([1.0, 0.5], [1.0, 2.0])  # type: ignore[union-attr]
    assert problem.pinned.tolist() == [False, False, False, True]  # type: ignore[union-attr]
    assert kind == "consumer"


def test_units_pair_partitions_by_number() -> None:
    problem, _, _ = problem_of(line(units=[["x", "y"]]))

    assert problem.unit is not None
    assert problem.unit.tolist() == [0, 1, 0, 1]


def test_of_two_claims_the_later_generation_counts() -> None:
    asked = line()
    asked["members"][1]["owned"] = [["x", 0], ["y", 1]]
    asked["members"][1]["generation"] = 4

    problem, _, _ = problem_of(asked)

    assert problem.owner.tolist() == [1, 0, 0, 1]


def test_rates_are_per_partition_and_missing_ones_are_none() -> None:
    problem, _, _ = problem_of(line(rates={"x": [[1, 2.5]]}))

    assert problem.rate is not None
    assert np.array_equal(problem.rate, [0, 2.5, 0, 0])


def test_capacities_count_only_if_all_are_known() -> None:
    assert problem_of(line(capacities={"a": 5}))[0].capacity is None
    assert problem_of(line(capacities={"a": 5, "b": 6}))[0].capacity is not None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"lags": {"x": [[0, -1]]}}, 'lags["x"][0]'),
        ({"lags": {"x": [[0, 1], [2, 1]]}}, 'lags["x"]: the lag of partition 1 is missing'),
        ({"partitions_per_topic": {"x": 2, "y": 2, "z": 1}}, 'lags["z"]'),
        ({"costs": {"q": 1}}, 'costs["q"]: there is no such topic'),
        ({"costs": {"x": 0}}, 'costs["x"]'),
        ({"costs": {"x": "much"}}, 'costs["x"]'),
        ({"speeds": {"a": float("inf")}}, 'speeds["a"]'),
        ({"speeds": [1]}, "speeds: a JSON object"),
        ({"rates": {"x": [[5, 1]]}}, 'rates["x"][0]: there is no partition 5'),
        ({"rates": {"x": [[0, -1]]}}, 'rates["x"][0]'),
        ({"pinned": [["x"]]}, "pinned[0]"),
        ({"units": ["x"]}, "units[0]"),
        ({"units": [["x", "y"], ["y"]]}, 'units[1]: topic "y" is in units twice'),
        ({"kind": "kafka"}, 'kind: "kafka" is not known'),
    ],
)
def test_an_error_names_the_field(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        problem_of(line(**wrong))
    assert says in str(caught.value)


def test_two_owners_in_one_generation_are_an_error() -> None:
    asked = line()
    asked["members"][1]["owned"] = [["x", 0]]

    with pytest.raises(
        InputError, match=r'members\[1\].owned: partition 0 of "x" is owned by members\[0\] too'
    ):
        problem_of(asked)


def test_every_strategy_stands_beside_the_plan() -> None:
    problem, scenario, _ = problem_of(line(units=[["x", "y"]]))
    told = plan(problem)

    others = {one.strategy: one for one in alternatives(told, scenario, "classic_librdkafka")}

    assert others["range"].unsafe is None
    assert others["range"].greatest == 60.0
    assert others["lag"].unsafe is None or others["lag"].unsafe == "co-partitioning"
    assert others["range"].feasible == "yes"
    assert others["sticky"].feasible == "no"
    assert others["kip848-uniform"].feasible == "no"
    assert {one.feasible for one in alternatives(told, scenario)} == {"unknown"}
    assert {one.feasible for one in alternatives(told, scenario, "streams")} == {"no"}


def test_a_strategy_that_parts_co_partitioned_topics_is_unsafe() -> None:
    members = [{"id": name, "topics": ["x", "y"], "owned": []} for name in "ab"]
    lags = {"x": [[0, 1], [1, 1], [2, 1]], "y": [[0, 1], [1, 1], [2, 1]]}
    problem, scenario, _ = problem_of({"members": members, "lags": lags, "units": [["x", "y"]]})

    unsafe = {one.strategy: one.unsafe for one in alternatives(plan(problem), scenario)}

    assert unsafe["range"] is None
    assert unsafe["roundrobin"] == "co-partitioning"
