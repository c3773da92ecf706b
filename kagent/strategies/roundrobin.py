"""``roundrobin``: all partitions in a row, to a ring of the members (``RoundRobinAssignor``)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kagent.strategies.assignment import Assignment
from kagent.strategies.ranges import in_member_order
from kagent.strategies.scenario import Scenario


def assign(scenario: Scenario) -> Assignment:
    """What ``RoundRobinAssignor`` gives: the ring turns on past members that do not subscribe to the topic.

    So the next in the ring after a member without the topic gets that turn too, which is why this strategy is
    unbalanced when subscriptions differ (KIP-49).
    """
    layout = scenario.layout
    ring = in_member_order(scenario)
    topic, partition = layout.partitions()
    if layout.same_effective:
        member = np.resize(ring.astype(np.int32), len(topic))
    else:
        member = _skipping(scenario, ring)
    return Assignment(scenario.member_ids, layout.topics, topic, partition, member)


def _skipping(scenario: Scenario, ring: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    layout = scenario.layout
    at = 0  # the place in the ring that is asked next
    rows = [np.zeros(0, np.int32)]
    for topic in layout.considered_topics.tolist():
        places = np.flatnonzero(layout.subscribed[ring, topic])
        # The next subscriber at or after the pointer; past the end the ring begins anew.
        first = int(np.searchsorted(places, at)) % len(places)
        turns = (first + np.arange(int(layout.count[topic]))) % len(places)
        rows.append(ring[places[turns]].astype(np.int32))
        at = (int(places[turns[-1]]) + 1) % len(ring)
    return np.concatenate(rows)
