"""``fair`` (KIP-49, KAFKA-3297): the most constrained topics first, each partition to the member with the fewest.

Never merged into Kafka; published as Cerner's common-kafka.
"""

from __future__ import annotations

import numpy as np

from kagent.strategies import fewest_first
from kagent.strategies.assignment import Assignment
from kagent.strategies.javahash import string_ranks
from kagent.strategies.scenario import Scenario


def assign(scenario: Scenario) -> Assignment:
    """What ``FairAssignor`` gives: topics by (subscribers, partitions descending, name), ties to the smallest id."""
    layout = scenario.layout
    by_id = np.argsort(string_ranks(scenario.member_ids))
    topics = layout.considered_topics
    subscribers = np.array([len(layout.subscribers(topic)) for topic in topics.tolist()], np.int64)
    topics = topics[np.lexsort((topics, -layout.count[topics], subscribers))]
    topic, partition = layout.partitions(topics)
    if layout.same_effective:
        # With equal subscriptions the member with the fewest is always the next in turn.
        member = np.resize(by_id.astype(np.int32), len(topic))
    else:
        held = np.zeros(len(scenario.members), np.int64)
        takers = [
            fewest_first.fill(held, by_id[layout.subscribed[by_id, code]], int(layout.count[code]))
            for code in topics.tolist()
        ]
        member = np.concatenate(takers).astype(np.int32) if takers else np.zeros(0, np.int32)
    return Assignment(scenario.member_ids, layout.topics, topic, partition, member)
