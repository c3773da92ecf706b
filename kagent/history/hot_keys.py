"""Which keys make a partition hot: a sample of a topic on Spark. Only keys and sizes are read, never a value.

All partitions are sampled over the same stretch of time, so that their loads compare. What more partitions would do is
computed with the producer's default partitioner, and only reported where the records lie as that partitioner would put them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kagent.errors import InputError, KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.clients import spark as spark_options
from kagent.settings import Cluster
from kagent.strategies.partitioner import Weights, key_skew, partitions_for
from kagent.text import span

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_KEYS = 100_000
"""How many keys leave Spark, the heaviest first; the others of a partition count as one weight."""
HOT = 1.2
"""A partition is hot with more than this many times the mean load."""
FITS = 0.95
"""More partitions are predicted when this share of the load lies where the default partitioner would put it."""
STANDS_OUT = 0.01
"""A key with less than this share of its partition does not make it hot: it is one of very many."""


@dataclass(frozen=True, slots=True)
class KeySample:
    """The heaviest keys of a stretch of a topic. ``rest``: weight per partition of the keys that are not listed.

    ``where``: the partition in which each key was found (a key in two partitions stands twice). ``seconds``: the stretch.
    """

    topic: str
    partitions: int
    seconds: float
    records: int
    keys: Sequence[bytes]
    where: np.ndarray[Any, np.dtype[np.int64]]
    weight: Weights
    rest: Weights
    keyless: Weights

    @property
    def load(self) -> Weights:
        """Weight per partition."""
        listed = np.bincount(self.where, weights=self.weight, minlength=self.partitions)
        return listed + self.rest + self.keyless

    @property
    def fit(self) -> float:
        """Share of the listed load that lies where the default partitioner would put it: a key by its hash, and records without
        a key evenly."""
        total = float(self.weight.sum() + self.keyless.sum())
        return 1.0 - (self.misplaced + self.uneven) / total if total else 1.0

    @property
    def misplaced(self) -> float:
        """Weight of keys in partitions that their hash does not give."""
        if not len(self.keys):
            return 0.0
        return float(self.weight[partitions_for(self.keys, self.partitions) != self.where].sum())

    @property
    def uneven(self) -> float:
        """Weight of records without a key beyond an even share of them."""
        return float(np.maximum(self.keyless - self.keyless.mean(), 0.0).sum())


@dataclass(frozen=True, slots=True)
class PartitionCountOutcome:
    """What another number of partitions would give: skew (greatest ÷ mean load), and the bound that one key sets."""

    partitions: int
    skew: float
    bound: float


def ranges_to_sample(
    admin: Admin, topic: str, seconds: float, most: int
) -> tuple[dict[int, tuple[int, int]], float]:
    """Per partition [start, end) of the last ``seconds``, shortened for all alike to ``most`` records; and its length.

    Raises KafkaError if the topic does not exist or a partition does not answer, InputError if nothing was written in that time.
    """
    found = admin.topics([topic]).get(topic)
    if found is None:
        raise KafkaError(f"There is no topic {topic}, or it may not be seen.")
    keys = [(topic, p) for p in range(found.partitions)]
    since = int((time.time() - seconds) * 1000)
    # offset_at names no offset for a partition without a record since then, see `ranges`.
    begin, at = admin.log_start(keys).found, admin.offset_at(keys, since).found
    # To the last stable offset: records of an open transaction may still be aborted, and a read_committed reader waits before them.
    end = admin.log_end(keys, committed_only=True).found
    silent = [p for t, p in keys if (t, p) not in end or (t, p) not in begin]
    if silent:
        # Without them the skew and what another number of partitions gives would be another topic's.
        raise KafkaError(
            f"Partitions {', '.join(map(str, silent[:5]))} of {topic} do not answer: try again when each has a leader."
        )
    # No record since then: an empty range, not all that the partition holds.
    ranges = {p: (max(at.get((t, p), end[t, p]), begin[t, p]), end[t, p]) for t, p in keys}
    total = sum(e - s for s, e in ranges.values())
    if not total:
        raise InputError(
            f"Nothing was written to {topic} in the last {span(seconds)}: look further back with --last."
        )
    # The same share of every partition, from its end: a cap per partition would make their loads look alike.
    share = min(1.0, most / total)
    return {p: (e - int((e - s) * share), e) for p, (s, e) in ranges.items()}, seconds * share


def sample(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    seconds: float,
    by_bytes: bool,
    group: str,
) -> KeySample:
    """Read keys and sizes of these ranges on Spark and add them up."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    options = {**spark_options(cluster), **_range_options(topic, ranges, group)}
    records = spark.read.format("kafka").options(**options).load()
    # Only the length of a value is used, and on Spark: no value leaves the executors.
    weight = "coalesce(length(key), 0) + coalesce(length(value), 0)" if by_bytes else "1"
    sized = records.selectExpr("partition", "key", f"CAST({weight} AS bigint) AS weight")
    by_key = sized.groupBy("partition", "key")
    # Persisted: three results are made of it, and the topic would be read three times.
    summed = by_key.agg(F.sum("weight").alias("weight"), F.count(F.lit(1)).alias("records")).persist()
    try:
        totals = (F.sum("weight").alias("weight"), F.sum("records").alias("records"))
        whole: pa.Table = summed.groupBy("partition").agg(*totals).toArrow()
        keyless: pa.Table = summed.where("key IS NULL").select("partition", "weight").toArrow()
        heaviest: pa.Table = (
            summed.where("key IS NOT NULL").orderBy("weight", ascending=False).limit(MOST_KEYS).toArrow()
        )
    finally:
        summed.unpersist()
    n = max(ranges) + 1
    where = heaviest["partition"].to_numpy().astype(np.int64)
    weights = heaviest["weight"].to_numpy().astype(np.float64)
    total = _per_partition(whole["partition"], whole["weight"], n)
    bare = _per_partition(keyless["partition"], keyless["weight"], n)
    rest = total - bare - np.bincount(where, weights=weights, minlength=n)
    count = int(sum(whole["records"].to_pylist()))
    keys = [bytes(key) for key in heaviest["key"].to_pylist()]
    return KeySample(topic, n, seconds, count, keys, where, weights, np.maximum(rest, 0.0), bare)


def _range_options(topic: str, ranges: Mapping[int, tuple[int, int]], group: str) -> dict[str, str]:
    return {
        "subscribe": topic,
        # Spark names its consumer groups after this prefix, which users' ACLs have to allow; nothing is committed under it.
        "groupIdPrefix": group,
        "kafka.isolation.level": "read_committed",
        "startingOffsets": json.dumps({topic: {str(p): s for p, (s, _) in ranges.items()}}),
        "endingOffsets": json.dumps({topic: {str(p): e for p, (_, e) in ranges.items()}}),
        # Retention may pass the range while it is read: a smaller sample, not an error.
        "failOnDataLoss": "false",
    }


def _per_partition(partition: pa.ChunkedArray, weight: pa.ChunkedArray, n: int) -> Weights:
    found = np.bincount(partition.to_numpy(), weights=weight.to_numpy(), minlength=n)
    return found.astype(np.float64)


def hot(
    found: KeySample, above: float = HOT, top: int = 5
) -> list[tuple[int, float, list[tuple[bytes, float]]]]:
    """Partitions with more than ``above`` times the mean load, heaviest first: (partition, times the mean, those of
    its heaviest keys that stand out, with their share of the partition)."""
    load = found.load
    mean = float(load.mean()) or 1.0
    hottest = [int(p) for p in np.argsort(-load, kind="stable") if load[p] > above * mean]
    return [(p, float(load[p]) / mean, _heaviest(found, p, float(load[p]), top)) for p in hottest]


def _heaviest(found: KeySample, partition: int, load: float, top: int) -> list[tuple[bytes, float]]:
    inside = np.flatnonzero(found.where == partition)
    best = inside[np.argsort(-found.weight[inside], kind="stable")][:top]
    shares = [(found.keys[at], float(found.weight[at]) / load) for at in best.tolist()]
    return [(key, share) for key, share in shares if share >= STANDS_OUT]


def with_partition_counts(found: KeySample, counts: Sequence[int]) -> list[PartitionCountOutcome]:
    """What these numbers of partitions would give. Keys not listed and records without a key are taken as even."""
    even = float(found.rest.sum() + found.keyless.sum())
    made = []
    for n in counts:
        skew = key_skew(found.keys, found.weight, n)
        load = skew.load + even / n
        mean = float(load.mean()) or 1.0
        greatest = float(found.weight.max()) if len(found.weight) else 0.0
        made.append(PartitionCountOutcome(n, float(load.max()) / mean, max(1.0, greatest / mean)))
    return made
