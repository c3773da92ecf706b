"""Ticks that leave groups unjudged while their last judgement is valid publish, count, remember and show what ticks that judge all do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.contract.events import Beat, GroupEvent, MembershipRecord, TopicOffsets, TopicTombstones, encode
from kagent.detect.baselines import update_membership
from kagent.detect.decision import examine
from kagent.detect.state import JudgeState
from kagent.incident.evaluate import Judgement, judge
from kagent.incident.fast_path import abandoned, fast_path_healthy
from kagent.offsets import Record
from kagent.settings import Cluster, Settings
from kagent.testing import RecordingPublisher, memory_tables
from kagent.worker.coordinator_check import CoordinatorAnswer
from kagent.worker.engine import GroupEngine
from kagent.worker.groups import Entry
from kagent.worker.http.server import view
from kagent.worker.valid_judgements import ValidJudgements
from tests.fixtures.coordinators import each

START = 1_700_000_000_000
PARTITIONS = 3
END = 10**9
"""Of the source's log: beyond all records, so that none is disbelieved."""
POLICY = {
    "settle": 20,
    "hold": 30,
    "cooldown": 30,
    "min_behind": 30,
    "idle_after": 60,
    "storm_window": 60,
    "deploy_silence": 30,
}


class NeverValid(ValidJudgements):
    """Judges every group at every tick."""

    def of(self, partition: int, entry: Entry, at: int) -> Judgement | None:
        return None


@dataclass(slots=True)
class CheckedGlances(ValidJudgements):
    """Judges every group at every tick, and holds what a cheap look passes over against all that the detectors find."""

    passed_over: int = 0
    observe: Callable[[int, Entry, int], Any] | None = None

    def of(self, partition: int, entry: Entry, at: int) -> Judgement | None:
        assert self.observe is not None
        seen, policy = self.observe(partition, entry, at), self.context.policies(entry.group)
        state = update_membership(entry.judged or JudgeState(first_seen=at), seen, policy)
        if seen.blind is None and not seen.unwatched and fast_path_healthy(seen, state, policy):
            self.passed_over += 1
            _, findings = examine(seen, state, policy)
            assert abandoned(seen) or not [finding for finding in findings if finding.ripe]
        return None


@dataclass(slots=True)
class CheckedJudgements(ValidJudgements):
    """Counts what it leaves unjudged, and holds each against a judgement of then."""

    unjudged: int = 0
    observe: Callable[[int, Entry, int], Any] | None = None

    def of(self, partition: int, entry: Entry, at: int) -> Judgement | None:
        found = ValidJudgements.of(self, partition, entry, at)
        if found is not None:
            self.unjudged += 1
            assert self.observe is not None
            anew = judge(self.observe(partition, entry, at), entry.judged, self.context.policies(entry.group))
            assert anew == found
            assert anew.state is entry.judged
        return found


@dataclass
class Topic:
    """A topic's logs as the cluster has them. ``rate``: records a second into each partition."""

    name: str
    rate: int
    id: str = "first-id"
    start: Any = field(default_factory=lambda: np.zeros(PARTITIONS, np.int64))
    end: Any = field(default_factory=lambda: np.full(PARTITIONS, 1000, np.int64))

    def grow(self, seconds: int) -> None:
        self.end = self.end + self.rate * seconds

    def sample(self, now: int) -> SimpleNamespace:
        return SimpleNamespace(
            topic=self.name,
            topic_id=self.id,
            asked=now - 30,
            seen=now - 10,
            start=self.start.copy(),
            end=self.end.copy(),
            stable=self.end.copy(),
        )

    def create_anew(self, now: int) -> None:
        self.id, self.end, self.start = f"id-{now}", self.end * 0, self.start * 0

    def add_partition(self) -> None:
        self.end, self.start = np.append(self.end, 0), np.append(self.start, 0)


@dataclass
class Group:
    """``every_s``: between its commits; ``behind_s``, ``behind``: by how many seconds and records it commits late; ``partitions``: how
    many it commits; ``stands``: whether its first partition does not move."""

    name: str
    topics: list[Topic]
    every_s: int = 60
    behind_s: int = 0
    behind: int = 0
    partitions: int = PARTITIONS
    members: int = 2
    generation: int = 1
    stands: bool = False
    committed: dict[str, Any] = field(default_factory=dict)

    def membership(self) -> dict[str, Any]:
        value = {"protocolType": "consumer", "generation": self.generation, "protocol": "range", "leader": ""}
        value["members"] = [self._member(at) for at in range(self.members)]
        return Record("GroupMetadata", 2, 3, {"group": self.name}, value).to_json()

    def _member(self, at: int) -> dict[str, Any]:
        names = [topic.name for topic in self.topics]
        held = [p for p in range(PARTITIONS) if p % self.members == at]
        return {
            "memberId": f"{self.name}-{at}-id",
            "groupInstanceId": None,
            "clientId": f"{self.name}-{at}",
            "clientHost": "/10.0.0.1",
            "sessionTimeout": 10_000,
            "subscription_decoded": {"version": 1, "topics": names, "userData": None, "ownedPartitions": []},
            "assignment_decoded": {
                "assignedPartitions": [{"topic": name, "partitions": held} for name in names]
            },
        }

    def offsets(self, topic: Topic) -> Any:
        due = np.maximum(topic.end - topic.rate * self.behind_s - self.behind, 0)[: self.partitions]
        before = self.committed.get(topic.name, due)
        self.committed[topic.name] = np.where((np.arange(len(due)) == 0) & self.stands, before, due)
        return self.committed[topic.name]


class Pair:
    """Two workers that are told the same: the first judges every group at every tick."""

    def __init__(
        self,
        random: Random,
        topics: list[Topic],
        groups: list[Group],
        first: type[ValidJudgements] = NeverValid,
    ) -> None:
        self.random, self.topics, self.groups = random, topics, groups
        self.now, self.offset, self.source, self.second = START, 0, 10, 0
        self.ahead_ms, self.end = 0, END
        self.shown_again = 0
        self.engines = [self._engine(kind) for kind in (first, CheckedJudgements)]
        self.beat()
        for group in groups:
            self.rebalance(group)
            self.commit(group)

    def _engine(self, kind: type[ValidJudgements]) -> tuple[GroupEngine, RecordingPublisher]:
        sent = RecordingPublisher([])
        engine = GroupEngine.of(
            Settings(clusters={"main": Cluster(bootstrap="127.0.0.1:1")}, policy=POLICY),
            memory_tables(),
            sent,
            each(agreed),
            "w:1",
            lambda: (self.now + self.ahead_ms) / 1000,
        )
        engine.load([0], {0: 0})
        evaluator, valid = engine.evaluator, engine.evaluator.valid
        evaluator.valid = kind(valid.context, valid.logs, valid.coverage, valid.mutes)
        if isinstance(evaluator.valid, CheckedJudgements | CheckedGlances):
            evaluator.valid.observe = evaluator.observe
        return engine, sent

    @property
    def unjudged(self) -> int:
        """How many groups were left unjudged, over all ticks."""
        valid = self.engines[1][0].evaluator.valid
        assert isinstance(valid, CheckedJudgements)
        return valid.unjudged

    def take(self, message: GroupEvent | Beat) -> None:
        for engine, _ in self.engines:
            assert engine.take(0, self.offset, encode(message)) == []
        self.offset += 1

    def event(self, group: Group, *parts: Any) -> None:
        self.take(GroupEvent("main", group.name, 0, self.now, *parts))

    def beat(self) -> None:
        self.take(Beat("main", self.now, "r", 1.0, False, [0], [0], [self.end], [self.end], [self.end]))

    def sample(self) -> None:
        for engine, _ in self.engines:
            engine.logs.sampled("main", [topic.sample(self.now) for topic in self.topics], {}, {})

    def rebalance(self, group: Group, times: int = 1) -> None:
        for _ in range(times):
            group.generation += 1
            self.source += 1
            self.event(group, (), (), [MembershipRecord(self.source, self.now, group.membership())])

    def commit(self, group: Group, ahead_ms: int = 0) -> None:
        offsets = []
        for topic in group.topics:
            self.source += PARTITIONS
            committed = group.offsets(topic).tolist()
            listed = list(range(len(committed)))
            times = [self.now - self.random.randrange(900) + ahead_ms for _ in listed]
            source = [self.source + p for p in listed]
            offsets.append(TopicOffsets(topic.name, topic.id, listed, committed, times, source))
        self.event(group, offsets)

    def remove_offset(self, group: Group) -> None:
        self.source += 1
        self.event(group, (), [TopicTombstones(self.random.choice(group.topics).name, [0], [self.source])])

    def mute(self, key: str, record: bytes | None) -> None:
        for engine, _ in self.engines:
            engine.mutes.take(key, record)

    async def tick(self) -> None:
        judged, left = [await engine.tick(0, self.now) for engine, _ in self.engines]
        assert left == judged
        self.compare()
        await self.compare_pages()

    async def compare_pages(self) -> None:
        """What is shown of partitions that were kept since the page before, and of the same group without anything kept."""
        engine, _ = self.engines[1]
        before = {key: entry.shown for key, entry in engine.index.entries(0).items()}
        found = (await view(engine, True)).groups
        for key, entry in engine.index.entries(0).items():
            self.shown_again += entry.shown is not None and entry.shown is before.get(key)
            entry.shown = None
        assert found == (await view(engine, True)).groups

    def compare(self) -> None:
        (all_judged, published), (left, also) = self.engines
        assert also.messages == published.messages
        assert left.tables.verdicts == all_judged.tables.verdicts
        assert left.live.rows == all_judged.live.rows
        assert left.live.events == all_judged.live.events
        assert left.set_aside == all_judged.set_aside
        for key, series in all_judged.live.series.groups.items():
            assert left.live.series.groups[key].times == series.times
            np.testing.assert_array_equal(left.live.series.groups[key].values, series.values)

    async def run(self, ticks: int, *, commit: bool = False) -> None:
        """Ticks every ten seconds, without a surprise."""
        for _ in range(ticks):
            self.now += 10_000
            self.second += 10
            for topic in self.topics:
                topic.grow(10)
            self.sample()
            for group in self.groups:
                if commit and self.second % group.every_s == 0:
                    self.commit(group)
            self.beat()
            await self.tick()


async def agreed(entry: Entry) -> CoordinatorAnswer:
    """A coordinator that says what the records say."""
    roster = entry.roster({})
    holders = {
        (topic, p): roster.members[code].member_id
        for topic, held in roster.owners.items()
        for p, code in zip(held.partitions.tolist(), held.codes.tolist(), strict=True)
    }
    return CoordinatorAnswer("stable", holders, {})


class RandomHistory:
    """A pair of workers, and what happens to their groups."""

    def __init__(self, random: Random, first: type[ValidJudgements] = NeverValid) -> None:
        self.random = random
        self.surprises = random.choice([0.0, 0.01, 0.03, 0.1])
        topics = [Topic(f"topic-{n}", rate) for n, rate in enumerate((0, 1, 20, 300))]
        self.pair = Pair(random, topics, [self._group(n, topics) for n in range(7)], first)

    def _group(self, number: int, topics: list[Topic]) -> Group:
        choose = self.random.choice
        return Group(
            f"group-{number}",
            self.random.sample(topics, choose([1, 1, 2])),
            every_s=choose([10, 30, 60, 300, 3000]),
            behind_s=choose([0, 0, 0, 0, 0, 1, 5, 40]),
            behind=choose([0, 0, 0, 1, 2]),
            partitions=choose([PARTITIONS, PARTITIONS, PARTITIONS, 2]),
            members=choose([1, 2, 3, 4]),
        )

    async def step(self) -> None:
        """Five seconds; a tick at every second one."""
        pair = self.pair
        pair.now += 5000
        pair.second += 5
        for topic in pair.topics:
            topic.grow(5)
        self._commits_and_sample()
        if self.random.random() < self.surprises:
            self.surprise()
        if self.random.random() < 0.98:
            pair.beat()
        if pair.second % 10 == 0:
            await pair.tick()

    def _commits_and_sample(self) -> None:
        sampled, first = self.random.random() < 0.97, self.random.random() < 0.5
        if sampled and first:
            self.pair.sample()
        for group in self.pair.groups:
            if self.pair.second % group.every_s == 0:
                self.pair.commit(group)
        if sampled and not first:
            self.pair.now += 1000
            self.pair.sample()

    def surprise(self) -> None:
        """One of the things that happen now and then."""
        pair, choose = self.pair, self.random.choice
        topic, group = choose(pair.topics), choose(pair.groups)
        happens: list[Callable[[], Any]] = [
            lambda: setattr(topic, "rate", choose([0, 0, 1, 20, 300])),
            lambda: setattr(topic, "start", np.maximum(topic.start, topic.end - choose([0, 5, 500]))),
            lambda: topic.create_anew(pair.now),
            topic.add_partition,
            lambda: setattr(group, "every_s", choose([5, 10, 30, 60, 300, 10_000])),
            lambda: setattr(group, "behind_s", choose([0, 0, 1, 2, 5, 40])),
            lambda: setattr(group, "stands", not group.stands),
            lambda: self._changes_members(group),
            lambda: pair.rebalance(group, times=choose([1, 3, 6])),
            lambda: pair.remove_offset(group),
            lambda: self._mute(group),
            lambda: pair.commit(group, ahead_ms=choose([3_000, 60_000])),
            lambda: setattr(pair, "end", choose([END, END, pair.source - 20])),
            lambda: setattr(pair, "now", pair.now + choose([30_000, 700_000, 3_700_000, -20_000, -700_000])),
            lambda: setattr(pair, "ahead_ms", choose([0, 0, 5_000, -5_000, 100_000])),
        ]
        choose(happens)()

    def _changes_members(self, group: Group) -> None:
        group.members = self.random.choice([0, 1, 2, 3, 4])
        self.pair.rebalance(group)

    def _mute(self, group: Group) -> None:
        until = self.pair.now + self.random.choice([20_000, 200_000])
        key = self.random.choice([f"main/{group.name}", "main/group-*"])
        self.pair.mute(
            key, self.random.choice([None, orjson.dumps({"until": until, "why": "w", "by": "me"})])
        )


@pytest.mark.parametrize(
    ("examples", "steps"), [(3, 60), pytest.param(12, 200, marks=pytest.mark.slow(minutes=2))]
)
def test_ticks_that_leave_groups_unjudged_find_what_ticks_that_judge_all_do(
    examples: int, steps: int
) -> None:
    async def run(history: RandomHistory) -> None:
        for _ in range(steps):
            await history.step()

    @settings(max_examples=examples, deadline=None)
    @given(st.integers(0, 2**32))
    def holds(seed: int) -> None:
        asyncio.run(run(RandomHistory(Random(seed))))

    holds()


@pytest.mark.parametrize(
    ("examples", "steps"), [(3, 60), pytest.param(12, 200, marks=pytest.mark.slow(minutes=2))]
)
def test_what_a_detector_finds_is_never_healthy_at_a_glance(examples: int, steps: int) -> None:
    async def run(history: RandomHistory) -> None:
        for _ in range(steps):
            await history.step()
        glances = history.pair.engines[0][0].evaluator.valid
        assert isinstance(glances, CheckedGlances)
        assert glances.passed_over or steps < 100

    @settings(max_examples=examples, deadline=None)
    @given(st.integers(0, 2**32))
    def holds(seed: int) -> None:
        asyncio.run(run(RandomHistory(Random(seed), CheckedGlances)))

    holds()


def pair(rate: int, **fields: Any) -> Pair:
    topics = [Topic(f"topic-{n}", rate) for n in range(3)]
    groups = [Group(f"group-{n}", [topics[n % 3]], **fields) for n in range(6)]
    return Pair(Random(3), topics, groups)


@pytest.mark.slow
async def test_groups_in_which_nothing_happens_are_not_judged_again() -> None:
    still = pair(rate=0)
    await still.run(8)  # the window of rebalances passes
    before = still.unjudged
    await still.run(12)

    assert still.unjudged - before == 12 * len(still.groups)
    assert still.shown_again >= 12 * len(still.groups)
    # Records come that nobody reads: each tick compares what is found.
    for topic in still.topics:
        topic.rate = 20
    await still.run(30)
    assert all(judgement.model is not None for judgement in still.engines[1][0].looks.values())


@pytest.mark.slow
async def test_groups_that_keep_up_with_growing_topics_are_judged_when_they_commit() -> None:
    busy = pair(rate=20, every_s=60)
    await busy.run(60, commit=True)  # the window of rebalances passes, and rates are known
    before = busy.unjudged
    await busy.run(60, commit=True)

    assert busy.unjudged - before >= 0.6 * 60 * len(busy.groups)


def entry_of(engine: GroupEngine) -> Entry:
    return engine.index.entries(0)["main/group-0"]


def forget_beyond(engine: GroupEngine) -> None:
    engine.index.forget_beyond(0, entry_of(engine), entry_of(engine).newest_source)


def take_back(engine: GroupEngine) -> None:
    judged = entry_of(engine).judged
    assert judged is not None
    engine.index.judged(0, entry_of(engine), replace(judged, cooldown_until=engine.now))


def mute(engine: GroupEngine) -> None:
    engine.mutes.take("main/group-0", orjson.dumps({"until": engine.now + 10**6, "why": "", "by": ""}))


def event(engine: GroupEngine) -> None:
    engine.index.take(0, GroupEvent("main", "group-0", 0, engine.now))


ENDS = (forget_beyond, take_back, mute, event)


@pytest.mark.parametrize("what", ENDS)
async def test_the_next_tick_judges_a_group_again_after(what: Callable[[GroupEngine], None]) -> None:
    still = pair(rate=0)
    await still.run(10)
    engine = still.engines[1][0]
    before = engine.looks["main/group-0"]
    await still.run(1)
    assert engine.looks["main/group-0"] is before

    for one, _ in still.engines:
        what(one)
    await still.run(1)
    assert engine.looks["main/group-0"] is not before


async def test_groups_are_blind_without_progress_however_valid_their_judgements_are() -> None:
    still = pair(rate=0)
    await still.run(10)
    still.ahead_ms = 60_000
    await still.run(1)

    assert {row.condition for row in still.engines[1][0].live.rows[0].values()} == {"blind"}
