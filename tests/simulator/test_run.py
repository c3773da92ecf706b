"""Scenario files: those that ship are read, a short run of some of them is quiet or right, and mistakes are named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from kagent.contract.events import TopicOffsets
from kagent.errors import KagentError
from kagent.lag.commits import apply
from kagent.simulator import load, run, run_many, scenario_checks
from kagent.simulator.commit_table import CommitTable
from kagent.simulator.passing_time import begin, step
from kagent.simulator.scenario_events import EVENTS, happen
from kagent.simulator.scenario_file import parse

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks" / "scenarios").rglob("*.yaml"))


def scenario(name: str) -> Path:
    return next(f for f in FILES if f.stem == name)


@pytest.mark.slow
def test_there_are_enough_of_them() -> None:
    made = [load(f) for f in FILES]

    assert sum(s.healthy for s in made) >= 12
    assert sum(not s.healthy for s in made) >= 8
    assert len({s.name for s in made}) == len(made)


def test_every_file_says_what_it_is_about_and_what_an_engineer_would_want_to_hear() -> None:
    made = [load(f) for f in FILES]

    assert [s.name for s in made if not (s.about and s.wanted)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["auto-commit", "connect", "hourly-batch", "bursts", "transactional", "idle-topic"]
)
def test_healthy_groups_stay_quiet_for_some_hours(name: str) -> None:
    assert run(replace(load(scenario(name)), hours=1.5), seed=11).messages == ()


@pytest.mark.slow
def test_a_group_that_stands_as_a_whole_has_its_incident_until_it_moves() -> None:
    report = run(load(scenario("whole-group-hangs")), seed=12)

    assert report.right
    assert report.taken_back == 0
    assert [opening.resolved for opening in report.openings] == [None]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["static-skew", "poison-record", "too-few", "hanging-transaction", "slow-beside-idle"]
)
def test_sick_groups_are_called_what_they_are_within_ten_minutes(name: str) -> None:
    report = run(replace(load(scenario(name)), hours=1.2, follow=False), seed=12)

    assert report.right
    assert report.detected is not None
    assert report.detected <= 600
    assert report.flaps == 0


@pytest.mark.slow
def test_a_group_that_never_paused_is_told_to_hang_within_ten_minutes() -> None:
    report = run(replace(load(scenario("all-hang")), hours=1.7), seed=15)

    assert report.right
    assert report.detected is not None
    assert report.detected <= 600


@pytest.mark.slow
@pytest.mark.parametrize("name", ["batch-at-once", "hourly-batch-uneven", "one-topic-pauses"])
def test_a_job_that_rests_longer_than_it_works_is_not_called_stuck(name: str) -> None:
    assert run(replace(load(scenario(name)), hours=2.2), seed=16).messages == ()


@pytest.mark.slow
@pytest.mark.parametrize(("delay", "commit"), [(20, 60), (120, 20)])
def test_a_topic_that_is_late_on_purpose_is_not_spoken_of(delay: float, commit: float) -> None:
    made = load(scenario("short-delay"))
    topics = tuple(replace(t, delay=delay if t.delay else 0.0, noise=0.4) for t in made.topics)

    assert run(replace(made, topics=topics, commit=commit, hours=1.0), seed=13).messages == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["too-few", "too-few-two-topics"])
def test_what_is_slowly_too_much_is_told_although_another_topic_is_late_on_purpose(name: str) -> None:
    made = load(scenario(name))
    few = tuple(
        replace(t, noise=0.05, cost=t.cost * (0.7 if name == "too-few" else 0.84)) for t in made.topics
    )
    later = replace(few[0], name="later", partitions=4, inflow=50.0, cost=0.0001, delay=120.0)

    report = run(replace(made, topics=(*few, later), hours=1.0), seed=14)

    assert [o.verdicts[0] for o in report.openings] == ["under_provisioned"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_ids() -> None:
    made = replace(load(scenario("hot-key")), hours=0.3)

    assert [m.id for m in run(made, 3).messages] == [m.id for m in run(made, 3).messages]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["bursts", "transactional", "hourly-batch-leaves", "recreated", "slow-member"]
)
def test_seeds_side_by_side_are_judged_as_each_of_them_alone_at_every_tick(name: str) -> None:
    made = replace(load(scenario(name)), hours=0.6, follow=False)

    together = run_many(made, (5, 6))

    assert together == [run_many(made, (seed,), sieve=False)[0] for seed in (5, 6)]


def test_the_table_of_many_groups_holds_the_rows_that_one_commit_after_the_other_makes() -> None:
    world = begin(load(scenario("recreated")), (1, 2))
    table = CommitTable.begin(world)
    row = table.rows(1)["orders"]
    for turn in range(40):
        if turn in (12, 25):
            again = {"do": "recreate", "topic": "orders"} if turn == 12 else {"do": "rewind", "seconds": 30}
            happen(world, again)
        step(world, 5.0)
        at = np.flatnonzero(np.any([commits.made[1] for commits in world.pending], axis=0))
        table.take(world, world.time)
        made = table.rows(1)["orders"]
        columns = (made.committed, made.time, made.source_offset)
        told = [[column[n] for n in at.tolist()] for column in columns]
        row = apply(row, TopicOffsets("orders", world.ids["orders"], at.tolist(), *told)) if len(at) else row
        assert row == made


@pytest.mark.slow
def test_the_scenario_in_the_docs_is_one() -> None:
    block = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "judgement.md").read_text(), re.DOTALL)
    assert block is not None

    assert run(parse(yaml.safe_load(block[1])), 1).right


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({}, "topics"),
        ({"topics": {"t": {"partitons": 3}}}, "partitons"),
        ({"topics": {"t": {}}, "members": 0}, "members"),
        ({"topics": {"t": {}}, "events": [{"at": 3}]}, "do"),
        ({"topics": {"t": {}}, "colour": "red"}, "colour"),
        ([], "names and values"),
        ({"topics": {"t": 3}}, "topics.t: fields are expected"),
        ({"topics": {"t": {"partitions": "many"}}}, "topics.t.partitions: a number"),
        ({"topics": {"t": {"partitions": 2.5}}}, "a whole number"),
        ({"topics": {"t": {"inflow": -1}}}, "at least 0"),
        ({"topics": {"t": {"spread": "wide"}}}, 'spread: even, zipf, "low:high"'),
        ({"topics": {"t": {"compacted": "yes"}}}, "true or false"),
        ({"topics": {"t": {}}, "commit": 0}, "commit: a number above 0"),
        ({"topics": {"t": {}}, "expect": "sick"}, "'sick' is none of"),
        ({"topics": {"t": {}}, "kind": "java"}, "kind: 'java' is none of"),
        ({"topics": {"t": {}}, "assignor": "fairest"}, "assignor: 'fairest' is none of range"),
        ({"topics": {"t": {}}, "world": {"weather": 1}}, "world: unknown weather"),
        ({"topics": {"t": {}}, "world": {"samples_every_s": 5}}, "samples_every_s: [least, greatest]"),
        ({"topics": {"t": {}}, "clients": {"family": "cobol"}}, "clients.family: 'cobol' is none of"),
        ({"topics": {"t": {}}, "clients": {"commits": "never"}}, "clients.commits: 'never' is none of"),
        ({"topics": {"t": {}}, "clients": {"priority": ["u"]}}, "'u' is none of t"),
        ({"topics": {"t": {}}, "events": {"at": 3}}, "a list is expected"),
        (
            {"topics": {"t": {}}, "events": [{"do": "explode"}]},
            "nothing is called 'explode'; there are: backlog, batch",
        ),
        ({"topics": {"t": {}}, "events": [{"do": "hold"}]}, "hold: `topic` is missing"),
        ({"topics": {"t": {}}, "events": [{"do": "hold", "topic": "u"}]}, "'u' is none of t"),
        ({"topics": {"t": {}}, "events": [{"do": "hold", "topic": "t", "partition": 12}]}, "0 to 11"),
        ({"topics": {"t": {}}, "events": [{"do": "hang", "member": "m9"}]}, "never a member 'm9'"),
        ({"topics": {"t": {}}, "events": [{"do": "rest", "fro": 3}]}, "rest: unknown fro"),
        (
            {"topics": {"t": {}}, "events": [{"do": "repeat", "every": 0, "event": {}}]},
            "every: a number above 0",
        ),
        (
            {"topics": {"t": {}}, "events": [{"do": "repeat", "every": 9, "event": {}}]},
            "repeat: `do` is missing",
        ),
        ({"topics": {"t": {}}, "members": 2, "assignment": {"m0": {"t": [0]}}}, "all of m0, m1"),
        ({"topics": {"t": {}}, "members": 1, "assignment": {"m0": {"t": [0, 0]}}}, "t-0 is held twice"),
        ({"topics": {"t": {}}, "speeds": {"m0": "fast"}}, "speeds.m0: a number"),
    ],
)
def test_mistakes_are_named(raw: object, word: str) -> None:
    with pytest.raises(KagentError, match=re.escape(word)):
        parse(raw)


def test_every_event_that_may_be_written_can_happen_and_is_in_the_docs() -> None:
    docs = (ROOT / "docs" / "judgement.md").read_text()

    assert set(EVENTS) == set(scenario_checks.EVENTS)
    assert [name for name in EVENTS if f"`{name}`" not in docs] == []


def test_a_member_may_hold_nothing_of_a_topic() -> None:
    held = {"m0": {"t": [0, 1]}, "m1": {"t": []}}
    made = parse({"topics": {"t": {"partitions": 2}}, "members": 2, "assignment": held, "hours": 0.02})

    assert not run(made).messages
