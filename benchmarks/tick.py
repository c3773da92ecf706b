"""What a tick costs a worker, by how many of its groups did something since the one before: `python benchmarks/tick.py`.

Groups with ten partitions and three members each, in a worker's desk as events would have put them there, a tick every ten seconds
and a sample of the log ends every five. Three cases: all groups commit between two ticks; a sixth of them does, while all topics
grow; nothing happens. Prints CPU seconds of a tick, over the last ones (whole minutes, as once a minute quiet groups' curves get a point), and
what taking in the samples costs beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import time
from types import SimpleNamespace
from typing import Any

import metrics
import numpy as np

from kagent.contract.events import Beat, GroupEvent, MembershipRecord, TopicOffsets, encode

TICK_S, SAMPLE_S = 10, 5
RECORDS_PER_S = 10
"""Each partition receives this many, in the cases in which topics grow."""
LEARNED_MS = 3_700_000
"""The first hour of a group is judged by other evidence: the ticks that are measured come after it."""


class World(metrics.World):
    """Groups that commit where the log ends are, when told."""

    def __init__(self, groups: int, partitions: int) -> None:
        super().__init__()
        self.partitions, self.names = partitions, [f"group-{n}" for n in range(groups)]
        self.end = np.full(partitions, 1000, np.int64)
        self.source = 10**6  # above what the membership records stand at
        for name in self.names:
            self._take(encode(GroupEvent("main", name, 0, self.now, (), (), [self._members(name)])))
        self.commit(self.names)

    def _members(self, name: str) -> MembershipRecord:
        held = metrics.membership(name, self.partitions, 3, f"t-{name}")
        return MembershipRecord(1, self.now, held)

    def commit(self, names: list[str]) -> None:
        for name in names:
            self.source += self.partitions
            at = list(range(self.source - self.partitions, self.source))
            listed, now = list(range(self.partitions)), self.now
            topic = TopicOffsets(f"t-{name}", None, listed, self.end.tolist(), [now] * self.partitions, at)
            self._take(encode(GroupEvent("main", name, 0, now, [topic])))

    def sample(self) -> float:
        """CPU seconds to take one in."""
        began = time.process_time()
        start, stable = np.zeros(self.partitions, np.int64), self.end
        topics = (f"t-{name}" for name in self.names)
        samples = [
            SimpleNamespace(topic=t, topic_id=None, asked=self.now, seen=self.now + 20, start=start, end=self.end, stable=stable)
            for t in topics
        ]  # fmt: skip
        self.desk.logs.sampled("main", samples, {}, {})
        return time.process_time() - began

    async def turn(self, committing: list[str], grows: bool) -> tuple[float, float]:
        """Ten seconds; CPU seconds of the tick and of the samples."""
        sampled = 0.0
        for step in range(TICK_S // SAMPLE_S):
            self.now += (SAMPLE_S - 1) * 1000
            if grows:
                self.end = self.end + SAMPLE_S * RECORDS_PER_S
            sampled += self.sample()
            self.now += 1000
            if step == 0:
                self.commit(committing)
        self._take(
            encode(
                Beat("main", self.now, "r", 1.0, False, [0], [0], [self.source], [self.source], [self.source])
            )
        )
        began = time.process_time()
        await self.desk.tick(0, self.now)
        return time.process_time() - began, sampled


async def run(options: argparse.Namespace) -> None:
    world = World(options.groups, options.partitions)
    sixth = 6
    print(f"{options.groups} groups of {options.partitions} partitions; CPU seconds")
    everyone: Any = lambda _: world.names  # noqa: E731
    cases = {
        "all commit": (everyone, True),
        "a sixth commits": (lambda n: world.names[n % sixth :: sixth], True),
        "nothing happens": (lambda _: [], False),
    }
    for _ in range(6):
        await world.turn(world.names, True)
    world.now += LEARNED_MS
    for title, (who, grows) in cases.items():
        world.commit(world.names)  # nothing is unread where nothing happens
        found = [await world.turn(who(n), grows) for n in range(options.turns)]
        ticks, samples = zip(*found[options.turns // 3 :], strict=True)
        print(
            f"  {title:16} tick {statistics.mean(ticks):.3f} (median {statistics.median(ticks):.3f}, greatest {max(ticks):.3f}), "
            f"two samples {statistics.median(samples):.3f}",
            flush=True,
        )
    print(f"  memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--turns", type=int, default=18)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
