"""A running group as a scenario line: what ``kagent assign`` and ``kagent plan`` read, taken from the cluster now.

What the cluster does not tell is assumed, and every assumption is a sentence under ``assumed``. The order of members
is the coordinator's, which need not be the order in which they joined.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from kagent.errors import InputError
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Described, Key
from kagent.kafka.group_lag import Row, rows_of
from kagent.text import did_you_mean, few, shown


def scenario_line(admin: Admin, group: str, strategies: Container[str]) -> dict[str, Any]:
    """The group as one line of the scenario format (``kagent.strategies.scenario_lines``), with ``assumed`` besides.

    ``owned`` is what each member holds now; ``lags`` is the shown lag. ``strategies``: the names that a line may have. Blocking; not to be called in an event loop.
    Raises InputError if there is no such group or it has no members, KafkaError if the cluster does not answer.
    """
    found = admin.described([group]).get(group)
    if found is None or found.group.state == "dead":
        raise InputError(
            f"There is no consumer group {shown(group)} on this cluster (or no right to describe it)"
            + did_you_mean(group, admin.groups())
        )
    if found.group.type == "share":
        raise InputError(
            f"{shown(group)} is a share group: its members share partitions, so no strategy gives them any."
        )
    if not found.group.members:
        raise InputError(f"The group {shown(group)} has no members now: there is nothing to assign.")
    rows = rows_of(admin, found.group, admin.committed([group])[group])
    assumed: list[str] = []
    members = _members(found, assumed)
    topics = admin.topics({topic for member in members for topic in member["topics"]})
    if missing := sorted({t for m in members for t in m["topics"]} - set(topics)):
        assumed.append(
            f"{', '.join(map(shown, missing))}: no such topic, or no right to see it; it counts as having no partitions"
        )
    line: dict[str, Any] = {
        "id": group,
        "partitions_per_topic": {name: topic.partitions for name, topic in sorted(topics.items())},
        "members": members,
        **_lags(rows, {name: topic.partitions for name, topic in topics.items()}, assumed),
        "topic_ids": {name: topic.id for name, topic in sorted(topics.items())},
        "assumed": assumed,
    }
    if found.group.type == "classic" and found.group.protocol in strategies:
        line["strategy"] = found.group.protocol
    return line


def _members(found: Described, assumed: list[str]) -> list[dict[str, Any]]:
    everything = {topic for reported in found.reported.values() for topic in reported.topics or ()}
    everything |= {topic for member in found.group.members for topic, _ in member.assigned}
    generation = _generation(found, assumed)
    members = []
    for member in found.group.members:
        reported = found.reported[member.member_id]
        if reported.topics is None:
            why = (
                f"subscribes by the pattern {shown(reported.regex)}"
                if reported.regex
                else "does not say its topics"
            )
            assumed.append(
                f"{shown(member.member_id)} {why}: it counts as subscribed to all topics of the group"
            )
        members.append(
            {
                "id": member.member_id,
                "topics": list(reported.topics) if reported.topics is not None else sorted(everything),
                "group_instance_id": member.instance_id,
                "rack": reported.rack,
                "owned": [list(key) for key in sorted(member.assigned)],
                "generation": generation,
            }
        )
    return members


def _generation(found: Described, assumed: list[str]) -> int:
    """One number for all: the group is stable, or is taken as it will be once it is."""
    if found.epoch is not None:
        return found.epoch
    if found.group.state != "stable":
        assumed.append(f"the group is in the state {found.group.state}, not stable")
    # A subscription has the generation that its member was in before this join, and the join made the next one.
    return max((reported.generation or 0 for reported in found.reported.values()), default=0) + 1


def _lags(rows: tuple[Row, ...], counts: dict[str, int], assumed: list[str]) -> dict[str, Any]:
    """``lags``, and under ``pinned`` the held partitions whose lag is unknown: a plan leaves them where they are."""
    known: dict[Key, int] = {(row.topic, row.partition): row.lag for row in rows if row.lag is not None}
    for topic, count in sorted(counts.items()):
        unknown = [str(p) for p in range(count) if (topic, p) not in known]
        if unknown:
            assumed.append(
                f"{shown(topic)}: the lag of partition {few(unknown, 10)} is not known: it counts as 0, and the partition is not moved"
            )
    pinned = [[row.topic, row.partition] for row in rows if row.lag is None and row.topic in counts]
    lags = {topic: [[p, known.get((topic, p), 0)] for p in range(n)] for topic, n in sorted(counts.items())}
    return {"lags": lags, "pinned": pinned}
