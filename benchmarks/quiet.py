"""How quiet the judgement is on healthy groups, and how right about sick ones: `python benchmarks/quiet.py`.

Runs scenario files (those beside it, or the ones that are named) through the simulator, which drives the very judgement
that the worker runs. Figures per scenario: openings, false ones per 1,000 group-days, right leading verdict, minutes until
detected, flaps.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import exp
from pathlib import Path
from statistics import median

from kagent.errors import KagentError
from kagent.simulator import Report, Scenario, load, run, run_many, screen

HERE = Path(__file__).parent / "scenarios"
FALSE_PER_1000 = 1.0
RIGHT = 0.95


SIDE_BY_SIDE = 100
"""Seeds that are run together: the simulator's columns are shared, the judgements are not."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, help="scenario files or folders; default: all beside this file"
    )
    parser.add_argument("--seeds", type=int, default=8, help="runs of each sick scenario")
    parser.add_argument("--days", type=float, default=2, help="group-days of each healthy scenario")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--every-tick", action="store_true", help="healthy groups too at every tick, unscreened"
    )
    parser.add_argument("--drain", action="store_true", help="what following the advice saves, instead")
    parser.add_argument("--verbose", action="store_true", help="print every opening")
    args = parser.parse_args()
    try:
        scenarios = [load(path) for path in _files(args.files or [HERE])]
        if args.drain:
            return _drain([s for s in scenarios if s.follow], args.seeds, args.first_seed, args.jobs)
        return _all(scenarios, args)
    except KagentError as error:
        print(error, file=sys.stderr)
        return 2


def _all(scenarios: list[Scenario], args: argparse.Namespace) -> int:
    work = [
        (s, tuple(seeds), args.every_tick)
        for s in scenarios
        for seeds in _batches(args.first_seed, _runs(s, args.seeds, args.days))
    ]
    began = time.time()
    with ProcessPoolExecutor(args.jobs) as pool:
        reports = [r for some in pool.map(_some, work, chunksize=1) for r in some]
    by_name: dict[str, list[Report]] = {}
    for report in reports:
        by_name.setdefault(report.name, []).append(report)
    fine = _healthy([(s, by_name[s.name]) for s in scenarios if s.healthy])
    fine &= _sick([(s, by_name[s.name]) for s in scenarios if not s.healthy])
    if args.verbose:
        for report in reports:
            for opening in report.openings:
                print(report.name, report.seed, opening)
    days = sum(r.hours for r in reports) / 24
    print(f"\n{len(reports)} runs, {days:.1f} group-days, {time.time() - began:.0f} s")
    return 0 if fine else 1


def _files(paths: Iterable[Path]) -> list[Path]:
    return [f for p in paths for f in (sorted(p.rglob("*.yaml")) if p.is_dir() else [p])]


def _runs(scenario: Scenario, seeds: int, days: float) -> int:
    return max(1, round(days * 24 / scenario.hours)) if scenario.healthy else seeds


def _batches(first: int, count: int) -> list[range]:
    return [range(n, min(n + SIDE_BY_SIDE, first + count)) for n in range(first, first + count, SIDE_BY_SIDE)]


def _some(work: tuple[Scenario, tuple[int, ...], bool]) -> list[Report]:
    """Healthy groups are screened first; where that opens anything, the seed is run tick by tick."""
    scenario, seeds, every_tick = replace(work[0], follow=False), work[1], work[2]
    screened = {} if every_tick or not scenario.healthy else {r.seed: r for r in screen(scenario, seeds)}
    left = [s for s in seeds if s not in screened or screened[s].openings]
    reports = {**screened, **{r.seed: r for r in run_many(scenario, left)}} if left else screened
    return [replace(report, messages=()) for report in reports.values()]


WAYS: dict[str, bool | str] = {"nothing": False, "plan": True, "lag": "lag", "lag-global": "lag-global"}
"""What the group does when it is told: nothing, kagent's plan, or a switch to a lag-based strategy."""


def _follow(work: tuple[Scenario, str, int]) -> float | None:
    return run(replace(work[0], follow=WAYS[work[1]]), work[2]).drained


def _drain(scenarios: list[Scenario], seeds: int, first: int, jobs: int) -> int:
    """Minutes from the onset until nobody is behind, by what the group does when it is told."""
    work = [(s, way, first + n) for s in scenarios for way in WAYS for n in range(seeds)]
    with ProcessPoolExecutor(jobs) as pool:
        drained = dict(zip([(s.name, way, n) for s, way, n in work], pool.map(_follow, work), strict=True))
    print(f"{'minutes until drained':24}" + "".join(f"{way:>12}" for way in WAYS))
    fine = True
    for scenario in scenarios:
        cells, medians = [], {}
        for way in WAYS:
            found = [drained[scenario.name, way, first + n] for n in range(seeds)]
            known = sorted(f / 60 if f is not None else float("inf") for f in found)
            medians[way] = known[len(known) // 2]
            cells.append(f"{medians[way]:12.1f}" if medians[way] < float("inf") else f"{'never':>12}")
        fine &= medians["plan"] <= medians["nothing"]
        print(f"{scenario.name:24}" + "".join(cells))
    return 0 if fine else 1


def _healthy(runs: list[tuple[Scenario, list[Report]]]) -> bool:
    if not runs:
        return True
    print(f"{'healthy':24} {'group-days':>10} {'openings':>9} {'per 1,000':>10} {'flaps':>6}")
    days, openings = 0.0, 0
    for scenario, reports in runs:
        d, o = sum(r.hours for r in reports) / 24, sum(len(r.openings) for r in reports)
        print(f"{scenario.name:24} {d:10.1f} {o:9} {1000 * o / d:10.1f} {sum(r.flaps for r in reports):6}")
        days, openings = days + d, openings + o
    print(f"{'all':24} {days:10.1f} {openings:9} {1000 * openings / days:10.1f}")
    print(f"at 95 %: at most {1000 * _at_most(openings) / days:.2f} false openings per 1,000 group-days\n")
    return 1000 * openings / days <= FALSE_PER_1000


def _at_most(count: int) -> float:
    """The greatest mean of a Poisson law that gives so few in at least one of twenty cases."""
    low, high = 0.0, 10.0 + 3.0 * count
    for _ in range(60):
        mean = (low + high) / 2
        term = total = exp(-mean)
        for n in range(1, count + 1):
            term *= mean / n
            total += term
        low, high = (mean, high) if total > 0.05 else (low, mean)
    return low


def _sick(runs: list[tuple[Scenario, list[Report]]]) -> bool:
    if not runs:
        return True
    print(
        f"{'sick':24} {'runs':>5} {'right':>6} {'minutes: median':>16} {'worst':>6} {'goal':>5} {'flaps':>6}"
    )
    right = total = flaps = 0
    late = False
    for scenario, reports in runs:
        found = [r.detected / 60 for r in reports if r.detected is not None]
        goal = max(10.0, 4 * scenario.commit / 60)
        good, flapped = sum(bool(r.right) for r in reports), sum(r.flaps for r in reports)
        missed = len(reports) - len(found)
        worst = f"{max(found):6.1f}" if found and not missed else f"{missed:4} no"
        middle = f"{median(found):16.1f}" if found else f"{'-':>16}"
        print(
            f"{scenario.name:24} {len(reports):5} {good / len(reports):6.0%} {middle} {worst} {goal:5.0f} {flapped:6}"
        )
        right, total, flaps = right + good, total + len(reports), flaps + flapped
        late |= bool(missed) or max(found) > goal
    print(f"{'all':24} {total:5} {right / total:6.0%}")
    return right / total >= RIGHT and not late and flaps == 0


if __name__ == "__main__":
    sys.exit(main())
