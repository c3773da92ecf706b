"""The least rights of the four principals. None gets a right to users' records, and none may change a group unless the settings
say ``apply: auto`` for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from kagent.group_pattern import is_expression
from kagent.offsets import OFFSETS_TOPIC
from kagent.tables.names import NAMES

if TYPE_CHECKING:
    from kagent.settings import Topics


@dataclass(frozen=True, slots=True)
class Rule:
    """One right: ``operation`` on a resource, by literal or prefixed name."""

    operation: str
    resource: str
    name: str
    pattern: str = "literal"


def rules(topics: Topics) -> dict[str, list[Rule]]:
    """Principal → its rights: pipeline, worker, subscriber, alert.

    They suffice once `kagent topics` has created kagent's own topics; it runs as somebody who may create topics. Whoever
    may read or write may describe (Kafka's ``StandardAuthorizer``), so that is not among them. CREATE is for the
    first start of a worker alone.
    """
    app = topics.app
    pipeline = [
        *_reads(OFFSETS_TOPIC),
        # Prefixed: Spark makes a new group id under this prefix for every query.
        Rule("read", "group", f"{app}-pipeline", "prefixed"),
        *_writes(topics.events),
        *_writes(topics.dead_letters),
        # The pipeline checks at its start that all of kagent's topics are there and as they must be.
        *(Rule("describe", "topic", name) for name in (topics.recommendations, topics.mutes, topics.ticks)),
    ]
    subscriber = [
        *_reads(topics.recommendations),
        *_reads(topics.mutes),
        Rule("read", "group", f"{app}-subscriber", "prefixed"),
    ]
    alert = [*_reads(topics.recommendations), *_reads(topics.alerts), *_writes(topics.alerts)]
    roles = {"pipeline": pipeline, "worker": _of_worker(topics), "subscriber": subscriber, "alert": alert}
    return {role: list(dict.fromkeys(rights)) for role, rights in roles.items()}


def changelogs(topics: Topics) -> list[str]:
    """The topics that keep a worker's tables, as Faust names them."""
    return [f"{topics.app}-{table}-changelog" for table in sorted(NAMES)]


def _of_worker(topics: Topics) -> list[Rule]:
    app = topics.app
    return [
        *_reads(topics.events),
        *_reads(topics.mutes),
        *_reads(topics.ticks),
        *_writes(topics.ticks),
        *_reads(topics.recommendations),
        *_writes(topics.recommendations),
        *_writes(topics.dead_letters),
        *(Rule(op, "topic", name) for name in changelogs(topics) for op in ("create", "read", "write")),
        Rule("read", "group", app),
        # Each partition's output has a transactional producer of its own, by which a worker fences one that lost the partition.
        Rule("write", "transactional_id", f"{app}-", "prefixed"),
        # ListOffsets on users' topics needs DESCRIBE alone: log ends can be asked where records may not be read.
        Rule("describe", "topic", "*"),
        Rule("describe_configs", "topic", "*"),
        Rule("describe", "group", "*"),
    ]


def to_apply(topics: Topics, patterns: Iterable[str]) -> list[Rule]:
    """What a worker needs besides to have the groups of these patterns take their plans (``apply: auto``); nothing without one.

    It joins a group for a moment, for which Kafka asks READ, and keeps the limit on a topic that it may have to make.
    """
    groups = list(dict.fromkeys(_joins(pattern) for pattern in patterns))
    claims = [Rule(op, "topic", topics.applied) for op in ("create", "read", "write")]
    return [*groups, *claims] if groups else []


def _joins(pattern: str) -> Rule:
    """READ on the groups of a pattern, or on the fewest more that an ACL can name: by their beginning, or all."""
    # The text of an expression does not show how the names begin.
    start = "" if is_expression(pattern) else re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    if not start:
        return Rule("read", "group", "*")
    return Rule("read", "group", start, "literal" if start == pattern else "prefixed")


def needed_on(rule: Rule, topics: Topics, watched: str, home: str) -> tuple[str, ...]:
    """The clusters on which a right is needed: ``watched`` has the groups, ``home`` kagent's own topics; often both are one.

    What holds for all topics or groups is needed on both: the worker asks each of them for its topics.
    """
    # The worker and subscribers read kagent's own topics as these groups; Spark reads the source, and plans are of users' groups.
    if (rule.resource, rule.operation) == ("group", "read"):
        return (home,) if rule.name in (topics.app, f"{topics.app}-subscriber") else (watched,)
    if rule.name == "*":
        return tuple(dict.fromkeys((watched, home)))
    return (watched,) if rule.name == OFFSETS_TOPIC else (home,)


def _reads(topic: str) -> list[Rule]:
    return [Rule("read", "topic", topic)]


def _writes(topic: str) -> list[Rule]:
    return [Rule("write", "topic", topic)]


def command(rule: Rule, principal: str, tools: str) -> str:
    """The rule as a command of Kafka's own tool, quoted for a shell. ``tools``: :meth:`Cluster.tool_options`."""
    resource = (
        "--cluster"
        if rule.resource == "cluster"
        else f"--{rule.resource.replace('_', '-')} {quote(rule.name)}"
    )
    operation = "".join(part.capitalize() for part in rule.operation.split("_"))
    pattern = f" --resource-pattern-type {rule.pattern}" if rule.pattern != "literal" else ""
    return (
        f"kafka-acls.sh {tools} --add --allow-principal {quote('User:' + principal)} "
        f"--operation {operation} {resource}{pattern}"
    )
