"""Consumers that follow kagent's open recommendation for their group at the next rebalance. Opt-in; a dry run by default.

    from kagent.follow import aiokafka_follower

    follower = aiokafka_follower("kafka:9092", "billing", apply=True)
    consumer = AIOKafkaConsumer("orders", group_id="billing", partition_assignment_strategy=[follower.assignor], …)
    async with follower.of(consumer):
        await consumer.start()

All members of a group must have a follower. What is refused, and why, is in ``docs/follow.md``.
"""

from kagent.follow.decision_types import Reason
from kagent.follow.follower import Follower
from kagent.follow.for_aiokafka import aiokafka_follower
from kagent.follow.for_kafka_python import kafka_python_follower
from kagent.follow.rejoin_budget import Asking

__all__ = ["Asking", "Follower", "Reason", "aiokafka_follower", "kafka_python_follower"]
