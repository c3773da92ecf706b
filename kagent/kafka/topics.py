"""kagent's own topics on the home cluster: what they must be, what is missing, what is wrong."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka.errors import KafkaError as ClientError
from aiokafka.errors import TopicAlreadyExistsError

from kagent.errors import KafkaError, Misconfigured, missing_right
from kagent.kafka.acls import changelogs
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic
from kagent.kafka.rights import REFUSED
from kagent.settings import Topics

HOUR_MS = 3_600_000
VISIBLE_WITHIN_S = 10.0
"""A new topic that no broker lists after this time is reported as missing."""
JUDGED = ("cleanup.policy", "retention.ms", "max.message.bytes", "message.timestamp.type")
READ_BY_OTHERS = ("compression.type",)
"""Judged too on the topics that subscribers of any language read: not every client knows zstd (kafkajs does not)."""
# A row or an event of a group with many partitions passes the broker default of 1 MB.
LARGE = str(8 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it must be."""

    name: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicCheck:
    """One topic's state: ``created``, ``ok`` or ``wrong``, with a sentence for what is wrong."""

    topic: str
    state: str
    problem: str | None = None


# The broker's time: it refuses records of a writer whose clock is an hour ahead (message.timestamp.after.max.ms, KIP-937), and
# retention would delete at once what one that is a day behind writes.
BROKERS_TIME = {"message.timestamp.type": "LogAppendTime"}
COMPACT = {
    **BROKERS_TIME,
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    "max.message.bytes": LARGE,
    # The active segment is never compacted, and rolls after seven days by default (log.roll.hours): a quiet topic would
    # keep replaced records that long. https://kafka.apache.org/documentation/#compaction
    "segment.ms": str(24 * HOUR_MS),
}


SUBSCRIBED = {**COMPACT, "compression.type": "gzip"}


def wanted(topics: Topics) -> list[TopicSpec]:
    """All topics that pipeline and worker need; Faust makes its changelogs itself."""
    events = {
        "cleanup.policy": "delete",
        **BROKERS_TIME,  # it also shows when a producer's clock is wrong
        "retention.ms": str(topics.retention_hours * HOUR_MS),
        "compression.type": "zstd",
        "max.message.bytes": LARGE,
    }
    # Dead letters are for a person who looks within days, ticks for a worker that looks within seconds.
    brief = {**BROKERS_TIME, "cleanup.policy": "delete", "compression.type": "zstd"}
    letters = {**brief, "retention.ms": str(7 * 24 * HOUR_MS)}
    ticks = {**brief, "retention.ms": str(HOUR_MS)}
    return [
        TopicSpec(topics.events, topics.partitions, events),
        TopicSpec(topics.recommendations, topics.partitions, SUBSCRIBED),
        # One partition: mutes are few, and every worker reads all of them.
        TopicSpec(topics.mutes, 1, SUBSCRIBED),
        TopicSpec(topics.dead_letters, 1, letters),
        TopicSpec(topics.ticks, topics.partitions, ticks),
    ]


def delivery_log(topics: Topics) -> TopicSpec:
    """The topic that only ``kagent alert`` needs: the delivery log of every destination."""
    return TopicSpec(topics.alerts, 1, COMPACT)


def of_tables(topics: Topics) -> list[TopicSpec]:
    """The worker's changelogs: Faust makes them, and an earlier release made them otherwise."""
    return [TopicSpec(name, topics.partitions, BROKERS_TIME) for name in changelogs(topics)]


def ensure(
    admin: Admin,
    topics: Topics,
    create: bool = True,
    needed: Sequence[TopicSpec] | None = None,
    optional: Sequence[TopicSpec] = (),
) -> list[TopicCheck]:
    """Create what is missing (with ``create``) and say what is wrong. Idempotent. Raises KafkaError.

    ``needed``: by default what pipeline and worker need. ``optional``: are judged where they are there, and never created.
    """
    needed, known = wanted(topics) if needed is None else needed, admin.topic_names()
    missing = [topic for topic in needed if topic.name not in known]
    made = _create(admin, missing, topics.replication) if create else set()
    if missing and create:
        # Each broker learns of a new topic on its own: one that does not know it yet would have it judged missing.
        known = _visible(admin, needed)
    found = _all_judged(admin, [topic for topic in needed if topic.name not in made], known)
    found = sorted([*found, *(TopicCheck(name, "created") for name in made)], key=lambda check: check.topic)
    there = [topic for topic in optional if topic.name in known]
    return [*found, *_all_judged(admin, there, known)] if there else found


def _all_judged(admin: Admin, needed: Sequence[TopicSpec], known: Mapping[str, int]) -> list[TopicCheck]:
    """What is wrong with each of these topics. ``known``: all that can be seen, and how many partitions each has."""
    configs = admin.topic_configs([topic.name for topic in needed if topic.name in known])
    tools = admin.cluster.tool_options()
    return [_judged(topic, known.get(topic.name, 0), configs.get(topic.name, {}), tools) for topic in needed]


def make_sure(
    admin: Admin, topics: Topics, log: logging.Logger, needed: Sequence[TopicSpec] | None = None
) -> list[TopicCheck]:
    """As :func:`ensure`, at the start of a service. Raises KafkaError where a topic is missing, Misconfigured where one has another
    number of partitions; any other setting that is not as it must be is logged, as the work can go on."""
    needed = wanted(topics) if needed is None else needed
    findings, known = ensure(admin, topics, needed=needed), admin.topic_names()
    for topic in needed:
        if misfit := _misfit(topic, known.get(topic.name, 0)):
            kind, problem = misfit
            raise kind(f"The topic {topic.name} {problem}.")
    for finding in findings:
        if finding.problem:
            log.warning("The topic %s %s.", finding.topic, finding.problem)
    return findings


def _misfit(topic: TopicSpec, partitions: int) -> tuple[type[KafkaError], str] | None:
    """Why nothing can work with the topic as it is, and which error that is. ``partitions``: 0 if it cannot be seen."""
    if not partitions:
        return KafkaError, "is missing, or you have no right to see it: run `kagent topics`"
    if partitions != topic.partitions:
        problem = f"has {partitions} partitions, the settings say {topic.partitions}: change topics.partitions or re-create it"
        return Misconfigured, problem
    return None


def _visible(admin: Admin, needed: Sequence[TopicSpec]) -> dict[str, int]:
    """The topics there are, once all that are needed can be seen: brokers learn of a new one a moment later."""
    until = time.monotonic() + VISIBLE_WITHIN_S
    while True:
        known = admin.topic_names()
        if all(topic.name in known for topic in needed) or time.monotonic() > until:
            return known
        time.sleep(0.1)


def _create(admin: Admin, missing: list[TopicSpec], replication: int) -> set[str]:
    """The names of those that were created; one that somebody else created meanwhile is not among them."""
    new = [NewTopic(t.name, t.partitions, replication, t.config) for t in missing]
    refused = admin.create(new) if new else {}
    for name, error in refused.items():
        # Pipeline and worker may start at the same time and both create the topic.
        if not isinstance(error, TopicAlreadyExistsError):
            raise KafkaError(_refused(name, error))
    return {topic.name for topic in new} - refused.keys()


def _refused(name: str, error: ClientError) -> str:
    if isinstance(error, REFUSED):
        lacks = missing_right("CREATE on it, or DESCRIBE if it exists")
        return f"The topic {name} could not be created: {lacks}. Run `kagent topics` as an administrator, then give the rights."
    why = next(filter(None, error.args), error.description)
    return f"The topic {name} could not be created: {why.rstrip('.')}."


def _judged(topic: TopicSpec, partitions: int, config: Mapping[str, str], tools: str) -> TopicCheck:
    """What is wrong with a topic that exists. Its settings are empty where they may not be read. ``tools``: how Kafka's own tools
    reach the cluster."""
    if misfit := _misfit(topic, partitions):
        return TopicCheck(topic.name, "wrong", misfit[1])
    judged = JUDGED + (READ_BY_OTHERS if topic.config.get("compression.type") == "gzip" else ())
    # Settings that change only speed or size are not judged: an administrator may have reasons for theirs.
    wrong = [name for name in judged if name in topic.config and not _holds(name, topic.config, config)]
    if not wrong:
        return TopicCheck(topic.name, "ok")
    has = " and ".join(f"{name}={config[name]}" for name in wrong)
    change = ",".join(f"{name}={topic.config[name]}" for name in wrong)
    mend = f"kafka-configs.sh {tools} --alter --entity-type topics --entity-name {topic.name} --add-config {change}"
    return TopicCheck(topic.name, "wrong", f"has {has}: run `{mend}`")


def _holds(name: str, wanted: Mapping[str, str], config: Mapping[str, str]) -> bool:
    """Whether a setting is as it must be; more time or room than wanted does no harm."""
    if name not in config:
        return True
    if name == "compression.type":
        return config[name] in ("gzip", "uncompressed")
    if name in ("cleanup.policy", "message.timestamp.type"):
        return config[name] == wanted[name]
    has = int(config[name])
    # -1 is unlimited.
    return has < 0 or has >= int(wanted[name])
