"""How long a KIP-848 group of Java and librdkafka members takes to take up a plan after ``kagent apply``, at Kafka's default
heartbeat of 5 s.

    python benchmarks/apply.py [--runs N] [--kafka VERSION]

Prints for each run the seconds until the last member held its part, the longest time that a moved partition was without an
owner, and what was revoked beyond the moves (which must be nothing).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.apply.apply_plan import Applier
from kagent.apply.attempts import Attempts
from kagent.assignor import CLASS, JAR
from kagent.contract.recommendation import Recommendation, to_bytes
from kagent.embedded.broker import Broker, die_with_parent, free_port
from kagent.embedded.jars import BROKER, broker_jars
from kagent.embedded.java import java
from kagent.follow.rejoin_budget import Asking
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure
from kagent.settings import Cluster, Topics

TOPIC, GROUP, PARTITIONS, EACH = "orders", "billing", 12, 2
MEMBERS = Path(__file__).parents[1] / "tests" / "java" / "Members.java"
Event = tuple[float, str, str]
"""Seconds since the epoch, assigned or revoked, partition."""


class Librdkafka:
    """Consumers in this process, each polled by a thread, with what happened to them."""

    def __init__(self, bootstrap: str, count: int) -> None:
        self.events: list[Event] = []
        self.done = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(bootstrap, n)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, bootstrap: str, number: int) -> None:
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "group.protocol": "consumer",
        }
        consumer = Consumer({**config, "client.id": f"librdkafka-{number}", "log_level": 0})

        def noted(what: str) -> Any:
            return lambda _, parts: self.events.extend(
                (time.time(), what, f"{p.topic}-{p.partition}") for p in parts
            )

        consumer.subscribe([TOPIC], on_assign=noted("assigned"), on_revoke=noted("revoked"))
        while not self.done.is_set():
            consumer.poll(0.1)
        consumer.close()

    def stop(self) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()


def java_events(log: Path) -> list[Event]:
    lines = [line.split(" ", 3) for line in log.read_text().splitlines()]
    return [(int(p[0]) / 1000, p[2], p[3]) for p in lines if len(p) == 4]


def advice(before: dict[str, frozenset[Any]], topic_id: str, dice: random.Random) -> Recommendation:
    """A plan that moves a third of the partitions to random members."""
    owner = {pair: member for member, held in before.items() for pair in held}
    moved = {
        pair: dice.choice([m for m in before if m != owner[pair]])
        for pair in dice.sample(sorted(owner), PARTITIONS // 3)
    }
    after: dict[str, list[Any]] = {member: [] for member in before}
    for pair in sorted(owner):
        after[moved.get(pair, owner[pair])].append(pair)
    now = int(time.time() * 1000)
    moves = [{"topic": t, "partition": p, "from": owner[t, p], "to": to} for (t, p), to in moved.items()]
    return Recommendation.model_validate({
        "id": f"run-{now}", "cluster": "main", "group": GROUP, "status": "open", "verdict": "rebalance",
        "severity": "ticket", "confidence": "high", "reason": "One member holds most.", "group_kind": "consumer",
        "opened_at": now, "as_of": now, "valid_until": now + 600_000, "skew": {"now": 2.0},
        "members": [{"member": m, "member_id": m, "partitions": len(h)} for m, h in before.items()],
        "moves": moves, "move_count": len(moves), "assignment": after, "topic_ids": {TOPIC: topic_id},
        "actions": [{"type": "follow_plan", "how": "Follow.", "feasible": "yes"}],
        "basis": {"generation": None, "digest": "d", "partitions": {TOPIC: PARTITIONS}},
    })  # fmt: skip


def settled(admin: Admin) -> dict[str, frozenset[Any]]:
    """Member id → partitions, once all members hold what they are to hold."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        group = admin.describe([GROUP])[GROUP]
        held = {m.member_id: m.assigned for m in group.members}
        still = all(m.target in (None, m.assigned) for m in group.members)
        if (
            group.state == "stable"
            and still
            and len(held) == 2 * EACH
            and sum(map(len, held.values())) == PARTITIONS
        ):
            return held
        time.sleep(0.25)
    raise SystemExit("the group did not settle")


def orphaned_s(events: list[Event], since: float) -> tuple[float, set[str]]:
    """The longest time between a partition's revocation and its assignment, and all that was revoked."""
    lost: dict[str, float] = {}
    longest: dict[str, float] = defaultdict(float)
    for at, what, part in sorted(e for e in events if e[0] >= since):
        if what == "assigned":
            longest[part] = at - lost.get(part, at)
        else:
            lost[part] = at
    return max(longest.values(), default=0.0), set(lost)


def main(runs: int, kafka: str) -> None:
    """Prints a line for each run, and the figures over all. ``kafka``: coordinates of the broker; its jars are the Java
    members' too."""
    folder, port = Path(tempfile.mkdtemp()), free_port()
    extra = {
        "group.consumer.assignors": CLASS,
        "kagent.bootstrap.servers": f"127.0.0.1:{port}",
        "kagent.apply": "follow",
        "group.consumer.heartbeat.interval.ms": "5000",
    }
    with Broker(folder / "broker", port=port, plugins=(JAR,), extra=extra, kafka=kafka) as broker:
        cluster, topics = Cluster(bootstrap=broker.bootstrap), Topics()
        admin = Admin(cluster)
        ensure(admin, topics)
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        client.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(15)
        path, log = os.pathsep.join(map(str, (*broker_jars(kafka), JAR))), folder / "java.log"
        pairs = [f"bootstrap.servers={broker.bootstrap}", f"group.id={GROUP}", "group.protocol=consumer"]
        with log.open("w") as out, (folder / "java.err").open("w") as errors:
            members = subprocess.Popen(
                [java(), "-cp", path, str(MEMBERS), TOPIC, str(EACH), *pairs],
                stdin=subprocess.PIPE, stdout=out, stderr=errors, preexec_fn=die_with_parent,
            )  # fmt: skip
        others = Librdkafka(broker.bootstrap, EACH)
        try:
            _runs(runs, cluster, topics, admin, others, log)
        finally:
            others.stop()
            members.terminate()
            members.wait()


def _runs(runs: int, cluster: Cluster, topics: Topics, admin: Admin, others: Librdkafka, log: Path) -> None:
    dice, took, orphaned = random.Random(1), [], []
    settled(admin)
    topic_id = admin.topics([TOPIC])[TOPIC].id
    applier = Applier(cluster, cluster, "main", GROUP, topics, Asking(0.0, 10**6))
    attempts = Attempts(cluster, topics, f"main/{GROUP}", "benchmark")
    for run in range(runs):
        rec = advice(settled(admin), topic_id, dice)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        producer.produce(topics.recommendations, to_bytes(rec), f"main/{GROUP}".encode())
        producer.flush(15)
        plan, since = applier.check(), time.time()
        applied = applier.apply(plan, attempts, 60.0)
        kept = settled(admin) == plan.wanted
        time.sleep(1.0)  # events of clients come a moment later than the coordinator's word
        longest, revoked = orphaned_s([*others.events, *java_events(log)], since)
        beyond = revoked - {f"{m.topic}-{m.partition}" for m in rec.moves}
        seconds = max((s for s in applied.taken_up_s.values() if s is not None), default=-1.0)
        took.append(seconds)
        orphaned.append(longest)
        print(
            f"run {run}: whole {applied.whole} kept {kept} after {seconds:.1f} s, longest without owner {longest:.1f} s, revoked beyond the moves: {sorted(beyond)}",
            flush=True,
        )
    print(f"slowest {max(took):.1f} s, longest without owner {max(orphaned):.1f} s in {runs} runs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument(
        "--kafka", default=BROKER.rpartition(":")[2], help="version of the broker and the Java members"
    )
    args = parser.parse_args()
    main(args.runs, f"{BROKER.rpartition(':')[0]}:{args.kafka}")
