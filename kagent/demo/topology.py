"""What the demo runs: topics, groups, rates and costs, chosen so that two cores are enough and the skew cannot end alone.

All times are seconds; a record's cost is a sleep. ``orders`` has eight partitions, fed equally. A group of four members
has room for the whole inflow if it is spread evenly (two partitions each), but the member that begins with five of the
eight gets more than it can do, and falls ever further behind.

``parcels`` has one partition that gets more than the seven others. Kafka's ``uniform`` gives each of two members four,
whichever they are: who holds the busy one gets more than it can do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Held = tuple[tuple[str, int], ...]
Client = Literal["aiokafka", "librdkafka"]
Follow = Literal["apply", "dry run"]
FOLLOWER, APPLY = "kagent.follow", "kagent apply"


@dataclass(frozen=True, slots=True)
class DemoGroup:
    """A group of the demo. ``start``: what each member begins with, by place; None: the client's own assignor decides.
    ``cost``: seconds a record. ``client``: ``aiokafka`` or ``librdkafka`` (KIP-848 protocol). ``role``: what it is to show.
    ``follows``: what makes it take its plan, FOLLOWER or APPLY; ``twin``: the group that is the same and does not."""

    name: str
    topics: tuple[str, ...]
    members: int
    cost: float
    role: str
    commit: float = 2.0
    start: tuple[Held, ...] | None = None
    client: Client = "aiokafka"
    follows: str = ""
    twin: str = ""


@dataclass(frozen=True, slots=True)
class DemoMember:
    """One consumer process of a group: ``place`` counts from 0, ``cost`` is seconds a record, ``commit`` seconds.

    ``start``: what each place of the group begins with, by an assignor of the client's own; None: the built-in one.
    ``follow``: how ``kagent.follow`` stands above it: ``apply``, ``dry run`` (it says what it would do), or not at all.
    """

    bootstrap: str
    group: str
    place: int
    topics: tuple[str, ...]
    cost: float = 0.001
    commit: float = 1.0
    client: Client = "aiokafka"
    start: tuple[Held, ...] | None = None
    follow: Follow | None = None

    @property
    def client_id(self) -> str:
        """``FixedList`` knows a member's place by it: the broker begins the member id with it."""
        return f"{self.group}-{self.place + 1}"


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """Steady inflow of a topic: records/s per partition, and how many records lie there at the start."""

    topic: str
    rates: tuple[float, ...]
    backlog: tuple[int, ...] = field(default=())


def _orders(*partitions: int) -> Held:
    return tuple(("orders", p) for p in partitions)


SKEWED = (_orders(0, 1, 2, 3, 4), _orders(5), _orders(6), _orders(7))
RATE = 20.0
COST = 0.0125
"""80 records/s a member: five partitions bring 100/s, two bring 40/s."""

PARCELS = (61.0, *(9.0,) * 7)
"""61 and three times 9 are 88/s; 61 and 9 are 70."""

# clicks: one partition gets eight times as much as the others, and its member keeps up. Unequal inflow alone is no skew.
# payments: one partition gets 90 records/s, more than the 70 that a member of `hot` does (1 / 0.0143 s): no move helps.
LOADS = (
    TopicLoad("orders", (RATE,) * 8, (200,) * 8),
    TopicLoad("parcels", PARCELS, (100,) * 8),
    TopicLoad("clicks", (5.0, 5.0, 5.0, 40.0), ()),
    TopicLoad("payments", (90.0, 2.0, 2.0, 2.0), (600, 0, 0, 0)),
)
# Twins differ in `follows` alone, so what they differ in later comes from it.
GROUPS = (
    DemoGroup(
        "orders-a",
        ("orders",),
        4,
        COST,
        "follows the advice",
        start=SKEWED,
        follows=FOLLOWER,
        twin="orders-b",
    ),
    DemoGroup("orders-b", ("orders",), 4, COST, "its twin, does not follow", start=SKEWED),
    DemoGroup(
        "parcels-a",
        ("parcels",),
        2,
        COST,
        "KIP-848, follows",
        client="librdkafka",
        follows=APPLY,
        twin="parcels-b",
    ),
    DemoGroup("parcels-b", ("parcels",), 2, COST, "its twin, does not follow", client="librdkafka"),
    DemoGroup("healthy", ("clicks",), 2, 0.001, "unequal inflow, caught up, commits every 15 s", commit=15.0),
    DemoGroup("hot", ("payments",), 3, 0.0143, "one key holds most: no move can help"),
)
FOLLOWERS = tuple(group for group in GROUPS if group.follows)
TWINS = frozenset(name for group in FOLLOWERS for name in (group.name, group.twin))

POLICY = {
    "settle": 6.0,
    "min_behind": 5.0,
    "hold": 25.0,
    "cooldown": 20.0,
    "update_every": 5.0,
    "cadence": 2.0,
}
"""Waiting times of production, shortened; the demo says so on the screen."""
# Ticks and samples as often as the shortened waits need: an incident must open and resolve within minutes.
WORKER = {"tick": 2.0, "sample": 1.0, "state_interval": 5.0}
PIPELINE = {"trigger": 1.0, "driver_memory": "512m"}
