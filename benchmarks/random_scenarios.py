"""Groups that nobody thought of: `python benchmarks/random_scenarios.py FOLDER`, then `python benchmarks/quiet.py FOLDER`.

Writes scenario files of random groups (members, topics, costs, clients, commit intervals, loads), each with one random
fault whose truth follows from arithmetic alone: work that arrives for each member, partition and group in seconds a second.
`--faults none` writes healthy ones: eight hours with deployments, restarts of the brokers, pauses, bursts, tides and changes of scale
at random times, near each other too, all of which the members make up for within minutes, by the same arithmetic.
Nothing of the judgement is used, and no file is chosen by what the judgement says of it: a share of right verdicts that was
measured on fresh seeds is one that no scenario was written for.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from typing import Any

import yaml

from kagent.simulator.conditions import FAMILIES

KINDS = {
    "java": "classic_java",
    "java-batch": "classic_java",
    "java-848": "consumer",
    "librdkafka": "classic_librdkafka",
    "librdkafka-batch": "classic_librdkafka",
    "aiokafka": "classic_python",
    "aiokafka-batch": "classic_python",
    "kafka-python": "classic_python",
    "kafka-python-batch": "classic_python",
    "franz-go-batch": "classic",
    "sarama": "classic",
    "kafka-go": "classic",
    "streams": "streams",
    "connect": "connect",
}
"""Client family → kind of its groups. Clients without a bound on their poll are left out: they say nothing for a whole fetch."""
MOVABLE = tuple(name for name in KINDS if name not in ("streams", "connect"))
"""Families whose groups an assignor can relieve: Streams places tasks, and Connect's tasks hold what they were given."""
Place = tuple[str, int]
Work = dict[Place, float]
"""(topic, partition) → seconds of work that arrive a second; a member can do 1."""

FITS = 0.8
"""A member with less work keeps up for certain, and an assignment below it catches up: a fifth is room for noise and bursts."""
OVERLOADED = 1.25
"""A member with more work falls a minute behind within five."""
GREATEST_FACTOR = 2.2
HEALTHY_HOURS = 8
APART_S = 480
"""Two things happen so far apart at least: each is made up for before the next."""
CAUGHT_UP_S = 240.0
"""A burst or a pause of a healthy group is made up for within this time, at high tide too: what nobody would want to be told of."""
ATTEMPTS = 100_000
"""Most random groups do not have room for a given fault; a seed that finds none in so many has a mistake."""


@dataclass(frozen=True)
class RandomGroup:
    """A group that keeps up: what arrives for each partition, and who holds it."""

    family: str
    costs: dict[str, float]
    work: Work
    held: dict[str, list[Place]]
    assignor: str
    noise: float
    commit_s: float

    @property
    def sizes(self) -> dict[str, int]:
        """Topic → partitions."""
        return {topic: sum(t == topic for t, _ in self.work) for topic in self.costs}

    def work_of(self, member: str, work: Work) -> float:
        """Seconds of work a second that arrive for the member."""
        return sum(work[place] for place in self.held[member])


Fault = tuple[str, list[dict[str, Any]]]
"""The verdict that is true, and the events that make it so."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files go; it is made")
    parser.add_argument("--count", type=int, default=12, help="files of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", nargs="+", choices=[*sorted(FAULTS), "none"], default=sorted(FAULTS))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for fault in args.faults:
        # A generator for each fault: more of one leave the others as they are.
        dice = random.Random(f"{args.seed} {fault}")
        for number in range(args.count):
            made = healthy(dice) if fault == "none" else scenario(dice, fault)
            file = args.folder / f"{fault}-{args.seed}-{number:03}.yaml"
            file.write_text(yaml.safe_dump(made, sort_keys=False))
    return 0


def scenario(dice: random.Random, fault: str) -> dict[str, Any]:
    """A scenario file's content: a random group, and from some time on the fault."""
    onset = dice.choice((900, 1500, 2400))
    for group in _groups(dice):
        made = FAULTS[fault](dice, group)
        if made is not None:
            verdict, events = made
            return {
                "about": f"A random group of {group.family} clients: {fault}.",
                **_file_of(group),
                "assignment": _by_topic(group),
                "expect": verdict,
                "onset": onset,
                "hours": round(onset / 3600 + 1.2, 2),
                "events": [{"at": onset, **event} for event in events],
            }
    raise AssertionError(f"no random group has room for {fault}")


def healthy(dice: random.Random) -> dict[str, Any]:
    """A scenario file's content: a random group to which everything happens that groups make up for by themselves."""
    group = next(g for g in _groups(dice) if g.family in MOVABLE and _has_room_for_one_more(g))
    times = dice.sample(range(900, HEALTHY_HOURS * 3600 - 1800, APART_S), dice.randint(6, 20))
    # One tide and one member more, or loads would multiply.
    happen = [_tide, _one_more, *dice.choices(ORDINARY, k=len(times) - 2)]
    events = [
        {"at": at, **event} for at, make in zip(times, happen, strict=True) for event in make(dice, group)
    ]
    return {
        "about": f"A random healthy group of {group.family} clients.",
        **_file_of(group),
        "assignor": group.assignor,
        "hours": HEALTHY_HOURS,
        "events": sorted(events, key=lambda event: event["at"]),
    }


def _has_room_for_one_more(group: RandomGroup) -> bool:
    return _keeps_up(replace(group, held=DEALS[group.assignor](group.sizes, len(group.held) + 1)))


def _keeps_up(group: RandomGroup) -> bool:
    """Whether every member holds something and keeps up."""
    return all(held and group.work_of(m, group.work) < FITS for m, held in group.held.items())


def _deployment(dice: random.Random, group: RandomGroup) -> list[dict[str, Any]]:
    keep = dice.random() < 0.7
    return [
        {"do": "deploy", "every": dice.choice((20, 40, 60, 90)), "down": dice.choice((5, 10)), "keep": keep}
    ]


def _brokers(dice: random.Random, group: RandomGroup) -> list[dict[str, Any]]:
    return [{"do": "restart_brokers", "every": dice.choice((60, 120, 180)), "down": dice.choice((5, 8, 12))}]


def _pause(dice: random.Random, group: RandomGroup) -> list[dict[str, Any]]:
    """A member does nothing for a while: a long garbage collection, a slow call."""
    # What came meanwhile is worked off by what the member has to spare.
    longest = CAUGHT_UP_S * (1 - FITS) / FITS
    return [{"do": "hang", "member": dice.choice(tuple(group.held)), "for": round(dice.uniform(5, longest))}]


def _burst(dice: random.Random, group: RandomGroup) -> list[dict[str, Any]]:
    """More than the members can do, for so short a time that they soon catch up."""
    factor = dice.uniform(1.5, 5)
    longest = CAUGHT_UP_S * (1 - FITS) / (FITS * factor - 1)
    topic = dice.choice(tuple(group.costs))
    return [{"do": "inflow", "topic": topic, "factor": round(factor, 2), "for": round(dice.uniform(5, longest))}]  # fmt: skip


def _failover(dice: random.Random, group: RandomGroup) -> list[dict[str, Any]]:
    """All members are slow together for so short a time that they soon catch up: what they share does not answer."""
    factor = dice.uniform(1.5, 5)
    longest = CAUGHT_UP_S * (1 - FITS) / (FITS - 1 / factor)
    seconds = round(dice.uniform(5, longest))
    return [
        {"do": "cost", "topic": topic, "factor": round(factor, 2), "for": seconds} for topic in group.costs
    ]


def _tide(dice: random.Random, group: RandomGroup) -> list[dict[str, Any]]:
    """An hour or two with less or more, which the members can do."""
    factor = dice.uniform(0.3, FITS / max(group.work_of(m, group.work) for m in group.held))
    return [
        {"do": "inflow", "topic": topic, "factor": round(factor, 2), "for": 5400} for topic in group.costs
    ]


def _one_more(dice: random.Random, group: RandomGroup) -> list[dict[str, Any]]:
    return [{"do": "join", "member": f"m{len(group.held)}"}]


ORDINARY: tuple[Callable[[random.Random, RandomGroup], list[dict[str, Any]]], ...] = (
    _deployment,
    _deployment,
    _brokers,
    _pause,
    _burst,
    _failover,
    _burst,
)
"""What happens to a healthy group; twice what happens often."""


def _file_of(group: RandomGroup) -> dict[str, Any]:
    return {
        "topics": {topic: _topic(group, topic, size) for topic, size in group.sizes.items()},
        "members": len(group.held),
        "kind": KINDS[group.family],
        "clients": {"family": group.family},
        "commit": group.commit_s,
    }


def _by_topic(group: RandomGroup) -> dict[str, dict[str, list[int]]]:
    return {
        member: {
            topic: [p for t, p in held if t == topic]
            for topic in group.costs
            if any(t == topic for t, _ in held)
        }
        for member, held in group.held.items()
    }


def _topic(group: RandomGroup, topic: str, size: int) -> dict[str, Any]:
    arriving = [group.work[topic, p] / group.costs[topic] for p in range(size)]
    return {
        "partitions": size,
        "inflow": sum(arriving),
        "spread": arriving,
        "cost": group.costs[topic],
        "noise": group.noise,
    }


def _groups(dice: random.Random) -> Iterator[RandomGroup]:
    """Random groups in which every member holds something and keeps up."""
    for _ in range(ATTEMPTS):
        group = _group(dice)
        if _keeps_up(group):
            yield group


def _group(dice: random.Random) -> RandomGroup:
    members = dice.choice((2, 3, 3, 4, 5, 6, 8, 10))
    names = [f"t{n}" for n in range(dice.choice((1, 1, 2, 3)))]
    sizes = {t: dice.choice((members, 2 * members, 3 * members, 6, 8, 12)) for t in names}
    cost_s = exp(dice.uniform(log(0.0005), log(0.06)))
    differ = dice.random() < 0.5
    costs = {t: cost_s * (exp(dice.uniform(-1, 1)) if differ else 1.0) for t in names}
    family = dice.choice(tuple(KINDS))
    work = _work(dice, sizes, members * dice.uniform(0.25, 0.65))
    assignor = dice.choice(tuple(DEALS))
    return RandomGroup(
        family,
        costs,
        work,
        DEALS[assignor](sizes, members),
        assignor,
        dice.choice((0.05, 0.1, 0.2, 0.3)),
        # Streams and Connect commit at their own intervals, which few people change.
        FAMILIES[family].interval_s if family not in MOVABLE else dice.choice((1, 5, 5, 10, 15, 30)),
    )


def _work(dice: random.Random, sizes: dict[str, int], total: float) -> Work:
    uneven = dice.choice((0.0, 0.3))
    weights = {(t, p): 1 + dice.uniform(-uneven, uneven) for t, size in sizes.items() for p in range(size)}
    shares = {t: dice.uniform(0.5, 1.5) / size for t, size in sizes.items()}
    all_of_it = sum(weight * shares[t] for (t, _), weight in weights.items())
    return {place: total * weight * shares[place[0]] / all_of_it for place, weight in weights.items()}


def _range(sizes: dict[str, int], members: int) -> dict[str, list[Place]]:
    """As RangeAssignor: topic by topic, the first members get one more."""
    held: dict[str, list[Place]] = {f"m{n}": [] for n in range(members)}
    for topic, size in sizes.items():
        each, more = divmod(size, members)
        owners = [m for n, m in enumerate(held) for _ in range(each + (n < more))]
        for partition, member in enumerate(owners):
            held[member].append((topic, partition))
    return held


def _round_robin(sizes: dict[str, int], members: int) -> dict[str, list[Place]]:
    """As RoundRobinAssignor: all partitions of all topics in turn."""
    places = [(t, p) for t, size in sizes.items() for p in range(size)]
    return {f"m{n}": places[n::members] for n in range(members)}


DEALS = {"range": _range, "roundrobin": _round_robin}


def _best(work: Work, members: int) -> float:
    """The work of the fullest member when the largest partition goes to the emptiest member in turn."""
    full = [0.0] * members
    for amount in sorted(work.values(), reverse=True):
        full[full.index(min(full))] += amount
    return max(full)


def _skew(dice: random.Random, group: RandomGroup) -> Fault | None:
    """Some partitions of one member grow until it is overloaded; another assignment has room for all."""
    member = dice.choice(tuple(group.held))
    topic = dice.choice(group.held[member])[0]
    own = [p for t, p in group.held[member] if t == topic]
    hot = dice.sample(own, dice.randint(1, len(own)))
    grows = sum(group.work[topic, p] for p in hot)
    others = group.work_of(member, group.work) - grows
    factor = (dice.uniform(OVERLOADED, GREATEST_FACTOR) - others) / grows
    work = group.work | {(topic, p): group.work[topic, p] * factor for p in hot}
    if group.family not in MOVABLE or _best(work, len(group.held)) > FITS:
        return None
    return "rebalance", [{"do": "inflow", "topic": topic, "partition": hot, "factor": factor}]


def _hot(dice: random.Random, group: RandomGroup) -> Fault | None:
    """One partition grows to more than a member can do; the other members have room for all others."""
    topic, partition = dice.choice(tuple(group.work))
    factor = dice.uniform(OVERLOADED, GREATEST_FACTOR) / group.work[topic, partition]
    rest = {place: amount for place, amount in group.work.items() if place != (topic, partition)}
    if len(group.held) < 3 or _best(rest, len(group.held) - 1) > FITS:
        return None
    return "hot_partition", [{"do": "inflow", "topic": topic, "partition": [partition], "factor": factor}]


def _slow(dice: random.Random, group: RandomGroup) -> Fault | None:
    """One member of four or more becomes slow; all others get as much of every topic and keep up."""
    member, speed = dice.choice(tuple(group.held)), dice.uniform(0.2, 0.7)
    if len(group.held) < 4 or group.work_of(member, group.work) / speed < OVERLOADED:
        return None
    got = {
        m: {t: sum(group.work[p] for p in held if p[0] == t) for t in group.costs}
        for m, held in group.held.items()
    }
    if any(got[other][t] < 0.95 * got[member][t] for other in got for t in group.costs):
        return None
    return "slow_member", [{"do": "speed", "member": member, "value": speed}]


def _too_few(dice: random.Random, group: RandomGroup) -> Fault | None:
    """Everything grows until no member can keep up."""
    share = sum(group.work.values()) / len(group.held)
    factor = dice.uniform(OVERLOADED, GREATEST_FACTOR) / share
    if min(group.work_of(m, group.work) for m in group.held) * factor < 1.05:
        return None
    return "under_provisioned", [{"do": "inflow", "topic": topic, "factor": factor} for topic in group.costs]


def _hang(dice: random.Random, group: RandomGroup) -> Fault | None:
    """One member of three or more does nothing any more and stays in the group."""
    member = dice.choice(tuple(group.held))
    return ("stuck_member", [{"do": "hang", "member": member}]) if len(group.held) > 2 else None


def _poison(dice: random.Random, group: RandomGroup) -> Fault | None:
    """A record of one partition is retried for ever; its member has another partition of the topic."""
    member = dice.choice(tuple(group.held))
    topic, partition = dice.choice(group.held[member])
    if sum(t == topic for t, _ in group.held[member]) < 2:
        return None
    return "stalled", [{"do": "poison", "topic": topic, "partition": [partition]}]


FAULTS: dict[str, Callable[[random.Random, RandomGroup], Fault | None]] = {
    "skew": _skew,
    "hot": _hot,
    "slow": _slow,
    "too-few": _too_few,
    "hang": _hang,
    "poison": _poison,
}

if __name__ == "__main__":
    raise SystemExit(main())
