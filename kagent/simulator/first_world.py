"""The world when a scenario begins: logs with their backlog, and clients that have not joined yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kagent.errors import InputError
from kagent.simulator.conditions import families_of
from kagent.simulator.scenario_file import ScenarioTopic, SimulatorScenario
from kagent.simulator.world import MEMORY_S, NEVER, NOBODY, SLOT, ClientColumns, Floats, Longs, World


def without_members(scenario: SimulatorScenario, seeds: Sequence[int]) -> World:
    """The world before the first member joins: all is read but the scenario's backlog."""
    # A generator per seed: a seed's run is the same alone and beside others. In this order, or each would draw other numbers.
    randoms = tuple(np.random.default_rng(seed) for seed in seeds)
    topic = np.repeat(np.arange(len(scenario.topics)), [t.partitions for t in scenario.topics])
    many, weight = len(randoms), _weights(scenario, randoms)
    logs = _logs(scenario, randoms, topic, weight)
    clients = _clients(scenario, seeds, randoms)
    return World(
        scenario=scenario,
        randoms=randoms,
        numbers=np.array(seeds, np.int64),
        clients=clients,
        protocol=scenario.clients.protocol or ("kip848" if scenario.kind == "consumer" else "eager"),
        order=[[] for _ in randoms],
        member_ids=[{} for _ in randoms],
        joined=[0] * many,
        generation=np.ones(many, np.int64),
        # The last rebalance was a day ago: no settle time is running.
        changed_at=np.full(many, -86_400.0),
        takes_effect=np.full(many, NEVER),
        frozen=np.zeros(many, bool),
        topic=topic,
        partition=np.concatenate([np.arange(t.partitions) for t in scenario.topics]),
        owner=np.full(weight.shape, NOBODY),
        target=np.full(weight.shape, NOBODY),
        cost=np.array([t.cost for t in scenario.topics])[topic],
        held=np.zeros(weight.shape, bool),
        poisoned=np.zeros(len(topic), bool),
        priority=_priorities(scenario)[topic],
        down_until=np.zeros(len(topic)),
        weight=weight,
        burst=np.ones(weight.shape),
        burst_until=np.full(many, NEVER),
        next_burst=np.array([_wait(r, scenario.world.burst_every_s) for r in randoms]),
        lso=np.full(weight.shape, np.inf),
        factor=np.ones(len(scenario.topics)),
        ids={t.name: f"id-{t.name}-0" for t in scenario.topics},
        usual=np.zeros(weight.shape),
        flow=np.zeros(weight.shape),
        noise=np.zeros(weight.shape),
        noise_until=np.full(many, -1.0),
        memory_s=_memory_s(scenario, clients),
        scaled_at=np.full(many, -NEVER),
        **logs,
    )


def _weights(scenario: SimulatorScenario, randoms: Sequence[np.random.Generator]) -> Floats:
    """Each partition's share of its topic's records, by seed."""
    return np.stack([np.concatenate([_spread(t, r) for t in scenario.topics]) for r in randoms])


def _logs(
    scenario: SimulatorScenario, randoms: Sequence[np.random.Generator], topic: Longs, weight: Floats
) -> dict[str, Any]:
    """Where each log begins and ends, and up to where it was read and committed."""
    # Logs that have been there for long: offsets are not small, and retention has removed the oldest.
    base = np.stack([np.floor(r.uniform(1e5, 1e6, len(topic))) for r in randoms])
    backlog = np.array([t.backlog + t.delay * t.inflow for t in scenario.topics])[topic] * weight
    # Members' commit timers are not in step with kagent's clock.
    since = np.array([-r.uniform(0, scenario.commit) for r in randoms])
    return {
        "start": np.maximum(base - 5e4, 0),
        "end": base + np.floor(backlog),
        "sent": base + np.floor(backlog),
        "position": base.copy(),
        "before": base.copy(),
        "block_end": base.copy(),
        "key": np.zeros(base.shape),
        "committed": base.copy(),
        "commit_time": np.repeat(since[:, None], len(topic), axis=1),
    }


def _priorities(scenario: SimulatorScenario) -> Floats:
    """By topic: those that clients name come first, in their order."""
    ranks = {name: at for at, name in enumerate(scenario.clients.priority)}
    return np.array([float(ranks.get(t.name, len(ranks))) for t in scenario.topics])


def _memory_s(scenario: SimulatorScenario, clients: ClientColumns) -> float:
    """For how long log ends are remembered, s."""
    return max(
        120.0,
        max(t.delay for t in scenario.topics) + 2 * SLOT,
        MEMORY_S if clients.arrival.any() else 0.0,
        scenario.hours * 3600 if scenario.world.remember_all else 0.0,
    )


def _clients(
    scenario: SimulatorScenario, seeds: Sequence[int], randoms: Sequence[np.random.Generator]
) -> ClientColumns:
    made, families = scenario.clients, families_of(scenario.clients, scenario.kind)
    mine = tuple(families[seed % len(families)] for seed in seeds)
    service = [made.service or f.service for f in mine]
    commits = [made.commits or f.commits for f in mine]
    contents = [made.contents or f.contents for f in mine]
    # Even on a logarithmic scale: small records are as usual as large ones.
    bytes_ = [made.record_bytes or float(np.exp(r.uniform(np.log(70), np.log(2000)))) for r in randoms]
    # A family's interval counts only where the scenario leaves its own at the default.
    own = scenario.commit == SimulatorScenario.commit and bool(made.family) and made.protocol != "instant"
    return ClientColumns(
        families=mine,
        even=np.array([s == "even" for s in service]),
        arrival=np.array([s == "arrival" for s in service]),
        timer=np.array([c == "timer" for c in commits]),
        by_poll=np.array([c in ("poll", "fetch") for c in commits]),
        by_partition=np.array([c == "partition" for c in commits]),
        everything=np.array([c == "fetch" for c in commits]),
        assigned=np.array([c == "assigned" for c in contents]),
        retries_ahead=np.array([f.retries_ahead for f in mine]),
        max_poll=np.array([float(made.max_poll_records or f.max_poll or 500) for f in mine]),
        block=np.floor(np.array([made.fetch_bytes / b for b in bytes_])),
        interval=np.array([f.interval_s if own else scenario.commit for f in mine]),
        ahead=np.array([f.ahead if made.commits_ahead is None else made.commits_ahead for f in mine]),
    )


def _wait(random: np.random.Generator, mean: float) -> float:
    return float(random.exponential(mean)) if mean else NEVER


def _spread(topic: ScenarioTopic, random: np.random.Generator) -> Floats:
    n = topic.partitions
    if isinstance(topic.spread, list):
        weights = np.resize(np.array(topic.spread, float), n)
    elif topic.spread == "zipf":
        weights = 1.0 / np.arange(1, n + 1)
        random.shuffle(weights)
    elif ":" in topic.spread:
        low, high = (float(x) for x in topic.spread.split(":"))
        weights = np.linspace(low, high, n)
    elif topic.spread == "even":
        weights = np.ones(n)
    else:
        raise InputError(f"topics.{topic.name}.spread: a list, even, zipf or low:high, not {topic.spread!r}")
    return np.asarray(weights / weights.sum())
