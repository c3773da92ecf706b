"""Does following the plan pay? The same skewed load on a real broker, drained by groups that differ in one thing.

    python benchmarks/closed_loop.py [--image docs/images/closed_loop.png] [--quick]

For each load the topics are filled once, and four groups of equally fast consumers drain the same records side by side
(each group has its own offsets): assigned by range, by cooperative-sticky, by lag per topic (with the true lags at the
start), and by range with kagent's plan followed: every two seconds the group's lag is read from the broker, planned
for, and the moves are made by giving up and taking over partitions at their committed offsets. More records come in,
with the same skew, for the first ten seconds. A consumer is slow by sleeping, as one is that waits for a database.

Printed: seconds until all is committed, next to what no assignment could beat (all records ÷ all consumers, or those of
one partition ÷ one consumer), and the greatest member lag after ten seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka import KafkaError as Code

from kagent.embedded.broker import Broker
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic
from kagent.planner import PlanningProblem, plan
from kagent.settings import Cluster
from kagent.strategies import Member, Scenario, assign

RATE = 300
"""Records a consumer does per second."""
DRAIN = 8.0
"""Seconds that the backlog alone would take if it were spread evenly."""
INFLOW, INFLOW_SECONDS = 0.3, 10.0
"""Share of what the group can do that comes in meanwhile, and for how long."""
EVERY = 2.0
LONGEST = 90.0
WAYS = ("range", "cooperative-sticky", "lag", "kagent")
MOVING = (
    Code.NOT_COORDINATOR,
    Code.COORDINATOR_NOT_AVAILABLE,
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code._WAIT_COORD,
)
Key = tuple[str, int]


@dataclass(frozen=True)
class Load:
    """Topics with a share of the records per partition, and the number of consumers."""

    name: str
    shares: dict[str, list[float]]
    members: int

    @property
    def keys(self) -> list[Key]:
        return [(topic, number) for topic, shares in self.shares.items() for number in range(len(shares))]

    @property
    def weights(self) -> np.ndarray:
        weights = np.concatenate([np.array(shares, float) for shares in self.shares.values()])
        return weights / weights.sum()


def loads(quick: bool) -> list[Load]:
    """Several skews, several sizes."""
    rng = np.random.default_rng(4)
    found = []
    for partitions, members in ((8, 3), (16, 6)) if quick else ((8, 3), (16, 5), (24, 8)):
        half = partitions // 2
        block = [8.0] * (half // 2) + [1.0] * (half - half // 2)
        zipf = (1 / np.arange(1, partitions + 1) ** 1.1)[rng.permutation(partitions)]
        size = f"{partitions}×{members}"
        found += [
            Load(f"first partitions hot, {size}", {"orders": block, "payments": block}, members),
            Load(
                f"zipf, {size}", {"orders": zipf[:half].tolist(), "payments": zipf[half:].tolist()}, members
            ),
            Load(
                f"one topic heavy, {size}",
                {"orders": [6.0] * half, "payments": rng.uniform(0.2, 1.0, half).tolist()},
                members,
            ),
        ]
    return found


def _patiently(ask: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Asks again while the group's coordinator is still being found."""
    until = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in MOVING or time.monotonic() > until:
                raise
            time.sleep(0.1)


class Worker(threading.Thread):
    """One consumer of fixed speed. It takes orders (give up, take over) between batches and commits as it goes."""

    def __init__(self, bootstrap: str, group: str, start_at: threading.Event, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.group, self.start_at, self.stop = group, start_at, stop
        self.orders: SimpleQueue[tuple[Callable[[], None], threading.Event]] = SimpleQueue()
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
                "enable.auto.offset.store": False, "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20, "queued.max.messages.kbytes": 256, "log_level": 0,
            }
        )  # fmt: skip
        self.position: dict[Key, int] = {}

    def take(self, keys: list[Key]) -> None:
        """From the committed offsets on."""
        parts = [TopicPartition(*key) for key in keys]
        found = _patiently(lambda: self.consumer.committed(parts, timeout=10)) if parts else []
        self.consumer.incremental_assign(
            [TopicPartition(p.topic, p.partition, max(p.offset, 0)) for p in found]
        )

    def give_up(self, keys: list[Key]) -> None:
        """Commits what is done, then lets go."""
        self.commit(keys)
        self.consumer.incremental_unassign([TopicPartition(*key) for key in keys])

    def commit(self, keys: list[Key] | None = None) -> None:
        done = {key: at for key, at in self.position.items() if keys is None or key in keys}
        if done:
            offsets = [TopicPartition(*key, at) for key, at in done.items()]
            _patiently(lambda: self.consumer.commit(offsets=offsets, asynchronous=False))
        for key in done:
            del self.position[key]

    def tell(self, order: Callable[[], None]) -> None:
        """Has the order carried out by the consumer's own thread, and waits for it."""
        done = threading.Event()
        self.orders.put((order, done))
        if not done.wait(30):
            raise TimeoutError(f"a consumer of {self.group} did not answer")

    def run(self) -> None:
        begun, done, committed = 0.0, 0, 0.0
        while not self.stop.is_set():
            try:
                order, carried_out = self.orders.get_nowait()
                order()
                carried_out.set()
            except Empty:
                pass
            if not self.start_at.is_set():
                time.sleep(0.01)
                continue
            now = time.monotonic()
            begun = begun or now
            due = int((now - begun) * RATE) - done
            if due < RATE * 0.04:
                time.sleep(0.02)
                continue
            for message in self.consumer.consume(due, timeout=0.05):
                if message.error() is None:
                    self.position[message.topic(), message.partition()] = message.offset() + 1
                    done += 1
            done = max(
                done, int((time.monotonic() - begun) * RATE) - RATE // 10
            )  # idle time is not made up for
            if now - committed > 0.25:
                self.commit()
                committed = now
        self.consumer.close()


@dataclass
class Group:
    """Consumers under one way of assigning, and what was seen of them."""

    way: str
    name: str
    workers: list[Worker]
    owned: dict[str, list[Key]]
    moves: int = 0
    drained: float | None = None
    seen: list[tuple[float, float]] = field(default_factory=list)
    """(seconds, greatest member lag)."""


def _assigned(way: str, load: Load, lags: dict[Key, int]) -> dict[str, list[Key]]:
    members = [Member(f"m{at}", tuple(load.shares)) for at in range(load.members)]
    counts = {topic: len(shares) for topic, shares in load.shares.items()}
    per_topic = {topic: [lags[topic, number] for number in range(count)] for topic, count in counts.items()}
    return assign("range" if way == "kagent" else way, Scenario.of(members, counts, lags=per_topic)).to_dict()


def _followed(group: Group, load: Load, lags: dict[Key, int]) -> None:
    """One turn of the loop: plan from the lags as the broker tells them, and make the moves."""
    columns = {topic: [lags[topic, n] for n in range(len(shares))] for topic, shares in load.shares.items()}
    told = plan(PlanningProblem.of({name: list(load.shares) for name in group.owned}, columns, group.owned))
    if told.skew_now < 1.2:
        return
    for move in told.moves:
        key = (move.topic, move.partition)
        source, to = int(str(move.source)[1:]), int(move.to[1:])
        group.workers[source].tell(lambda w=group.workers[source], k=key: w.give_up([k]))  # type: ignore[misc]
        group.workers[to].tell(lambda w=group.workers[to], k=key: w.take([k]))  # type: ignore[misc]
        group.owned[str(move.source)].remove(key)
        group.owned[move.to].append(key)
        group.moves += 1


def _produce(producer: Producer, counts: dict[Key, int]) -> None:
    for (topic, partition), count in counts.items():
        for _ in range(count):
            producer.produce(topic, b"x" * 64, partition=partition)
        producer.poll(0)
    producer.flush()


def run(load: Load, cluster: Cluster, admin: Admin) -> tuple[list[Group], float]:
    """All ways at once over the same topics; also the seconds that no assignment could beat."""
    tag = "".join(c if c.isalnum() else "-" for c in load.name.replace("×", "x"))
    load = Load(load.name, {f"{topic}.{tag}": shares for topic, shares in load.shares.items()}, load.members)
    assert not admin.create([NewTopic(t, len(s), 1) for t, s in load.shares.items()])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 20, "log_level": 0})
    backlog = {
        k: int(n) for k, n in zip(load.keys, np.rint(load.weights * RATE * DRAIN * load.members), strict=True)
    }
    _produce(producer, backlog)
    begin, stop = threading.Event(), threading.Event()
    groups = []
    for way in WAYS:
        name = f"{way}.{tag}"
        workers = [Worker(cluster.bootstrap, name, begin, stop) for _ in range(load.members)]
        groups.append(Group(way, name, workers, _assigned(way, load, backlog)))
        for at, worker in enumerate(workers):
            worker.start()
            worker.tell(lambda w=worker, keys=groups[-1].owned[f"m{at}"]: w.take(keys))  # type: ignore[misc]
    start = time.monotonic()
    begin.set()
    sent = np.zeros(len(load.keys))
    pouring = threading.Thread(target=_pour, args=(producer, load, start, sent), daemon=True)
    pouring.start()
    try:
        _watch(groups, load, admin, start, pouring)
    finally:
        pouring.join()
        stop.set()
        for group in groups:
            for worker in group.workers:
                worker.join(10)
    total = np.array(list(backlog.values())) + sent
    return groups, max(float(total.sum()) / load.members, float(total.max())) / RATE


def _pour(producer: Producer, load: Load, start: float, sent: np.ndarray) -> None:
    """What comes in meanwhile, with the same skew."""
    while (now := time.monotonic() - start) < INFLOW_SECONDS:
        due = np.floor(load.weights * RATE * load.members * INFLOW * now)
        _produce(producer, {k: int(n) for k, n in zip(load.keys, due - sent, strict=True)})
        sent[:] = due
        time.sleep(0.1)


def _watch(groups: list[Group], load: Load, admin: Admin, start: float, pouring: threading.Thread) -> None:
    """Reads all groups' lag twice a second until all is committed; turns kagent's loop."""
    turned = 0.0
    while any(group.drained is None for group in groups):
        if (now := time.monotonic() - start) > LONGEST:
            return
        committed = admin.committed([group.name for group in groups])
        end = admin.log_end(load.keys).found
        poured = not pouring.is_alive()
        for group in groups:
            lags = {key: end[key] - committed[group.name].get(key, 0) for key in load.keys}
            greatest = max(sum(lags[key] for key in keys) for keys in group.owned.values())
            group.seen.append((now, greatest))
            if group.drained is None and poured and not any(lags.values()):
                group.drained = now
            if group.way == "kagent" and now - turned > EVERY and group.drained is None:
                turned = now
                _followed(group, load, lags)
        time.sleep(0.2)


def _at(group: Group, second: float) -> float:
    return min(group.seen, key=lambda one: abs(one[0] - second))[1]


def report(results: list[tuple[Load, list[Group], float]]) -> None:
    """The table, in Markdown."""
    heads = [f"{way}" for way in WAYS]
    print("\n| load | none faster than | " + " | ".join(heads) + " | kagent's moves |")
    print("|---|---|" + "---|" * (len(WAYS) + 1))
    for load, groups, ideal in results:
        cells = [
            (f"{group.drained:.0f} s" if group.drained else f"> {LONGEST:.0f} s")
            + f" ({_at(group, 10):,.0f})"
            for group in groups
        ]
        print(f"| {load.name} | {ideal:.0f} s | " + " | ".join(cells) + f" | {groups[-1].moves} |")
    print("\nSeconds until drained (greatest member lag after ten seconds).")
    for at, way in enumerate(WAYS[:-1]):
        ratios = [(g[at].drained or LONGEST) / (g[-1].drained or LONGEST) for _, g, _ in results]
        print(f"{way} ÷ kagent: median {np.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")
    over = [(g[-1].drained or LONGEST) / ideal for _, g, ideal in results]
    print(f"kagent ÷ none faster than: median {np.median(over):.2f}, worst {max(over):.2f}")


def draw(results: list[tuple[Load, list[Group], float]], path: Path) -> None:
    """Greatest member lag over time, one panel a load."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = 3
    rows = -(-len(results) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(12, 2.8 * rows), squeeze=False, sharey="row")
    colours = dict(zip(WAYS, ("#c44e52", "#dd8452", "#8172b3", "#2a7f3f"), strict=True))
    for axis, (load, groups, ideal) in zip(axes.flat, results, strict=False):
        for group in groups:
            end = (group.drained or LONGEST) + 0.5
            line = [(at, lag) for at, lag in group.seen if at <= end]
            wide = 2.2 if group.way == "kagent" else 1.2
            axis.plot(*zip(*line, strict=True), label=group.way, color=colours[group.way], linewidth=wide)
        axis.axvline(ideal, color="grey", linestyle=":", linewidth=1)
        axis.set_title(load.name, fontsize=10)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    for axis in axes[:, 0]:
        axis.set_ylabel("greatest member lag")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", type=Path, help="where to draw the greatest lag over time")
    parser.add_argument("--quick", action="store_true", help="two sizes instead of three")
    asked = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder)) as broker:
        cluster = Cluster(bootstrap=broker.bootstrap)
        admin = Admin(cluster)
        for load in loads(asked.quick):
            groups, ideal = run(load, cluster, admin)
            results.append((load, groups, ideal))
            print(
                load.name,
                f"≥ {ideal:.1f} s:",
                {g.way: g.drained and round(g.drained, 1) for g in groups},
                flush=True,
            )
    report(results)
    if asked.image:
        draw(results, asked.image)


if __name__ == "__main__":
    main()
