"""The planner's promises, on small groups."""

from __future__ import annotations

from kagent.advice.planner import Problem, lower_bound, plan


def test_one_move_relieves_a_member_with_two_heavy_partitions() -> None:
    problem = Problem.of(
        {"a": ["t"], "b": ["t"], "c": ["t"]},
        {"t": [100, 50, 60, 3, 2, 9]},
        {"a": [("t", 0), ("t", 1)], "b": [("t", 2)], "c": [("t", 3), ("t", 4), ("t", 5)]},
    )

    told = plan(problem)

    assert [(m.topic, m.partition, m.source, m.to, m.lag) for m in told.moves] == [("t", 1, "a", "c", 50.0)]
    assert (told.now, told.after, told.best, told.lower_bound) == (150.0, 100.0, 100.0, 100.0)
    assert lower_bound(problem) == 100.0
    assert told.verdict == "rebalance"
