"""How quiet the judgement is on healthy groups, and how right about sick ones: `python benchmarks/quiet.py`.

Runs scenario files (those beside it, or the ones that are named) through the simulator, which drives the very judgement
that the worker runs. Figures per scenario: openings, false ones per 1,000 group-days, right leading verdict, minutes until
detected, flaps.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import islice
from math import exp
from pathlib import Path

from kagent.errors import KagentError
from kagent.simulator import Report, SimulatorScenario, load, run, run_many

HERE = Path(__file__).parent / "scenarios"
FALSE_PER_1000 = 1.0
RIGHT = 0.95


GROUPS_OF_A_CLUSTER = 17
"""At least so many groups of a scenario whose groups share a cluster."""
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
        "--every-tick",
        action="store_true",
        help="kept for old command lines: every group is judged at every tick",
    )
    parser.add_argument(
        "--world",
        choices=("harsh", "gentle"),
        default="harsh",
        help="where files happen that have neither `world:` nor `clients:`; the others are harsh anyway",
    )
    parser.add_argument("--pause", action="store_true", help="the pipeline pauses for 14 s every 4 min")
    parser.add_argument(
        "--first-hour", action="store_true", help="healthy groups only, each in its first hour: new to kagent"
    )
    parser.add_argument("--drain", action="store_true", help="what following the advice saves, instead")
    parser.add_argument(
        "--act", action="store_true", help="the first feasible action is carried out a minute later, instead"
    )
    parser.add_argument(
        "--cliffs", action="store_true", help="sick groups with each parameter 10 %% more and less, instead"
    )
    parser.add_argument("--verbose", action="store_true", help="print every opening")
    args = parser.parse_args()
    try:
        scenarios = [load(path, args.world == "harsh") for path in _files(args.files or [HERE])]
        if args.pause:
            scenarios = [_paused(s) for s in scenarios]
        if args.first_hour:
            scenarios = [replace(s, hours=1.0, known_before=False) for s in scenarios if s.healthy]
        if args.drain:
            return _drain([s for s in scenarios if s.follow], args.seeds, args.first_seed, args.jobs)
        if args.act:
            return _act([s for s in scenarios if not s.healthy], args.seeds, args.first_seed, args.jobs)
        if args.cliffs:
            return _cliffs([s for s in scenarios if not s.healthy], args.seeds, args.first_seed, args.jobs)
        return _all(scenarios, args)
    except KagentError as error:
        print(error, file=sys.stderr)
        return 2


def _all(scenarios: list[SimulatorScenario], args: argparse.Namespace) -> int:
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


def _paused(scenario: SimulatorScenario) -> SimulatorScenario:
    return replace(scenario, world=replace(scenario.world, pipeline_pause_every_s=240.0))


def _files(paths: Iterable[Path]) -> list[Path]:
    return [f for p in paths for f in (sorted(p.rglob("*.yaml")) if p.is_dir() else [p])]


def _runs(scenario: SimulatorScenario, seeds: int, days: float) -> int:
    runs = max(1, round(days * 24 / scenario.hours)) if scenario.healthy else seeds
    return max(runs, GROUPS_OF_A_CLUSTER) if scenario.together else runs


def _batches(first: int, count: int) -> list[range]:
    return [range(n, min(n + SIDE_BY_SIDE, first + count)) for n in range(first, first + count, SIDE_BY_SIDE)]


def _quantile(values: list[float], share: float) -> float:
    """The smallest value that this share of them does not exceed; inf where they are that many."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def _some(work: tuple[SimulatorScenario, tuple[int, ...], bool]) -> list[Report]:
    """The runs of one batch of seeds, side by side."""
    scenario, seeds = replace(work[0], follow=False), work[1]
    return [replace(report, messages=()) for report in run_many(scenario, seeds)]


WAYS: dict[str, bool | str] = {"nothing": False, "plan": True, "lag": "lag", "lag-global": "lag-global"}
"""What the group does when it is told: nothing, kagent's plan, or a switch to a lag-based strategy."""


def _follow(work: tuple[SimulatorScenario, str, int]) -> float | None:
    return run(replace(work[0], follow=WAYS[work[1]]), work[2]).drained


def _drain(scenarios: list[SimulatorScenario], seeds: int, first: int, jobs: int) -> int:
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


LATER_S = 30.0
"""A worst member that much later than by doing nothing is later."""


def _acted(work: tuple[SimulatorScenario, bool, tuple[int, ...]]) -> list[Report]:
    scenario, act, seeds = work
    made = replace(
        scenario,
        hours=scenario.hours + 1.0,
        follow="first" if act else False,
        world=replace(scenario.world, remember_all=True),
    )
    return [replace(report, messages=()) for report in run_many(made, seeds)]


def _act(scenarios: list[SimulatorScenario], seeds: int, first: int, jobs: int) -> int:
    """Drains measured and promised, and whether the worst member ends later than if nothing is done."""
    some = tuple(range(first, first + seeds))
    work = [(s, act, some) for s in scenarios for act in (True, False)]
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(_acted, work))
    head = ("acted", "promised", "in 1.5 x", "never", "later than nothing", "median took s")
    print(f"{'first action carried out':32}" + "".join(f"{h:>20}" for h in head))
    totals = Counter[str]()
    for at, scenario in enumerate(scenarios):
        acted, nothing = found[2 * at], found[2 * at + 1]
        row = Counter[str]()
        for with_it, without in zip(acted, nothing, strict=True):
            if not with_it.acted:
                continue
            row["acted"] += 1
            row["never"] += with_it.took is None
            row["later"] += with_it.worst > without.worst + LATER_S
            if with_it.predicted is not None:
                row["promised"] += 1
                row["kept"] += with_it.took is not None and with_it.took <= 1.5 * with_it.predicted + 30
        took = [r.took if r.took is not None else float("inf") for r in acted if r.acted]
        cells = (row["acted"], row["promised"], row["kept"], row["never"], row["later"])
        print(f"{scenario.name:32}" + "".join(f"{c:20}" for c in cells) + f"{_quantile(took, 0.5):20.0f}")
        totals += row
    print(f"{'all':32}" + "".join(f"{totals[c]:20}" for c in ("acted", "promised", "kept", "never", "later")))
    return 0 if totals["kept"] >= 0.9 * totals["promised"] and not totals["later"] else 1


def _times(scenario: SimulatorScenario, what: str, by: float) -> SimulatorScenario:
    """The scenario with one parameter multiplied."""
    if what in ("inflow", "cost", "noise", "backlog"):
        topics = tuple(replace(t, **{what: getattr(t, what) * by}) for t in scenario.topics)
        events = tuple(
            {**e, "records": e["records"] * by} if what == "backlog" and "records" in e else e
            for e in scenario.events
        )
        return replace(scenario, topics=topics, events=events)
    if what == "commit":
        return replace(scenario, commit=scenario.commit * by)
    if what == "samples":
        least, greatest = scenario.world.samples_every_s
        return replace(scenario, world=replace(scenario.world, samples_every_s=(least * by, greatest * by)))
    if what == "seen after":
        least, greatest = scenario.world.commits_seen_after_s
        return replace(
            scenario, world=replace(scenario.world, commits_seen_after_s=(least * by, greatest * by))
        )
    size = max(1, round((scenario.clients.record_bytes or 400) / by))
    return replace(scenario, clients=replace(scenario.clients, record_bytes=size))


PARAMETERS = ("inflow", "cost", "noise", "backlog", "commit", "samples", "seen after", "fetch")


def _cliffs(scenarios: list[SimulatorScenario], seeds: int, first: int, jobs: int) -> int:
    """Right verdicts and median minutes to detect them, with each parameter of the world 10 % less and more."""
    changes = [("as it is", 1.0)] + [(what, by) for what in PARAMETERS for by in (0.9, 1.1)]
    some = tuple(range(first, first + seeds))
    work = [(_times(s, what, by) if by != 1.0 else s, some, True) for what, by in changes for s in scenarios]
    print(
        f"{'cliffs':20} {'right':>12} {'p50 min':>8} {'p95':>6}   flipped, or detection moved by more than a third"
    )
    base: dict[str, tuple[float, float]] = {}
    fine = True
    with ProcessPoolExecutor(jobs) as pool:
        # In their order, each as soon as it is known: all of them take hours.
        found = pool.map(_some, work)
        for what, by in changes:
            rows = dict(zip((s.name for s in scenarios), islice(found, len(scenarios)), strict=True))
            here = {name: _seen(reports) for name, reports in rows.items()}
            base = base or here
            moved = [name for name in here if _has_moved(here[name], base[name])]
            fine &= len(moved) <= 0.1 * len(scenarios)
            reports = [report for each in rows.values() for report in each]
            waits = [_wait_minutes(report) for report in reports]
            label = what if by == 1.0 else f"{what} x {by}"
            counts = f"{sum(bool(r.right) for r in reports)} of {len(reports)}"
            print(
                f"{label:20} {counts:>12} {_quantile(waits, 0.5):8.1f} {_quantile(waits, 0.95):6.1f}   {', '.join(moved)}",
                flush=True,
            )
    return 0 if fine else 1


def _wait_minutes(report: Report) -> float:
    """Minutes until it was detected; for ever if it was not."""
    return report.waited / 60 if report.waited is not None else float("inf")


def _seen(reports: list[Report]) -> tuple[float, float]:
    """The share of runs that were right, and the median minutes until detection."""
    right = sum(bool(r.right) for r in reports) / len(reports)
    return right, _quantile([_wait_minutes(r) for r in reports], 0.5)


def _has_moved(here: tuple[float, float], base: tuple[float, float]) -> bool:
    """Whether it flipped, or is detected a third sooner or later."""
    slack = max(1 / 3 * base[1], 0.5)
    return here[0] != base[0] or not (here[1] == base[1] or abs(here[1] - base[1]) <= slack)


def _healthy(runs: list[tuple[SimulatorScenario, list[Report]]]) -> bool:
    if not runs:
        return True
    print(f"{'healthy':30} {'group-days':>10} {'openings':>9} {'per 1,000':>10} {'flaps':>6}")
    days, openings = 0.0, 0
    for scenario, reports in runs:
        d, o = sum(r.hours for r in reports) / 24, sum(len(r.openings) for r in reports)
        print(f"{scenario.name:30} {d:10.1f} {o:9} {1000 * o / d:10.1f} {sum(r.flaps for r in reports):6}")
        days, openings = days + d, openings + o
    print(f"{'all':30} {days:10.1f} {openings:9} {1000 * openings / days:10.1f}")
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


def _sick(runs: list[tuple[SimulatorScenario, list[Report]]]) -> bool:
    if not runs:
        return True
    columns = f"{'runs':>5} {'right':>6} {'wrong':>6} {'silent':>6} {'later wrong':>11} {'p50 min':>8} {'p95':>6} {'flaps':>6} {'taken back':>10}"
    print(f"{'sick':30} {columns}   verdicts that led first")
    right = total = flaps = later = back = 0
    all_right = 0
    waits: list[float] = []
    for scenario, reports in runs:
        good, silent = sum(bool(r.right) for r in reports), sum(r.detected is None for r in reports)
        wrong = len(reports) - good - silent
        times = [_wait_minutes(r) for r in reports]
        later_here, flaps_here = sum(r.changed_wrong for r in reports), sum(r.flaps for r in reports)
        back_here = sum(r.taken_back for r in reports)
        print(
            f"{scenario.name:30} {len(reports):5} {good / len(reports):6.0%} {wrong:6} {silent:6} {later_here:11} "
            f"{_quantile(times, 0.5):8.1f} {_quantile(times, 0.95):6.1f} {flaps_here:6} {back_here:10}   {_led(reports)}"
        )
        right, total, flaps, later, back = (
            right + good,
            total + len(reports),
            flaps + flaps_here,
            later + later_here,
            back + back_here,
        )
        all_right += good == len(reports)
        waits += times
    p50, p95 = _quantile(waits, 0.5), _quantile(waits, 0.95)
    print(
        f"{'all':30} {total:5} {right / total:6.0%} {'':6} {'':6} {later:11} {p50:8.1f} {p95:6.1f} {flaps:6} {back:10}"
    )
    share = all_right / len(runs)
    print(f"all seeds right in {all_right} of {len(runs)} archetypes ({share:.0%})")
    print(
        f"from 60 s behind until told: p50 {p50:.1f} min, p95 {p95:.1f} min (silent ones count as for ever)"
    )
    return share >= RIGHT and later == 0 and flaps == 0 and back == 0


def _led(reports: list[Report]) -> str:
    """How often each verdict led the first incident after the onset."""
    first = [next((o.verdicts[0] for o in r.openings if r.detected is not None), "-") for r in reports]
    return ", ".join(f"{name} {count}" for name, count in Counter(first).most_common())


if __name__ == "__main__":
    sys.exit(main())
