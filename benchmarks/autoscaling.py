"""An autoscaler that follows kagent's number of useful members, in the simulator: ``python benchmarks/autoscaling.py --help``.

Three tables: groups whose load swings (how often the number changed, and how often it turned within an hour), troubles that no
member mends (whether the number ever rose), and groups that are too small (how long until caught up, against the least count that
catches up within the policy's ``hold`` when it is set at the same moment).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil
from pathlib import Path

from kagent.policy import make_policy
from kagent.simulator.run import run_many
from kagent.simulator.scenario_file import SimulatorScenario, load, parse
from kagent.simulator.scenario_report import Report

FOLDER = Path(__file__).with_name("scenarios")
TROUBLES = (
    "hot-key",
    "hot-serial",
    "poison-record",
    "poison-retried",
    "stuck-member",
    "hang-serial",
    "hanging-transaction",
)
TOO_SMALL = ("too-few", "too-few-mild", "too-few-noisy", "too-few-serial", "growing-load")
SWINGS = ("night-load", "bursts", "zipf-wave", "random-bursts", "hourly-load", "deploy-spike")
TURN_S = 3600.0
WAVE = {
    "name": "wave-beyond",
    "about": "A daily wave whose crest is more than four members can do, and whose trough is little.",
    "topics": {"t": {"partitions": 24, "inflow": 100, "daily": 0.6, "cost": 0.03, "noise": 0.2}},
    "members": 4,
    "hours": 24,
}  # fmt: skip


def named(kind: str, name: str, **changes: object) -> SimulatorScenario:
    """A scenario of the folder, followed by an autoscaler."""
    made = load(FOLDER / kind / f"{name}.yaml", harsh=True)
    return replace(made, follow="useful", **changes)  # type: ignore[arg-type]


def turns(sizes: Sequence[tuple[float, int]], start: int) -> int:
    """How often the number went the other way within an hour."""
    steps = [(b[0], b[1] - a[1]) for a, b in pairwise([(0.0, start), *sizes])]
    return sum(1 for a, b in pairwise(steps) if a[1] * b[1] < 0 and b[0] - a[0] < TURN_S)


def swinging(scenarios: Sequence[SimulatorScenario], seeds: int) -> int:
    """Prints a line a scenario; how often the number turned."""
    total = 0
    print(f"{'load that swings':24} changes/day  turned  least  most   ({seeds} seeds)")
    for made in scenarios:
        reports = run_many(made, range(seeds))
        turned = sum(turns(r.sizes, made.members) for r in reports)
        counts = [n for r in reports for _, n in r.sizes] or [made.members]
        changes = sum(len(r.sizes) for r in reports) / seeds / made.hours * 24
        print(f"{made.name:24} {changes:11.1f} {turned:7} {min(counts):6} {max(counts):5}", flush=True)
        total += turned
    return total


def troubled(seeds: int) -> int:
    """Prints a line a scenario; in how many runs members were added."""
    total = 0
    print(f"\n{'trouble':24} runs that added members")
    for name in TROUBLES:
        made = named("sick", name)
        reports = run_many(made, range(seeds))
        rose = sum(1 for r in reports if any(n > made.members for _, n in r.sizes))
        print(f"{made.name:24} {rose} of {seeds}", flush=True)
        total += rose
    return total


def with_count(made: SimulatorScenario, count: int, at: float, seed: int) -> Report:
    """The same, with so many members from one moment on, and nobody following."""
    more = [f"m{n}" for n in range(made.members, count)]
    event = {"at": at, "do": "join", "member": more}
    return run_many(replace(made, follow=False, events=(*made.events, event)), (seed,))[0]


def took(report: Report, made: SimulatorScenario, at: float) -> float | None:
    """Seconds from the change until nobody was late any more."""
    return None if report.drained is None else made.onset + report.drained - at


def counts_up_to(units: int) -> list[int]:
    """The least count for each number of partitions that the fullest member gets."""
    least = {ceil(units / n): n for n in range(units, 0, -1)}
    return sorted(least.values())


def best(made: SimulatorScenario, at: float, seed: int) -> tuple[int, float] | None:
    """The least count that catches up within ``hold``, set at the same moment, and its seconds; None if none does."""
    hold = make_policy(made.policy).hold
    for count in counts_up_to(sum(t.partitions for t in made.topics)):
        if count > made.members:
            seconds = took(with_count(made, count, at, seed), made, at)
            if seconds is not None and seconds <= hold:
                return count, seconds
    return None


def too_small(seeds: int) -> list[float]:
    """Prints a line a run; the ratios to the least count that catches up within ``hold``."""
    ratios = []
    print(
        f"\n{'too small':18} seed  members (first after)  caught up after  least count in time (after)  ratio"
    )
    for name in TOO_SMALL:
        made = named("sick", name)
        for seed in range(seeds):
            ratios.append(grown(made, seed))
    return ratios


def grown(made: SimulatorScenario, seed: int) -> float:
    """One run: its time to catch up over that of the best count. Infinite where no member was added, 1 where no count catches up."""
    report = run_many(made, (seed,))[0]
    if not report.sizes:
        print(f"{made.name:18} {seed:4}  no member was added", flush=True)
        return float("inf")
    at, count = report.sizes[0]
    mine, least = took(report, made, at), best(made, at, seed)
    ratio = 1.0 if least is None else max(mine or float("inf"), 1.0) / max(least[1], 1.0)
    after = "not" if mine is None else f"{mine:.0f} s"
    beside = "none" if least is None else f"{least[0]} ({least[1]:.0f} s)"
    print(
        f"{made.name:18} {seed:4}  {count} ({at - made.onset:.0f} s)  {after:>8}  {beside:>12}  {ratio:.2f}",
        flush=True,
    )
    return ratio


def arguments() -> argparse.Namespace:
    """What to run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--hours", type=float, default=24.0, help="of the loads that swing")
    parser.add_argument("--only", choices=("swings", "wave", "troubles", "small"), action="append")
    return parser.parse_args()


def main(seeds: int, hours: float, only: Sequence[str]) -> None:
    """Prints the tables, and fails where the promise is broken."""
    swings = [replace(parse(WAVE), follow="useful", hours=hours)] if {"wave", "swings"} & set(only) else []
    swings += [named("healthy", name, hours=hours) for name in SWINGS if "swings" in only]
    turned = swinging(swings, seeds) if swings else 0
    rose = troubled(seeds) if "troubles" in only else 0
    worst = max(too_small(min(seeds, 5)), default=0.0) if "small" in only else 0.0
    print(f"\nturned within an hour: {turned}; members added for nothing: {rose}; worst ratio: {worst:.2f}")
    sys.exit(1 if turned or rose or worst > 1.1 else 0)


if __name__ == "__main__":
    given = arguments()
    main(given.seeds, given.hours, given.only or ("swings", "troubles", "small"))
