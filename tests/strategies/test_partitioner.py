"""The producer's default partitioner puts records where Java's puts them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.strategies.partitioner import (
    Partitioner,
    RoundRobin,
    StickyBatch,
    StickyBytes,
    key_skew,
    murmur2,
    murmur2_many,
    partition_for,
    partitions_for,
)

DATA = Path(__file__).parent / "data" / "murmur2_public.jsonl"
LINES = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("line", [pytest.param(line, id=line["id"]) for line in LINES])
def test_hash_and_partition_are_those_of_java(line: dict[str, Any]) -> None:
    key = bytes.fromhex(line["key_hex"])
    assert murmur2(key) == line["murmur2"]
    assert {n: partition_for(key, int(n)) for n in line["partition"]} == line["partition"]


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 5000))
def test_many_keys_at_once_are_as_one_by_one(keys: list[bytes], partitions: int) -> None:
    assert murmur2_many(keys).tolist() == [murmur2(key) for key in keys]
    assert partitions_for(keys, partitions).tolist() == [partition_for(key, partitions) for key in keys]


def test_an_explicit_partition_wins_then_the_key() -> None:
    partitioner = Partitioner(RoundRobin(Random(1)))
    assert partitioner.choose("t", 6, key=b"abc", partition=5) == 5
    assert partitioner.choose("t", 6, key=b"abc") == 3
    assert partitioner.choose("t", 6, key=b"", available=[0]) == partition_for(b"", 6)


def test_ignored_keys_go_the_way_of_records_without_one() -> None:
    ignoring, keyless = (Partitioner(RoundRobin(Random(3)), ignore_keys=i) for i in (True, False))
    assert [ignoring.choose("t", 5, key=b"k") for _ in range(7)] == [keyless.choose("t", 5) for _ in range(7)]


def test_round_robin_counts_on_over_the_available_partitions() -> None:
    turns = Partitioner(RoundRobin(Random(5)))
    first = [turns.choose("t", 4, available=[0, 2, 3]) for _ in range(6)]
    assert sorted(first[:3]) == [0, 2, 3]
    assert first[3:] == first[:3]
    none_available = [turns.choose("t", 4, available=[]) for _ in range(4)]
    assert sorted(none_available) == [0, 1, 2, 3]


def test_round_robin_goes_on_past_the_end_of_32_bits() -> None:
    keyless = RoundRobin(Random(0), {"t": 0x7FFFFFFF})
    assert [keyless.next("t", 10, [], 0) for _ in range(2)] == [0x7FFFFFFF % 10, 0]


def test_a_batch_stays_on_one_partition_and_the_next_goes_elsewhere() -> None:
    keyless = StickyBatch(Random(7))
    for _ in range(20):
        before = {keyless.next("t", 5, range(5), 10) for _ in range(5)}
        assert len(before) == 1
        keyless.new_batch("t", 5, range(5))
        assert keyless.next("t", 5, range(5), 10) not in before


def test_bytes_decide_when_the_partition_changes() -> None:
    keyless = StickyBytes(Random(11), batch_size=100)
    chosen = [keyless.next("t", 50, range(50), 40) for _ in range(9)]
    assert len({*chosen[:3]}) == len({*chosen[3:6]}) == len({*chosen[6:]}) == 1
    assert len(set(chosen)) > 1


def test_partitions_with_short_queues_are_likelier() -> None:
    keyless = StickyBytes(Random(13), batch_size=1, queues={"t": [0, 3, 1]})
    drawn = Counter(keyless.next("t", 3, range(3), 1) for _ in range(8000))
    assert {p: round(count / 1000) for p, count in drawn.items()} == {0: 4, 1: 1, 2: 3}


def test_key_skew_names_the_hot_key_and_the_bound() -> None:
    keys = [b"a", b"b", b"c", b"d"]
    skew = key_skew(keys, [700, 100, 100, 100], 4)
    where, key, share = skew.hot[0]
    assert (where, key) == (partition_for(b"a", 4), b"a")
    assert skew.load.sum() == 1000
    assert skew.load[where] == 700 / share
    assert skew.bound == 2.8
    assert key_skew([], [], 3).skew == 1.0
