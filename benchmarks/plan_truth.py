"""How good published plans are by what arrived after them: ``python benchmarks/plan_truth.py --help``.

The planner finds the best assignment for the backlog, inflow and speeds that it is given (``plan.py``); here these are what kagent
has measured at the first message of a simulated sick group, and the group then goes on without acting on it. The plan's time until the
last member has caught up, by what then arrived in a quarter of an hour and by the true costs, is divided by that of the best assignment
for those (the same planner). 1 is the best; ``never`` where the group does not catch up under the plan and would under another one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kagent.detect.forecast import drain_s
from kagent.detect.group_model import GroupModel
from kagent.detect.inflow import totals
from kagent.lag.measure import Floats
from kagent.planner import PlanningProblem, plan
from kagent.recommend import render
from kagent.recommend.reassignment import Reassignment, reassign
from kagent.simulator.run import run_many
from kagent.simulator.scenario_file import SimulatorScenario, load

SICK = Path(__file__).with_name("scenarios") / "sick"
BADLY_SPREAD = (
    "five-partition-topics", "range-one-partition-topics", "range-fourth-idle", "two-hot-serial", "two-hot-cooperative", "two-hot-librdkafka",
    "two-hot-kip848", "skew-new", "static-skew", "hot-zipf", "deep-backlog-serial",
)  # fmt: skip
AFTER_MS, LEAST_MS = 900_000, 240_000
"""How long what arrives is counted after the message: a quarter of an hour, four minutes at least."""


def seen_plans(scenario: SimulatorScenario, seed: int) -> list[tuple[GroupModel, Reassignment]]:
    """What every message of a run was made from, in order; nobody acts on them."""
    seen: list[tuple[GroupModel, Reassignment]] = []

    def noted(model: GroupModel) -> Reassignment | None:
        made = reassign(model)
        if made is not None and made.seconds:
            seen.append((model, made))
        return made

    render.reassign = noted  # type: ignore[attr-defined]
    hours = min(scenario.hours, scenario.onset / 3600 + 0.7)
    run_many(replace(scenario, follow=False, hours=hours), (seed,))
    return seen


def arrived(first: GroupModel, rows: Sequence[int], last: GroupModel) -> Floats | None:
    """Records/s that came to each partition after the first message; None where too little of that was seen."""
    until = min(last.now - 60_000, first.now + AFTER_MS)
    if until - first.now < LEAST_MS:
        return None
    times = np.array([first.now, until], np.float64)
    grown = []
    for topic, partition in map(first.lags.name, rows):
        ends = last.seen.ends[topic].interpolated(np.array([partition], np.int64), times)[:, 0]
        grown.append(float(ends[1] - ends[0]) * 1000 / (until - first.now))
    return np.array(grown)


def true_problem(
    scenario: SimulatorScenario, model: GroupModel, made: Reassignment, rates: Floats
) -> PlanningProblem:
    """The plan's problem with the records that waited, what then arrived, and what records truly cost."""
    costs = {topic.name: topic.cost for topic in scenario.topics}
    problem = made.plan.problem
    return replace(
        problem,
        lag=np.where(model.counted[made.rows], model.columns.backlog[made.rows], 0.0),
        rate=rates,
        cost=np.array([costs[topic] for topic in problem.topics]),
        speed=np.ones(len(problem.members)),
    )


def caught_up_s(problem: PlanningProblem, assigned: np.ndarray) -> float:
    """When the last member has caught up, s."""
    assert problem.cost is not None
    assert problem.rate is not None
    cost, members = problem.cost[problem.topic], len(problem.members)
    work, inflow = (totals(assigned, each * cost, members) for each in (problem.lag, problem.rate))
    return float(drain_s(work, inflow, np.ones(members)).max())


def ratio(scenario: SimulatorScenario, seed: int) -> float | None:
    """The first plan's time over the best one's; None where nothing was planned, or no assignment catches up."""
    seen = seen_plans(scenario, seed)
    if len(seen) < 2:
        return None
    (model, made), (last, _) = seen[0], seen[-1]
    rates = arrived(model, made.rows.tolist(), last)
    if rates is None:
        return None
    problem = true_problem(scenario, model, made, rates)
    best = caught_up_s(problem, plan(problem, 0.0).assigned)
    return caught_up_s(problem, made.plan.assigned) / best if 0 < best < np.inf else None


def main() -> None:
    """Prints a line a scenario, and one of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=71_000)
    parser.add_argument(
        "names", nargs="*", default=BADLY_SPREAD, help="scenarios of members with true speed 1"
    )
    args = parser.parse_args()
    total: list[float] = []
    for name in args.names:
        scenario = load(SICK / f"{name}.yaml", harsh=True)
        seeds = range(args.first_seed, args.first_seed + args.seeds)
        found = [one for seed in seeds if (one := ratio(scenario, seed)) is not None]
        print(f"{name:30} " + " ".join(f"{one:6.2f}" for one in found), flush=True)
        total += found
    ended = np.array(total)
    print(
        f"{len(total)} plans: p50 {np.quantile(ended, 0.5, method='lower'):.2f}, within 1.25 times {int((ended <= 1.25).sum())}, "
        f"never {int(np.isinf(ended).sum())}"
    )


if __name__ == "__main__":
    main()
