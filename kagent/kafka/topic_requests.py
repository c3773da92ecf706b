"""Questions about topics that any broker can answer: what they are, and their settings.

librdkafka sends them to the one broker that is the controller by its metadata, in a cluster without ZooKeeper one that was chosen by
chance: while that one is frozen, no topic can be described. ``MetadataRequest.json`` version 11 has topic ids (KIP-516, Kafka 2.8),
version 8 what the user who asks may do with a topic (KIP-430, Kafka 2.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.errors import (
    InvalidTopicError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v5
from aiokafka.protocol.types import Array, Boolean, CompactArray, Int16, Int32, Int64, Schema
from confluent_kafka.admin import AclOperation

from kagent.kafka.brokers import Brokers
from kagent.kafka.descriptions import TopicDescription, uuid_text
from kagent.kafka.group_requests import SHORT_TEXT, TEXT, struct, structs

UNSEEN_TOPIC = (InvalidTopicError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError)
TOPIC_RESOURCE = 2
"""``ConfigResource.Type.TOPIC`` of Kafka."""


class TopicsAnswer(Response):
    API_KEY = 3
    API_VERSION = 11
    SCHEMA = struct(
        ("throttle_time_ms", Int32),
        ("brokers", structs(("node_id", Int32), ("host", SHORT_TEXT), ("port", Int32), ("rack", SHORT_TEXT))),
        ("cluster_id", SHORT_TEXT),
        ("controller_id", Int32),
        (
            "topics",
            structs(
                ("error_code", Int16),
                ("topic", SHORT_TEXT),
                ("topic_id_high", Int64),
                ("topic_id_low", Int64),
                ("is_internal", Boolean),
                (
                    "partitions",
                    structs(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
    )


class TopicsQuestion(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 11
    RESPONSE_TYPE = TopicsAnswer
    SCHEMA = struct(
        ("topics", structs(("topic_id_high", Int64), ("topic_id_low", Int64), ("topic", SHORT_TEXT))),
        ("allow_auto_topic_creation", Boolean),
        ("include_authorized_operations", Boolean),
    )


class DescribeTopics(Request[MetadataRequest_v5 | TopicsQuestion]):
    """Asks what these topics are, without creating any; before Kafka 2.8 the answer has no topic ids."""

    API_KEY = 3

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def build(self, request_struct_class: Any) -> Any:
        if request_struct_class is MetadataRequest_v5:
            return request_struct_class(list(self.names), False)
        return request_struct_class([(0, 0, name, {}) for name in self.names], False, False, {})


class RightsAnswer(Response):
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node_id", Int32), ("host", TEXT), ("port", Int32), ("rack", TEXT))),
        ("cluster_id", TEXT),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", TEXT),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("authorized_operations", Int32),
    )


class RightsQuestion(RequestStruct):
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = RightsAnswer
    SCHEMA = Schema(
        ("topics", Array(TEXT)),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class AskRights(Request[RightsQuestion]):
    """Asks what our user may do with these topics, without creating any."""

    API_KEY = 3

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def build(self, request_struct_class: type[RightsQuestion]) -> RightsQuestion:
        return request_struct_class(list(self.names), False, False, True)


async def operations(brokers: Brokers, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """What our user may do with those of these topics that exist: nothing with one that may not be seen.

    Nothing has to be tried out on a user's topic for it.
    """
    answer = (await brokers.ask_any(AskRights(names))).to_object()["topics"]
    hidden = {raw["topic"] for raw in answer if raw["error_code"] == TopicAuthorizationFailedError.errno}
    allowed = {raw["topic"]: _operations(raw["authorized_operations"]) for raw in _seen(answer, "topic")}
    return allowed | dict.fromkeys(hidden, frozenset())


def _operations(bits: int) -> frozenset[str]:
    # A bit for each, by the code of Kafka's AclOperation, of which confluent-kafka's have the numbers.
    return frozenset(operation.name.lower() for operation in AclOperation if bits >> operation.value & 1)


async def described(brokers: Brokers, names: Sequence[str]) -> dict[str, TopicDescription]:
    """Those of these topics that exist and may be seen. Raises aiokafka's KafkaError if one cannot be described."""
    answer = (await brokers.ask_any(DescribeTopics(names))).to_object()
    racks = {broker["node_id"]: broker["rack"] for broker in answer["brokers"]}
    return {raw["topic"]: _topic(raw, racks) for raw in _seen(answer["topics"], "topic")}


def _topic(raw: Mapping[str, Any], racks: Mapping[int, str | None]) -> TopicDescription:
    partitions = sorted(raw["partitions"], key=lambda partition: int(partition["partition"]))
    # A broker before Kafka 2.8 gives no id: none is 0, as in Kafka's own clients.
    id_ = uuid_text(raw.get("topic_id_high", 0), raw.get("topic_id_low", 0))
    # A partition without a leader has -1.
    leaders = tuple(partition["leader"] for partition in partitions)
    of_replicas = tuple(
        frozenset(rack for node in partition["replicas"] if (rack := racks.get(node)))
        for partition in partitions
    )
    return TopicDescription(raw["topic"], id_, len(leaders), leaders, of_replicas if any(of_replicas) else ())


async def configs(brokers: Brokers, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The settings of those of these topics that exist and may be seen."""
    question = DescribeConfigsRequest([(TOPIC_RESOURCE, name, None) for name in names])
    answer = (await brokers.ask_any(question)).to_object()
    return {
        raw["resource_name"]: {
            entry["config_names"]: entry["config_value"] for entry in raw["config_entries"]
        }
        for raw in _seen(answer["resources"], "resource_name")
    }


def _seen(answers: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The answers that are none of an error; a topic that may not be seen is left out."""
    found = []
    for raw in answers:
        error = for_code(raw["error_code"]) if raw["error_code"] else None
        if error is None:
            found.append(raw)
        elif error not in UNSEEN_TOPIC:
            raise error(f"topic {raw[name]!r}")
    return found
