"""How unkind the simulated world is, and how its clients read and commit: the `world:` and `clients:` of a scenario.

:data:`GENTLE` is the world of scenario files without these sections; :data:`HARSH` is what the quiet suite uses. The
client families are those whose commits were recorded on a real broker; what each does is documented beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Range = tuple[float, float]


@dataclass(frozen=True)
class Conditions:
    """The `world:` section. Times in seconds; a range is [least, greatest]; 0 switches a condition off."""

    max_step_s: float = 1.0
    """The simulated clock goes on by no more at once."""
    commits_seen_after_s: Range = (1.0, 3.0)
    """From a commit until kagent's tables have it; of each partition only the latest commit of a second is seen."""
    samples_every_s: Range = (5.0, 6.5)
    samples_missing: float = 0.05
    """Share of the log end samples that fail."""
    sample_hole_every_s: float = 3600.0
    sample_hole_s: float = 20.0
    clock_offset_s: float = 2.0
    """The broker's clock differs from kagent's by up to this much, another amount for each seed."""
    pipeline_pause_every_s: float = 1200.0
    pipeline_pause_s: float = 14.0
    """The pipeline delivers nothing for so long; kagent is blind while its progress is older than ``fresh_s``."""
    fresh_s: float = 10.0
    inflow_changes_every_s: float = 60.0
    inflow_changes_at_random: bool = True
    """Each group's inflow changes after exponential waits; else everywhere on the minute."""
    linger_s: float = 0.0
    """Producers send in batches: the records of this many seconds at once."""
    burst_every_s: float = 0.0
    """Mean time between bursts on one random partition."""
    burst_s: float = 30.0
    burst_factor: float = 4.0
    gc_pause_every_s: float = 1200.0
    """Mean time between pauses of one member's process."""
    gc_pause_s: float = 2.0
    newer_commits_at_confirmation: bool = True
    """The coordinator is asked for commits that the tables do not have yet."""
    brokers: int = 3
    remember_all: bool = False
    """Log ends of the whole run are kept, so that any lateness can be measured at its end."""


@dataclass(frozen=True)
class Clients:
    """The `clients:` section. Empty fields are the family's own."""

    family: tuple[str, ...] = ()
    """One of FAMILIES, or several: seeds take turns. Empty: by the scenario's `kind`."""
    service: str = ""
    """fetch: one partition's fetch after another; arrival: in the order of arrival while fetching keeps up; even."""
    commits: str = ""
    """poll: by a timer that only polls look at; batch: after every poll; fetch: as poll, and a poll is everything fetched;
    partition: after each partition's fetch; timer: whatever the loop does."""
    contents: str = ""
    """What one commit names: all `assigned` partitions, or those that `moved`."""
    # Below, 0 or empty is the family's own; sizes are the clients' defaults (max.partition.fetch.bytes, queued.min.messages).
    max_poll_records: int = 0
    fetch_bytes: int = 1_048_576
    record_bytes: int = 0
    """0: 70 to 2,000, another number for each seed."""
    read_ahead_records: int = 100_000
    """How many records of one partition librdkafka fetches ahead (queued.min.messages)."""
    commits_ahead: float | None = None
    """Share of commits that name the batch just handed out (KIP-848 in Java: 0.02)."""
    protocol: str = ""
    """instant: everybody pauses alike; eager: all stop until the slowest poll has ended; cooperative: only what moves
    stops, in two rounds; kip848: the same in one."""
    static: bool = False
    """Members that come back within the session timeout keep their partitions without a rebalance."""
    session_timeout_s: float = 45.0
    priority: tuple[str, ...] = ()
    """Topics that are emptied before others are read, the first one first."""
    subscriptions: dict[str, Any] = field(default_factory=dict)
    """Member → topics; who is not named subscribes to all."""


@dataclass(frozen=True)
class Family:
    """How one client library serves and commits. ``interval_s``: its default where the scenario names none."""

    service: str
    commits: str
    contents: str
    max_poll: int
    interval_s: float = 5.0
    ahead: float = 0.0
    retries_ahead: bool = False
    """Retrying a poison record, it commits one record ahead and back again."""


# Intervals are the libraries' defaults: auto.commit.interval.ms 5 s, Streams' commit.interval.ms 30 s, Connect's
# offset.flush.interval.ms 60 s, sarama's Offsets.AutoCommit.Interval 1 s; 500 is Java's max.poll.records.
FAMILIES = MappingProxyType(
    {
        "even": Family("even", "timer", "assigned", 1),
        "even-moved": Family("even", "timer", "moved", 1),
        "java": Family("fetch", "poll", "assigned", 500),
        "java-batch": Family("fetch", "batch", "assigned", 100),
        "java-848": Family("fetch", "poll", "assigned", 500, ahead=0.02),
        "streams": Family("fetch", "timer", "moved", 1000, 30.0),
        "connect": Family("fetch", "timer", "assigned", 500, 60.0),
        "librdkafka": Family("arrival", "timer", "moved", 1),
        "librdkafka-batch": Family("arrival", "batch", "moved", 100),
        "aiokafka": Family("fetch", "timer", "assigned", 1, retries_ahead=True),
        "aiokafka-batch": Family("fetch", "batch", "assigned", 200),
        "kafka-python": Family("fetch", "poll", "assigned", 500),
        "kafka-python-batch": Family("fetch", "batch", "assigned", 200),
        "franz-go": Family("fetch", "fetch", "moved", 0),
        "franz-go-batch": Family("fetch", "batch", "moved", 100),
        "sarama": Family("even", "timer", "moved", 1, 1.0),
        "kafka-go": Family("even", "timer", "moved", 1, 1.0),
        "kafkajs": Family("fetch", "partition", "moved", 0),
    }
)

BY_KIND: dict[str, tuple[str, ...]] = {
    "classic_java": ("java",),
    "classic_librdkafka": ("librdkafka",),
    "classic_python": ("aiokafka", "kafka-python"),
    "classic": ("java", "librdkafka", "franz-go", "sarama"),
    "consumer": ("java-848", "librdkafka"),
    "streams": ("streams",),
    "connect": ("connect",),
    "faust": ("aiokafka",),
    "simple": ("connect",),
}
"""Where a scenario names no family: those that commit at an interval, which is then the scenario's `commit`."""
SERVICES = ("fetch", "arrival", "even")
COMMITS = ("poll", "batch", "fetch", "partition", "timer")
CONTENTS = ("assigned", "moved")
PROTOCOLS = ("instant", "eager", "cooperative", "kip848")

GENTLE = Conditions(
    max_step_s=3600.0,
    commits_seen_after_s=(0.0, 0.0),
    samples_every_s=(0.0, 0.0),
    samples_missing=0.0,
    sample_hole_every_s=0.0,
    pipeline_pause_every_s=0.0,
    clock_offset_s=0.0,
    inflow_changes_at_random=False,
    gc_pause_every_s=0.0,
    newer_commits_at_confirmation=False,
)
HARSH = Conditions()
PLAIN_CLIENTS = Clients(family=("even",), protocol="instant")


def families_of(clients: Clients, kind: str) -> tuple[Family, ...]:
    """The families of a scenario's groups; seed n of a scenario is the n-th of them, in turn."""
    names = clients.family or BY_KIND[kind]
    if names == ("even",) and kind == "classic_librdkafka":
        names = ("even-moved",)
    return tuple(FAMILIES[name] for name in names)
