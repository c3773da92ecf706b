"""The scenario of a live group, as far as a cluster tells it.

DescribeGroups says what each member holds, not what it subscribes to, so every member is taken to subscribe to all
topics that the group holds or has committed to; nor does it say the generation or racks.
"""

from __future__ import annotations

from kagent.errors import InputError
from kagent.kafka.admin import Admin, Group
from kagent.names import shown
from kagent.strategies import Member, Scenario
from kagent.strategies.plugins.lags import group_lag

GENERATION = 1


def scenario_of_group(admin: Admin, name: str) -> Scenario:
    """Members, partitions, what is held, lag and topic ids of a group. InputError if nobody is in it."""
    group = admin.describe([name]).get(name)
    if group is None or not group.members:
        raise InputError(f"group: {shown(name)} has no members on this cluster, or may not be described")
    topics = admin.topics(_topics(admin, group))
    if not topics:
        raise InputError(f"group: {shown(name)} holds no partitions yet")
    lags = group_lag(admin.cluster.bootstrap, name, list(topics), admin=admin)()
    members = [
        Member(m.member_id, tuple(sorted(topics)), m.instance_id, None, GENERATION, GENERATION)
        for m in group.members
    ]
    return Scenario.of(
        members,
        {topic.name: topic.partitions for topic in topics.values()},
        owned={m.member_id: sorted(m.assigned) for m in group.members},
        lags=lags,
        topic_ids={topic.name: topic.id for topic in topics.values()},
    )


def _topics(admin: Admin, group: Group) -> set[str]:
    held = {topic for member in group.members for topic, _ in member.assigned}
    return held or {topic for topic, _ in admin.committed([group.group]).get(group.group, {})}
