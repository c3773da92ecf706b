"""What kagent gets to see of the world, and when: late commits, irregular samples of log ends, a pipeline that pauses.

When samples are taken and how late commits are seen is the same for a hundred seeds at a time (see :data:`TOGETHER`), so that
their log ends can stand side by side in one history.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.simulator.commit_table import EPOCH, CommitTable
from kagent.simulator.scenario_file import SimulatorScenario
from kagent.simulator.world import NEVER, World, shown_end

TOGETHER = 100
"""Seeds of one hundred (0 to 99, 100 to 199, …) are seen at the same times."""


@dataclass(slots=True)
class ObservedTables:
    """kagent's tables, and when they are filled next. Times in seconds."""

    table: CommitTable
    random: np.random.Generator
    ends: dict[str, EndHistory] = field(default_factory=dict)
    as_of: float = 0.0
    """Up to when the pipeline has read."""
    next_sample: float = 0.0
    next_trigger: float = 0.0
    next_hole: float = NEVER
    next_pause: float = NEVER
    paused_until: float = 0.0

    def blind(self, now: float, fresh_s: float) -> str | None:
        """Why the group may not be judged now."""
        age = now - self.as_of
        return f"the pipeline's last progress is {age:.0f} s old" if age > fresh_s else None


def begin(world: World, seeds: tuple[int, ...]) -> ObservedTables:
    """kagent's tables when the scenario begins."""
    made = world.scenario.world
    name = f"{world.scenario.name} {seeds[0] // TOGETHER}"
    # crc32, not hash(): that is salted anew in each process, and a run must be repeatable.
    observed = ObservedTables(CommitTable.begin(world), np.random.default_rng(zlib.crc32(name.encode())))
    if made.clock_offset_s:
        # A stream of its own beside the world's for the same seed: clocks must not change what happens in the world.
        offsets = [np.random.default_rng([seed, 77]).uniform(-1, 1) * made.clock_offset_s for seed in seeds]
        observed.table.clock = np.round(np.array(offsets) * 1000).astype(np.int64)
    if made.sample_hole_every_s:
        observed.next_hole = observed.random.exponential(made.sample_hole_every_s)
    if made.pipeline_pause_every_s:
        observed.next_pause = made.pipeline_pause_every_s * observed.random.uniform(0.5, 1.0)
    deliver(world, observed)
    sample(world, observed)
    observed.next_trigger = world.scenario.trigger
    return observed


def look(world: World, observed: ObservedTables) -> None:
    """What becomes visible by now."""
    scenario, now = world.scenario, world.time
    if now < world.outage_until:
        return
    if now >= observed.next_trigger:
        deliver(world, observed)
        missed = max(1, np.ceil((now - observed.next_trigger) / scenario.trigger))
        observed.next_trigger += scenario.trigger * missed
    if now >= observed.next_sample:
        if not scenario.world.samples_missing or observed.random.random() >= scenario.world.samples_missing:
            sample(world, observed)
        observed.next_sample = _next_sample(scenario, observed, now)


def _next_sample(scenario: SimulatorScenario, observed: ObservedTables, now: float) -> float:
    made = scenario.world
    least, greatest = made.samples_every_s
    if not greatest:
        return observed.next_sample + scenario.sample
    following = now + observed.random.uniform(least, greatest) * scenario.sample / 5.0
    if now >= observed.next_hole:
        observed.next_hole = now + observed.random.exponential(made.sample_hole_every_s)
        following += made.sample_hole_s
    return following


def deliver(world: World, observed: ObservedTables) -> None:
    """The pipeline's trigger: the latest commit of each partition, as far as it has been read."""
    made, now = world.scenario.world, world.time
    if now >= observed.next_pause:
        observed.paused_until = now + made.pipeline_pause_s
        observed.next_pause = now + made.pipeline_pause_every_s
    if now < observed.paused_until:
        return
    least, greatest = made.commits_seen_after_s
    late = observed.random.uniform(least, greatest) if greatest else 0.0
    # Delays vary, but what was read is never unread.
    observed.as_of = max(observed.as_of, now - late)
    observed.table.take(world, observed.as_of if greatest else now)


def sample(world: World, observed: ObservedTables) -> None:
    """Log ends are polled; of all groups as if they were one topic's partitions, one group after the other."""
    end, now = shown_end(world), ms(world.time)
    down = world.down_until > world.time
    for topic in world.topics:
        here = slice(*world.span(topic.name))
        open_ = (world.lso[:, here] < end[:, here]).any()
        # Without a leader a partition's log end cannot be asked.
        known = np.where(down[here], UNKNOWN, end[:, here]) if down[here].any() else end[:, here]
        observed.ends.setdefault(topic.name, EndHistory(topic.partitions * world.seeds)).add(
            now,
            now + 20,
            world.start[:, here].astype(np.int64).ravel(),
            known.ravel(),
            stable(world, here).ravel() if open_ else None,
            world.ids[topic.name],
        )


def stable(world: World, here: slice) -> npt.NDArray[np.int64]:
    """Last stable offsets."""
    return np.minimum(world.lso[:, here], np.floor(world.end[:, here])).astype(np.int64)


def ms(time: float) -> int:
    """The simulated clock in ms since the epoch."""
    return EPOCH + round(time * 1000)
