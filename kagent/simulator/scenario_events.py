"""What may happen to a group in a scenario, by the name of its ``do``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from kagent.errors import InputError
from kagent.simulator import rebalancing as r
from kagent.simulator.committing import write
from kagent.simulator.world import World

Event = Mapping[str, Any]


def happen(world: World, event: Event) -> list[Event]:
    """Let an event happen; the events that follow from it."""
    made = EVENTS.get(str(event["do"]))
    if made is None:
        raise InputError(
            f"{world.scenario.name}: events: nothing is called {event['do']!r}; there are: {', '.join(sorted(EVENTS))}"
        )
    return made(world, event) or []


def _join(world: World, event: Event) -> None:
    for name in _members(event):
        for seed in _groups(world, event):
            r.join(world, seed, name)


def _leave(world: World, event: Event) -> None:
    for name in _members(event):
        for seed in _groups(world, event):
            r.leave(world, seed, name)


def _groups(world: World, event: Event) -> Iterable[int]:
    """The groups that an event happens to: all, or the one that a deployment names."""
    return (event["row"],) if "row" in event else range(world.seeds)


def _members(event: Event) -> list[str]:
    names = event["member"]
    return [names] if isinstance(names, str) else list(names)


def _places(world: World, event: Event) -> list[tuple[int, int]]:
    """(seed, slot) of the event's members where they are in the group."""
    slots = [world.slots.index(name) for name in _members(event) if name in world.slots]
    return [(seed, slot) for slot in slots for seed in range(world.seeds) if slot in world.order[seed]]


def _parts(world: World, event: Event) -> Any:
    rows = world.rows(event["topic"])
    return rows[np.atleast_1d(event["partition"])] if "partition" in event else rows


def _deploy(world: World, event: Event) -> list[Event]:
    """All members replaced one by one under new names (``keep``: under their own), ``every`` s."""
    every, down = float(event.get("every", 60)), float(event.get("down", 10))
    mark = event.get("mark", f"d{int(world.time)}")
    out: list[Event] = []
    # Group by group: an autoscaler has given each its own members.
    for row in range(world.seeds):
        for number, name in enumerate(world.names(row)):
            at = world.time + number * every
            # Without the mark of the last deployment, or names would grow with each.
            new = name if event.get("keep") else f"{name.split('.')[0]}.{mark}"
            out += [
                {"at": at, "do": "leave", "member": name, "row": row},
                {"at": at + down, "do": "join", "member": new, "row": row},
            ]
    return out


def _hang(world: World, event: Event) -> list[Event]:
    """Members stay in the group and do nothing; ``for`` ends it (a static member that is restarted)."""
    hung = bool(event.get("hung", True))
    for place in _places(world, event):
        world.hung[place] = hung
    if hung and "for" in event:
        back = {"at": world.time + float(event["for"]), "do": "hang", "hung": False}
        return [{**back, "member": event["member"]}]
    return []


def _speed(world: World, event: Event) -> None:
    for place in _places(world, event):
        world.speed[place] = float(event["value"])


def _hold(world: World, event: Event) -> list[Event]:
    """Partitions that no member reads: a poison record, or a paused topic; ``for`` ends it by itself."""
    rows = world.rows(event["topic"])
    if "partition" in event:
        rows = rows[np.atleast_1d(event["partition"])]
    world.held[:, rows] = bool(event.get("held", True))
    return (
        [{**event, "at": world.time + float(event["for"]), "held": False, "for": 1e18}]
        if event.get("for", 1e18) < 1e18
        else []
    )


def _inflow(world: World, event: Event) -> list[Event]:
    """A topic's inflow times ``factor``, for good or ``for`` a number of seconds; ``partition``: of that one alone."""
    rows = world.rows(event["topic"])
    factor = float(event["factor"])
    if "partition" in event:
        rows = rows[np.atleast_1d(event["partition"])]
        world.weight[:, rows] *= factor
    else:
        world.factor[world.topic[rows[0]]] *= factor
    # The inflow is computed when the noise changes: due at the next step.
    world.noise_until[:] = -1.0
    if "for" in event:
        back = {k: v for k, v in event.items() if k != "for"}
        return [{**back, "at": world.time + float(event["for"]), "factor": 1 / factor}]
    return []


def _rest(world: World, event: Event) -> list[Event]:
    """All members stay in the group and read nothing, on purpose; ``for`` ends it."""
    world.resting = bool(event.get("resting", True))
    if world.resting and "for" in event:
        return [{"at": world.time + float(event["for"]), "do": "rest", "resting": False}]
    return []


def _batch(world: World, event: Event) -> list[Event]:
    """A job that works for ``run`` s in every ``every`` s; ``leave``: its members go in between."""
    every, run = float(event["every"]), float(event["run"])
    again: Event = {**event, "at": world.time + every}
    if event.get("leave"):
        names = [f"m{n}" for n in range(world.scenario.members)]
        for seed in range(world.seeds):
            for name in names:
                if name not in world.names(seed):
                    r.enter(world, seed, name)
            r.rebalance(world, seed)
        return [again, {"at": world.time + run, "do": "empty"}]
    world.resting = False
    return [again, {"at": world.time + run, "do": "rest"}]


def _empty(world: World, event: Event) -> None:
    """All members leave at once, having committed."""
    write(world, world.time, world.owner >= 0, np.floor(world.position))
    for seed in range(world.seeds):
        r.clear(world, seed)


def _rewind(world: World, event: Event) -> None:
    """An operator sets the group back by a number of seconds of inflow."""
    back = world.usual * float(event["seconds"])
    world.position = np.maximum(np.floor(world.position - back), world.start)
    world.block_end = world.position.copy()
    write(world, world.time, np.ones(world.owner.shape, bool), world.position)


def _recreate(world: World, event: Event) -> None:
    """A topic is deleted and created anew."""
    rows = world.rows(event["topic"])
    for name in ("start", "end", "sent", "position", "before", "block_end"):
        column = getattr(world, name).copy()
        column[:, rows] = 0.0
        setattr(world, name, column)
    # The remembered log ends too, or members would be late by the records of the old topic.
    for _, end in world.past:
        end[:, rows] = 0.0
    world.ids[event["topic"]] = f"id-{event['topic']}-{int(world.time)}"
    for seed in range(world.seeds):
        r.rebalance(world, seed)


def _transaction(world: World, event: Event) -> list[Event]:
    """A producer holds a transaction open on a partition: no member reads beyond it; ``for`` ends it."""
    rows = world.rows(event["topic"])[np.atleast_1d(event.get("partition", 0))]
    # The last stable offset stays at the first record of the open transaction (KIP-98).
    world.lso[:, rows] = np.inf if event.get("open") is False else np.floor(world.end[:, rows])
    if "for" in event:
        return [
            {
                **{k: v for k, v in event.items() if k != "for"},
                "at": world.time + float(event["for"]),
                "open": False,
            }
        ]
    return []


def _retention(world: World, event: Event) -> None:
    """Log starts move up to a number of records before the end."""
    rows = world.rows(event["topic"])
    if "partition" in event:
        rows = rows[np.atleast_1d(event["partition"])]
    kept = np.floor(world.end[:, rows]) - float(event["keep"])
    world.start[:, rows] = np.maximum(world.start[:, rows], kept)


def _storm(world: World, event: Event) -> list[Event]:
    """A member that leaves and comes back every ``every`` s, ``times`` times."""
    name, every = str(event["member"]), float(event["every"])
    out: list[Event] = []
    for turn in range(int(event.get("times", 30))):
        at = world.time + turn * every
        out += [
            {"at": at, "do": "leave", "member": name},
            {"at": at + every / 2, "do": "join", "member": name},
        ]
    return out


def _repeat(world: World, event: Event) -> list[Event]:
    """An event again and again: {do: repeat, every: s, event: {…}}."""
    return [{**event["event"], "at": world.time}, {**event, "at": world.time + float(event["every"])}]


def _backlog(world: World, event: Event) -> None:
    """So many records come at once, to each of the partitions."""
    for name in ("sent", "end"):
        column = getattr(world, name).copy()
        column[:, _parts(world, event)] += float(event["records"])
        setattr(world, name, column)


def _cost(world: World, event: Event) -> list[Event]:
    """Records take ``factor`` times as long: a slow database, a new version."""
    factor = float(event["factor"])
    world.cost[_parts(world, event)] *= factor
    if "for" not in event:
        return []
    back = {k: v for k, v in event.items() if k != "for"}
    return [{**back, "at": world.time + float(event["for"]), "factor": 1 / factor}]


def _leak(world: World, event: Event) -> None:
    """Members that lose this share of their speed every hour."""
    for place in _places(world, event):
        world.leak[place] = float(event["per_hour"])


def _poison(world: World, event: Event) -> list[Event]:
    """A record that is retried for ever: its partition stands, and some clients commit one record ahead and back again."""
    held = bool(event.get("held", True))
    parts = _parts(world, event)
    world.held[:, parts] = held
    world.poisoned[parts] = held
    if not held or "for" not in event:
        return []
    back = {k: v for k, v in event.items() if k != "for"}
    return [{**back, "at": world.time + float(event["for"]), "held": False}]


def _restart_brokers(world: World, event: Event) -> list[Event]:
    """Brokers are restarted in turn, as Strimzi does it: each leaves its partitions without a leader, and the group
    without a coordinator, for ``down`` seconds; ``every``: seconds until the next one."""
    every, down = float(event.get("every", 120)), float(event.get("down", 8))
    turn, brokers = int(event.get("turn", 0)), world.scenario.world.brokers
    # Kafka, too, spreads the leaders of each topic over the brokers in turn.
    led = (world.partition + world.topic) % brokers == turn
    world.down_until = np.where(led, world.time + down, world.down_until)
    if turn == 0:
        world.coordinator_down_until = world.time + down
    if turn + 1 >= brokers:
        return []
    return [{**event, "at": world.time + every, "turn": turn + 1}]


def _outage(world: World, event: Event) -> list[Event]:
    """The whole cluster is away ``for`` some seconds: no client writes, reads or commits, and kagent sees nothing."""
    if "for" not in event:
        # Producers have given up what is older: delivery.timeout.ms, https://kafka.apache.org/documentation/#producerconfigs
        world.sent = np.minimum(world.sent, world.end + 120.0 * world.usual)
        return []
    until = world.time + float(event["for"])
    world.down_until = np.maximum(world.down_until, until)
    world.coordinator_down_until = world.outage_until = until
    return [{"at": until, "do": "outage"}]


EVENTS: dict[str, Callable[[World, Event], list[Event] | None]] = {
    "join": _join,
    "leave": _leave,
    "deploy": _deploy,
    "hang": _hang,
    "speed": _speed,
    "hold": _hold,
    "inflow": _inflow,
    "rest": _rest,
    "batch": _batch,
    "empty": _empty,
    "rewind": _rewind,
    "recreate": _recreate,
    "transaction": _transaction,
    "retention": _retention,
    "storm": _storm,
    "repeat": _repeat,
    "backlog": _backlog,
    "cost": _cost,
    "leak": _leak,
    "poison": _poison,
    "restart_brokers": _restart_brokers,
    "outage": _outage,
}
