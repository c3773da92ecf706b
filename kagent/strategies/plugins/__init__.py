"""The strategies as assignors that one's own Python consumers run.

    from kagent.strategies.plugins import aiokafka_assignor, kafka_python_assignor

    AIOKafkaConsumer("orders", group_id="billing", partition_assignment_strategy=[aiokafka_assignor("sticky")], …)
    KafkaConsumer("orders", group_id="billing", partition_assignment_strategy=[kafka_python_assignor("sticky")], …)

All members of a group must name the same strategy. librdkafka (confluent-kafka) takes no assignors of others, and a group
of the new protocol (KIP-848) asks none. The clients are imported when an assignor is made, not before.
"""

from kagent.strategies.plugins.for_aiokafka import aiokafka_assignor
from kagent.strategies.plugins.for_kafka_python import kafka_python_assignor
from kagent.strategies.plugins.lags import LagCache, group_lag, keep_filled

__all__ = ["LagCache", "aiokafka_assignor", "group_lag", "kafka_python_assignor", "keep_filled"]
