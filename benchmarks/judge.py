"""How long one pass over many groups takes, and how much memory: `python benchmarks/judge.py`.

10,000 groups with ten partitions each, caught up, every twentieth with a backlog that is badly spread; log ends sampled,
commits moving between the passes. Prints seconds of one core for a pass and the process's peak memory, beside the same pass done the
plain way (a Python loop over partitions that computes shown lag and the ratio of member lags) in the same run.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from kagent.contract.events import TopicOffsets
from kagent.detect.state import JudgeState
from kagent.incident.evaluate import judge
from kagent.lag.commits import TopicCommits, apply
from kagent.lag.log_end_coverage import unread
from kagent.lag.log_ends import EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy
from kagent.testing import DAY_MS, group_view, member_view

START = 1_700_000_000_000
GOAL_SECONDS = 3.0
GOAL_BYTES = 1 << 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--sick", type=int, default=20, help="every so many-th group has a backlog")
    parser.add_argument("--passes", type=int, default=4)
    args = parser.parse_args()
    world = World(args.groups, args.partitions, args.sick)
    print(f"{args.groups} groups, {args.groups * args.partitions} group-partitions")
    worst = 0.0
    for number in range(args.passes):
        world.pass_time()
        began, cpu = time.perf_counter(), time.process_time()
        found = world.judge()
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        plain = world.plain()
        worst = max(worst, cpu)  # of the first pass too, which meets every group for the first time
        print(
            f"pass {number}: {cpu:.2f} s of one core ({took:.2f} s by the clock), {found} looked at closely; shown lag in a plain loop: {plain:.2f} s"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"worst pass {worst:.2f} s (goal {GOAL_SECONDS:.0f}), memory {memory / 1e6:.0f} MB (goal 1,000)")
    return 0 if worst < GOAL_SECONDS and memory < GOAL_BYTES else 1


class World:
    """All groups, their topics, commits and rosters."""

    def __init__(self, groups: int, partitions: int, sick: int) -> None:
        self.partitions, self.now = partitions, START
        self.names = [f"group-{n}" for n in range(groups)]
        self.sick = set(self.names[::sick])
        self.ends = {n: EndHistory(partitions) for n in self.names}
        self.commits: dict[str, TopicCommits] = {}
        self.rosters = {n: self._roster(n) for n in self.names}
        self.states: dict[str, JudgeState] = {
            n: JudgeState(first_seen=START - 86_400_000) for n in self.names
        }
        self.policy = Policy()
        self.turn = 0
        for _ in range(36):
            self._sample()

    def _roster(self, name: str) -> Roster:
        members = [
            member_view(f"{name}-{m}", member_id=f"{name}-{m}", assigned={name: range(m, self.partitions, 3)})
            for m in range(3)
        ]
        return Roster.of(group_view(name, members=members, last_change_ms=START - DAY_MS))

    def _sample(self) -> None:
        self.now += 5000
        start = np.zeros(self.partitions, np.int64)
        end = np.arange(1, self.partitions + 1) * ((self.now - START) // 100)
        for name in self.names:
            self.ends[name].add(self.now, self.now + 20, start, end)

    def pass_time(self) -> None:
        """Ten seconds: two samples and a commit of every partition."""
        self._sample()
        at = self.now + 1000
        rate = np.arange(1, self.partitions + 1)
        healthy = (rate * ((at - START) // 100)).tolist()
        late = (rate * ((at - START) // 100) // 2).tolist()
        self.turn += 1
        listed = list(range(self.partitions))
        for name in self.names:
            offsets = [*late[:1], *healthy[1:]] if name in self.sick else healthy
            update = TopicOffsets(
                name, None, listed, offsets, [at] * self.partitions, [self.turn * 100 + p for p in listed]
            )
            self.commits[name] = apply(self.commits.get(name), update)
        self._sample()

    def judge(self) -> int:
        """One pass; how many groups were looked at closely."""
        now, close = self.now + 500, 0
        for name in self.names:
            commits, ends = {name: self.commits[name]}, {name: self.ends[name]}
            seen = Observation(
                "main",
                name,
                now,
                self.rosters[name],
                commits,
                ends,
                {},
                now,
                blind=unread(commits, ends, 60_000, now),
                patience=15_000,
            )
            judged = judge(seen, self.states[name], self.policy)
            self.states[name] = judged.state
            close += judged.model is not None
        return close

    def plain(self) -> float:
        """Seconds for shown lag and the ratio of member lags, partition by partition."""
        began = time.process_time()
        for name in self.names:
            ends = self.ends[name].end.tolist()
            row, held = self.commits[name], self.rosters[name].owners[name].codes.tolist()
            lag = [0, 0, 0]
            for partition, committed in zip(row.partition, row.committed, strict=True):
                lag[held[partition]] += max(0, ends[partition] - committed)
            total = sum(lag)
            _ = max(lag) * 3 / total if total else 1.0
        return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
