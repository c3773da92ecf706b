"""A record that tells of partitions which ``__consumer_offsets`` does not have costs itself."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.contract.admission import INT32
from kagent.contract.events import Beat, LogCut, encode
from kagent.errors import KafkaError
from kagent.lag.observation import TopicInfo
from kagent.offsets import OFFSETS_TOPIC
from kagent.worker import cluster_samplers
from kagent.worker.cluster_samplers import ClusterSamplers
from kagent.worker.engine import GroupEngine
from kagent.worker.event_sources import existing
from kagent.worker.ingest_progress import Coverage
from tests.worker.test_engine import NOW, commit, desk, event

PARTITIONS = 50


def told(engine: GroupEngine, partitions: int = PARTITIONS) -> None:
    """What the cluster says of its ``__consumer_offsets``."""
    engine.logs.sampled("main", [], {}, {OFFSETS_TOPIC: TopicInfo(partitions)})


def beat(sources: list[int], start: int = 0, run_id: str = "r", time: int = NOW) -> Beat:
    ends = [start + 1] * len(sources)
    return Beat("main", time, run_id, 1.0, False, sources, [start] * len(sources), ends, ends, ends)


def sources(coverage: Coverage) -> list[int]:
    return sorted(source for _, source in coverage.sources)


def test_each_column_is_cut_to_the_partitions_that_exist() -> None:
    whole = Beat("main", NOW, "r", 1.0, False, [9, 1], [2, 3], [4, 5], [6, 7], [8, 9])

    assert existing(whole, 9) == Beat("main", NOW, "r", 1.0, False, [1], [3], [5], [7], [9])
    assert existing(LogCut("main", NOW, [1, 9], [5, 6]), 9) == LogCut("main", NOW, [1], [5])
    assert existing(whole, 10) is whole


def test_progress_on_partitions_that_are_not_there_is_refused_and_leaves_nothing_behind() -> None:
    engine = desk()
    told(engine)

    [refused] = engine.take(0, 0, encode(beat(list(range(10_000)))))

    assert getattr(refused.error, "reason", "") == "no_such_partition"
    assert f"has {PARTITIONS} partitions" in str(refused.error)
    assert sources(engine.coverage[0]) == list(range(PARTITIONS))
    assert len(engine.coverage[0].runs) == PARTITIONS


def test_a_cut_of_partitions_that_are_not_there_is_refused_and_leaves_nothing_behind() -> None:
    engine = desk()
    told(engine)

    [refused] = engine.take(0, 0, encode(LogCut("main", NOW, [PARTITIONS, 9_999], [0, 0])))

    assert getattr(refused.error, "reason", "") == "no_such_partition"
    assert engine.coverage[0].cuts == {}


@pytest.mark.slow
@given(st.integers(PARTITIONS, INT32))
def test_an_event_of_a_partition_that_is_not_there_is_refused_and_its_group_stays_as_it_was(
    source: int,
) -> None:
    engine = desk()
    told(engine)
    engine.take(0, 0, event("sound", [commit(0, 5, 1)]))
    forged = orjson.loads(event("sound", [commit(0, 99, 2)])) | {"source": source}

    [refused] = engine.take(0, 1, orjson.dumps(forged))

    assert getattr(refused.error, "reason", "") == "no_such_partition"
    assert engine.index.entries(0)["main/sound"].source < PARTITIONS
    assert engine.index.entries(0).keys() == {"main/sound"}


@given(st.integers(0, PARTITIONS - 1))
def test_an_event_of_a_partition_that_is_there_is_taken(source: int) -> None:
    engine = desk()
    told(engine)
    true = orjson.loads(event("sound", [commit(0, 5, 1)])) | {"source": source}

    assert engine.take(0, 0, orjson.dumps(true)) == []
    assert engine.index.entries(0)["main/sound"].source == source


def test_a_partition_that_was_added_lately_opens_no_gap_in_the_others() -> None:
    engine = desk()
    told(engine)
    engine.take(0, 0, encode(beat(list(range(PARTITIONS)))))

    assert engine.take(0, 1, encode(beat(list(range(PARTITIONS + 1)), start=1))) != []
    told(engine, PARTITIONS + 1)
    assert engine.take(0, 2, encode(beat(list(range(PARTITIONS + 1)), start=2))) == []

    assert engine.coverage[0].gaps == {}
    assert sources(engine.coverage[0]) == list(range(PARTITIONS + 1))


def test_progress_that_names_a_partition_twice_is_refused_as_a_whole() -> None:
    engine = desk()

    [refused] = engine.take(0, 0, encode(beat([7] * 10_000)))

    assert "twice" in str(refused.error)
    assert engine.coverage[0].sources == {}


@pytest.mark.slow
@pytest.mark.asyncio
async def test_what_was_believed_before_the_cluster_was_asked_is_gone_at_the_next_tick() -> None:
    engine = desk()
    engine.coverage_rows.taken(0).lose()
    engine.take(0, 0, encode(beat(list(range(10_000)))))
    told(engine)

    await engine.tick(0, NOW)

    assert sources(engine.coverage[0]) == list(range(PARTITIONS))
    assert len(engine.tables.coverage["0"].state["gaps"]) == PARTITIONS


@pytest.mark.slow
def test_true_progress_takes_effect_at_once_after_hundreds_of_forged_records() -> None:
    engine, every = desk(), list(range(PARTITIONS))
    told(engine)
    engine.take(0, 0, encode(beat(every)))
    for at in range(1, 401):
        forged = beat(list(range(10_000)), start=10**6 * at, run_id=f"forged-{at}")
        engine.take(0, at, encode(forged))

    assert engine.take(0, 401, encode(beat(every, start=1))) == []

    assert engine.coverage[0].gaps == {}
    assert sources(engine.coverage[0]) == every


def test_the_samplers_learn_them_before_any_sample_and_without_a_cluster_that_is_away() -> None:
    class Away(Asked):
        def describe(self, wanted: set[str], all_topics: bool) -> None:
            raise KafkaError("away")

    samplers, engine = ClusterSamplers({}), desk()
    samplers.engine = engine
    both = [("other", Away()), ("main", Asked())]
    samplers.by_cluster = SimpleNamespace(items=lambda: both)  # type: ignore[assignment]

    asyncio.run(samplers.learn_sources())

    assert engine.logs.source_partitions("main") == PARTITIONS
    assert engine.logs.source_partitions("other") is None


def test_a_cluster_that_does_not_answer_holds_up_no_event_and_still_counts_when_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()

    class Slow(Asked):
        def describe(self, wanted: set[str], all_topics: bool) -> None:
            assert answers.wait(30)
            super().describe(wanted, all_topics)

    async def learnt() -> tuple[int | None, int | None]:
        await samplers.learn_sources()
        before = engine.logs.source_partitions("main")
        answers.set()
        await asyncio.gather(*samplers.late)
        return before, engine.logs.source_partitions("main")

    monkeypatch.setattr(cluster_samplers, "LEARN_S", 0.01)
    samplers, engine = ClusterSamplers({}), desk()
    samplers.engine = engine
    samplers.by_cluster = {"main": Slow()}  # type: ignore[dict-item]

    assert asyncio.run(learnt()) == (None, PARTITIONS)


class Asked:
    """A cluster's sampler that notes what it was asked to describe."""

    def __init__(self) -> None:
        self.wanted: set[str] = set()

    def describe(self, wanted: set[str], all_topics: bool) -> None:
        self.wanted = set(wanted)

    def sample(self, wanted: Any) -> list[Any]:
        assert OFFSETS_TOPIC not in wanted
        return []

    def names(self) -> dict[str, str]:
        return {}

    def infos(self) -> dict[str, TopicInfo]:
        return {name: TopicInfo(PARTITIONS) for name in self.wanted}


def test_the_samplers_learn_how_many_partitions_there_are() -> None:
    samplers, engine = ClusterSamplers({}), desk()
    samplers.engine = engine
    samplers.by_cluster = SimpleNamespace(items=lambda: [("main", Asked())])  # type: ignore[assignment]

    asyncio.run(samplers.sample())

    assert engine.logs.source_partitions("main") == PARTITIONS
