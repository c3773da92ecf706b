"""The least rights of the three principals. Nobody gets a right to users' records or to change a group."""

from __future__ import annotations

from dataclasses import dataclass

from kagent.settings import Topics


@dataclass(frozen=True, slots=True)
class Rule:
    """One right: ``operation`` on a resource, by literal or prefixed name."""

    operation: str
    resource: str
    name: str
    pattern: str = "literal"


def rules(topics: Topics) -> dict[str, list[Rule]]:
    """Principal → its rights: pipeline, worker, subscriber."""
    app = topics.prefix.rstrip("-")
    pipeline = [
        Rule("read", "topic", "__consumer_offsets"),
        Rule("describe", "topic", "__consumer_offsets"),
        Rule("read", "group", f"{app}-pipeline", "prefixed"),
        Rule("describe", "cluster", "kafka-cluster"),
        *_writes(topics.events),
        *_writes(topics.dead_letters),
        *(Rule("describe", "topic", name) for name in (topics.recommendations, topics.mutes, topics.ticks)),
    ]
    worker = [
        *_reads(topics.events),
        *_reads(topics.mutes),
        *_reads(topics.ticks),
        *_writes(topics.ticks),
        *_reads(topics.recommendations),
        *_writes(topics.recommendations),
        *_writes(topics.dead_letters),
        *(
            Rule(op, "topic", f"{app}-", "prefixed")
            for op in ("read", "write", "create", "describe", "describe_configs")
        ),
        Rule("read", "group", app),
        Rule("describe", "topic", "*"),
        Rule("describe_configs", "topic", "*"),
        Rule("describe", "group", "*"),
        Rule("describe", "cluster", "kafka-cluster"),
    ]
    subscriber = [*_reads(topics.recommendations), Rule("read", "group", f"{app}-subscriber", "prefixed")]
    return {"pipeline": pipeline, "worker": worker, "subscriber": subscriber}


def _reads(topic: str) -> list[Rule]:
    return [Rule("read", "topic", topic), Rule("describe", "topic", topic)]


def _writes(topic: str) -> list[Rule]:
    return [Rule("write", "topic", topic), Rule("describe", "topic", topic)]


def command(rule: Rule, principal: str, bootstrap: str) -> str:
    """The rule as a command of Kafka's own tool."""
    resource = "--cluster" if rule.resource == "cluster" else f"--{rule.resource} '{rule.name}'"
    operation = "".join(part.capitalize() for part in rule.operation.split("_"))
    pattern = f" --resource-pattern-type {rule.pattern}" if rule.pattern != "literal" else ""
    return (
        f"kafka-acls.sh --bootstrap-server {bootstrap} --add --allow-principal User:{principal} "
        f"--operation {operation} {resource}{pattern}"
    )
