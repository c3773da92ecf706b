"""What cannot be broken in any simulated world, and whether its clients behave as real ones were recorded to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from kagent.simulator.conditions import FAMILIES, HARSH
from kagent.simulator.passing_time import begin, step
from kagent.simulator.scenario_events import happen
from kagent.simulator.scenario_file import SimulatorScenario, parse
from kagent.simulator.world import World

SEEDS = (1, 2, 3)
DEEP = {"at": 75, "do": "backlog", "topic": "t", "partition": [0, 1], "records": 12_000}
SKEW = {"at": 180, "do": "inflow", "topic": "t", "partition": [0, 1], "factor": 7.1}


def group(family: str, *events: dict[str, Any], record_bytes: int = 130, **more: Any) -> SimulatorScenario:
    """Three members, six partitions, 0.24 of a member each pair: as the groups that were recorded."""
    clients = {"family": family, "record_bytes": record_bytes, **more.pop("clients", {})}
    topics = {"t": {"partitions": 6, "inflow": 24, "cost": 0.03, "noise": 0.1}}
    return parse({"topics": topics, "members": 3, "clients": clients, "events": list(events), **more})


def lived(
    scenario: SimulatorScenario, seconds: float = 690.0, seeds: Sequence[int] = SEEDS
) -> Iterator[World]:
    """The world after every second."""
    world, queue = begin(scenario, seeds), list(scenario.events)
    while world.time < seconds:
        for event in [e for e in queue if e["at"] <= world.time]:
            queue.remove(event)
            queue += happen(world, event)
        step(world, 1.0)
        yield world
        world.pending.clear()


@dataclass
class Seen:
    """The overloaded member of one group, in a seed: gaps between its commits, and how long a partition waited."""

    gaps: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


def watched(scenario: SimulatorScenario) -> Seen:
    """What happens at the two partitions of the first member once their backlog is there."""
    out, last, since = Seen(), None, np.zeros(2)
    before: Any = None
    for world in lived(scenario):
        position, unread = world.position[0, :2], (world.end - world.position)[0, :2] > 2
        times = [c.when[0, :2][c.made[0, :2]].max() for c in world.pending if c.made[0, :2].any()]
        if times and world.time > 200:
            out.gaps += [times[-1] - last] if last is not None else []
            last = times[-1]
        stands = unread & (position <= before + 1e-6) if before is not None else np.zeros(2, bool)
        out.waits += since[~stands & (since > 4)].tolist()
        since = np.where(stands, since + 1, 0)
        before = position.copy()
    out.waits += since[since > 4].tolist()
    return out


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_nothing_is_read_before_it_is_written_or_committed_before_it_is_read(family: str) -> None:
    ahead = FAMILIES[family].ahead
    for world in lived(group(family, DEEP, {"at": 300, "do": "deploy", "every": 40}), 480.0):
        assert (world.position <= world.end + 1e-6).all()
        assert (world.start <= world.position).all()
        if not ahead:
            assert (world.committed <= world.position + 1e-3).all()


@pytest.mark.parametrize("family", ["java", "librdkafka", "franz-go", "kafkajs", "sarama"])
def test_no_member_does_more_work_than_it_has_time_for(family: str) -> None:
    done = None
    scenario = group(family, DEEP, speeds={"m0": 0.5})
    for world in lived(scenario, 400.0):
        if done is not None:
            read = np.maximum(world.position - done, 0) * world.cost
            for slot, speed in enumerate((0.5, 1.0, 1.0)):
                mine = world.owner == slot
                assert ((read * mine).sum(axis=1) <= speed + 1e-6).all()
        done = world.position.copy()


def test_a_busy_member_is_never_idle_while_something_is_unread() -> None:
    done = None
    for world in lived(group("java", DEEP, world={"gc_pause_every_s": 0}), 300.0):
        if done is not None and world.time > 80:
            assert (((world.position - done) * world.cost)[:, :2].sum(axis=1) > 0.99).all()
        done = world.position.copy()


def test_a_member_with_time_leaves_no_record_unread_where_no_newer_one_comes() -> None:
    """With so much noise a partition gets nothing for minutes, as a rarely used key's does."""
    scenario = group("java", world={"gc_pause_every_s": 0})
    noisy = replace(scenario, topics=tuple(replace(t, noise=1.5) for t in scenario.topics))
    waits: Any = 0
    for world in lived(noisy, 400.0):
        waits = np.where(np.floor(world.end) - world.position >= 1, waits + 1, 0) * (world.flow == 0)
        assert waits.max() <= 10


@pytest.mark.parametrize("family", ["java", "aiokafka", "kafka-python", "franz-go", "kafkajs"])
@pytest.mark.slow
def test_one_fetch_is_emptied_before_the_next_is_begun(family: str) -> None:
    waits = watched(group(family, DEEP, world={"gc_pause_every_s": 0})).waits

    # 1 MiB of 130 bytes are 8,065 records of 30 ms: recorded were 240 to 435 s.
    assert max(waits) == pytest.approx(242, abs=10)


@pytest.mark.parametrize(
    ("family", "gap", "longest"),
    [
        ("java", 15, 26),  # recorded: 20 to 25 s, a poll of 500 records
        ("java-batch", 3, 4),  # 3
        ("aiokafka", 5, 6),  # 5.0 by a timer
        ("aiokafka-batch", 6, 9),  # 8, a poll of 200
        ("librdkafka", 5, 6),  # 5.0 by a timer
        ("sarama", 1, 2),  # 1.0 by a timer
        ("streams", 30, 32),  # 30
        ("kafkajs", 20, 165),  # 16 to 112, the fetch of a partition
        ("franz-go", 40, 200),  # 15 to 120, everything that was fetched
    ],
)
@pytest.mark.slow
def test_commits_of_a_busy_member_come_as_often_as_recorded(family: str, gap: float, longest: float) -> None:
    gaps = watched(group(family, SKEW, record_bytes=230, world={"gc_pause_every_s": 0})).gaps

    assert np.median(gaps) == pytest.approx(gap, rel=0.4)
    assert max(gaps) <= longest


@pytest.mark.parametrize("family", ["librdkafka", "sarama", "kafka-go"])
@pytest.mark.slow
def test_what_is_served_as_it_comes_never_waits_while_fetching_keeps_up(family: str) -> None:
    assert watched(group(family, SKEW, record_bytes=230)).waits == []


def test_librdkafka_reads_a_deep_partition_ahead_and_serves_it_to_the_end() -> None:
    waits = watched(group("librdkafka", DEEP)).waits

    assert 220 <= max(waits) <= 495  # as recorded


@pytest.mark.parametrize(
    ("family", "named"),
    [("java", 2), ("aiokafka", 2), ("librdkafka", 1), ("streams", 1), ("franz-go-batch", 1), ("kafkajs", 1)],
)
def test_a_commit_names_all_partitions_or_only_those_that_moved(family: str, named: int) -> None:
    for world in lived(group(family, DEEP), 250.0):
        for commits in world.pending:
            busy = commits.made[0, :2].sum()
            if world.time > 120 and busy:
                assert busy == named


def test_an_eager_group_waits_for_its_slowest_poll_and_a_cooperative_one_goes_on() -> None:
    stood = {}
    for protocol, assignor in (("eager", "sticky"), ("cooperative", "cooperative-sticky")):
        scenario = group(
            "java",
            DEEP,
            {"at": 127, "do": "join", "member": "m9"},
            clients={"protocol": protocol},
            assignor=assignor,
            world={"gc_pause_every_s": 0},
        )
        moved, changed = np.zeros(3), []
        before = None
        for world in lived(scenario, 157.0):
            if before is not None and world.time > 128:
                # Partitions of a member that was not busy.
                kept = world.owner == world.slots.index("m2")
                moved += ((world.position > before) & kept).any(axis=1)
            before = world.position.copy()
            changed.append(world.generation.copy())
        stood[protocol] = 29 - moved.min()
        assert (changed[-1] > changed[0]).all()

    assert stood["eager"] >= 5
    assert stood["cooperative"] <= 3


def test_a_static_member_that_is_back_in_time_causes_no_rebalance() -> None:
    back = [{"at": 100, "do": "leave", "member": "m1"}, {"at": 120, "do": "join", "member": "m1"}]
    *_, quick = lived(group("java", *back, clients={"static": True}), 250.0)
    *_, late = lived(group("java", *back, clients={"static": True, "session_timeout_s": 10}), 250.0)

    assert (quick.generation == 2).all() or (quick.generation == quick.generation[0]).all()
    assert (late.generation > quick.generation).all()
    assert (late.owner >= 0).all()


@pytest.mark.slow
def test_a_scaler_adds_members_where_the_lag_grows_and_removes_them_later() -> None:
    scaler = {"lag_per_member": 2000, "least": 3, "greatest": 8, "cooldown": 100}
    sizes = [
        [len(order) for order in world.order]
        for world in lived(group("java", DEEP, autoscaler=scaler), 1500.0)
    ]

    assert max(map(max, sizes)) == 8
    assert sizes[-1] == [3, 3, 3]


def test_brokers_that_restart_take_no_records_and_no_commits_for_a_while() -> None:
    event = {"at": 100, "do": "restart_brokers", "every": 30, "down": 10}
    ends = {}
    for world in lived(group("java", event), 200.0):
        ends[world.time] = world.end[0].copy()
        if world.coordinator_down_until > world.time:
            assert not any(c.made.any() and (c.when[c.made] > 101).any() for c in world.pending)

    assert ends[101.0][0] == ends[109.0][0]
    assert ends[101.0][1] < ends[109.0][1]
    assert ends[112.0][0] - ends[101.0][0] > 20  # what producers had kept


SCALER = {"lag_per_member": 40, "least": 3, "greatest": 6, "cooldown": 60}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["java", "sarama", "franz-go", "librdkafka"])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_seed_lives_the_same_whatever_runs_beside_it(family: str, scaled: bool) -> None:
    scenario = group(
        family,
        DEEP,
        {"at": 200, "do": "deploy", "every": 40},
        assignor="sticky",
        autoscaler=SCALER if scaled else None,
    )
    waves = replace(scenario, topics=tuple(replace(t, daily=0.3) for t in scenario.topics))

    *_, alone = lived(waves, seeds=(2,))
    *_, together = lived(waves, seeds=(1, 7, 2))

    for column in ("end", "position", "committed", "commit_time"):
        assert (getattr(alone, column)[0] == getattr(together, column)[2]).all(), column
    assert alone.names(0) == together.names(2)


def test_the_harsh_world_has_every_unkindness_that_has_a_default() -> None:
    assert HARSH.commits_seen_after_s == (1.0, 3.0)
    assert HARSH.samples_missing
    assert HARSH.sample_hole_every_s
    assert HARSH.pipeline_pause_every_s
    assert HARSH.clock_offset_s
    assert HARSH.inflow_changes_at_random
    assert HARSH.newer_commits_at_confirmation
