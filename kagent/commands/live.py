"""A live group as a scenario line, for the commands that read such lines."""

from __future__ import annotations

from typing import Any

from kagent.errors import InputError
from kagent.kafka.admin import Admin
from kagent.kafka.shown import ShownGroup, shown_lag
from kagent.names import shown


def scenario_line(admin: Admin, group: str) -> dict[str, Any]:
    """The line of a group as its coordinator describes it, with shown lags. Raises KafkaError, and InputError if it
    has no members.

    A coordinator does not tell subscriptions: every member is taken to subscribe to all topics the group holds or has
    committed. A partition whose lag is unknown counts as caught up and is pinned to its owner.
    """
    found = shown_lag(admin, [group])[0]
    if not found.group.members:
        raise InputError(
            f'--group: "{shown(group)}" has no members ({found.group.state}), so there is nothing to plan'
        )
    topics = sorted({row.topic for row in found.rows})
    sizes = {name: topic.partitions for name, topic in admin.topics(topics).items()}
    lags = {name: [[partition, 0] for partition in range(size)] for name, size in sizes.items()}
    pinned = []
    for row in found.rows:
        if row.topic not in sizes or row.partition >= sizes[row.topic]:
            continue
        lags[row.topic][row.partition][1] = row.lag or 0
        if row.lag is None:
            pinned.append([row.topic, row.partition])
    return {
        "id": group,
        "partitions_per_topic": sizes,
        "lags": lags,
        "pinned": pinned,
        "members": _members(found, sorted(sizes)),
    }


def _members(found: ShownGroup, topics: list[str]) -> list[dict[str, Any]]:
    """Members under a name that a person knows: instance id, else client id and host where that is one member's."""
    return [
        {
            "id": member.member_id,
            "topics": topics,
            "group_instance_id": member.instance_id,
            "owned": sorted([topic, partition] for topic, partition in member.assigned if topic in topics),
        }
        for member in found.group.members
    ]
