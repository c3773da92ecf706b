"""Six of Kafka's requests in versions that aiokafka does not offer, for its connections.

``DescribeGroupsRequest.json`` version 4 (what classic members subscribe to, their instance ids),
``ConsumerGroupDescribeRequest.json`` version 0 (KIP-848), ``StreamsGroupDescribeRequest.json`` version 0 (KIP-1071),
``ShareGroupDescribeRequest.json`` version 1 (KIP-932; version 0 was of Kafka 4.0 alone),
``FindCoordinatorRequest.json`` version 4 (KIP-699) and ``OffsetFetchRequest.json`` version 8 (KIP-709, ``require_stable`` of
KIP-447) for many groups at once. A topic id is two numbers of 64 bits here.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any, TypeVar

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    Bytes,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)

# API keys and versions: https://kafka.apache.org/protocol.html#protocol_api_keys
TEXT, SHORT_TEXT = String("utf-8"), CompactString("utf-8")


Field = tuple[str, AbstractType[Any] | type[AbstractType[Any]]]
# A flexible version ends each struct with tagged fields (KIP-482): none is known to these versions.
# https://cwiki.apache.org/confluence/display/KAFKA/KIP-482%3A+The+Kafka+Protocol+should+Support+Optional+Tagged+Fields
TAGS: Field = ("tags", TaggedFields)


def struct(*fields: Field) -> Schema:
    return Schema(*fields, TAGS)


def structs(*fields: Field) -> CompactArray:
    return CompactArray(*fields, TAGS)


HELD = struct(
    (
        "topic_partitions",
        structs(
            ("topic_id_high", Int64),
            ("topic_id_low", Int64),
            ("topic_name", SHORT_TEXT),
            ("partitions", CompactArray(Int32)),
        ),
    )
)


class ClassicAnswer(Response):
    API_KEY = 15
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            Array(
                ("error_code", Int16),
                ("group", TEXT),
                ("state", TEXT),
                ("protocol_type", TEXT),
                ("protocol", TEXT),
                (
                    "members",
                    Array(
                        ("member_id", TEXT),
                        ("instance_id", TEXT),
                        ("client_id", TEXT),
                        ("host", TEXT),
                        ("metadata", Bytes),
                        ("assignment", Bytes),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
    )


class ClassicQuestion(RequestStruct):
    API_KEY = 15
    API_VERSION = 4
    RESPONSE_TYPE = ClassicAnswer
    SCHEMA = Schema(("groups", Array(TEXT)), ("include_authorized_operations", Boolean))


class DescribeClassic(Request[ClassicQuestion]):
    """Asks for groups of the classic protocol; the state of any other is ``Dead``."""

    API_KEY = 15

    def __init__(self, groups: Sequence[str]) -> None:
        self.groups = groups

    def build(self, request_struct_class: type[ClassicQuestion]) -> ClassicQuestion:
        return request_struct_class(self.groups, False)


def _groups_described(*own: Field) -> Schema:
    """The answer about groups of a newer protocol: what all such answers have of each group, and this protocol's ``own`` fields."""
    each = (
        ("error_code", Int16),
        ("error_message", SHORT_TEXT),
        ("group", SHORT_TEXT),
        ("state", SHORT_TEXT),
        ("group_epoch", Int32),
        ("assignment_epoch", Int32),
        *own,
        ("authorized_operations", Int32),
    )
    return struct(("throttle_time_ms", Int32), ("groups", structs(*each)))


class ConsumerAnswer(Response):
    API_KEY = 69
    API_VERSION = 0
    SCHEMA = _groups_described(
        ("assignor", SHORT_TEXT),
        (
            "members",
            structs(
                ("member_id", SHORT_TEXT),
                ("instance_id", SHORT_TEXT),
                ("rack", SHORT_TEXT),
                ("epoch", Int32),
                ("client_id", SHORT_TEXT),
                ("host", SHORT_TEXT),
                ("topics", CompactArray(SHORT_TEXT)),
                ("regex", SHORT_TEXT),
                ("assignment", HELD),
                ("target", HELD),
            ),
        ),
    )


class ConsumerQuestion(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 69
    API_VERSION = 0
    RESPONSE_TYPE = ConsumerAnswer
    SCHEMA = struct(("groups", CompactArray(SHORT_TEXT)), ("include_authorized_operations", Boolean))


Newer = TypeVar("Newer", bound=ConsumerQuestion)


class _DescribeNewer(Request[Newer]):
    """Asks for groups of a newer protocol, each with a request of its own."""

    API_KEY = ConsumerQuestion.API_KEY

    def __init__(self, groups: Sequence[str]) -> None:
        self.groups = groups

    def build(self, request_struct_class: type[Newer]) -> Newer:
        return request_struct_class(self.groups, False, {})


class DescribeConsumer(_DescribeNewer[ConsumerQuestion]):
    """Asks for KIP-848 groups."""


class Optional(Schema):
    """A struct that an answer may lack: a byte before it is negative then (KIP-893). ``lacking`` is read in its place: aiokafka turns
    no None into an object."""

    def __init__(self, lacking: tuple[Any, ...], *fields: tuple[str, Any]) -> None:
        super().__init__(*fields)
        self.lacking = lacking

    def decode(self, data: BytesIO) -> tuple[Any, ...]:
        return self.lacking if Int8.decode(data) < 0 else super().decode(data)


KEY_VALUES = structs(("key", SHORT_TEXT), ("value", SHORT_TEXT))
TASK_OFFSETS = structs(("subtopologyId", SHORT_TEXT), ("partition", Int32), ("offset", Int64))
TASKS = structs(("subtopologyId", SHORT_TEXT), ("partitions", CompactArray(Int32)))
STREAMS_TOPICS = structs(
    ("name", SHORT_TEXT), ("partitions", Int32), ("replication_factor", Int16), ("configs", KEY_VALUES)
)
STREAMS_HELD = struct(("activeTasks", TASKS), ("standbyTasks", TASKS), ("warmupTasks", TASKS))
TOPOLOGY = Optional(
    (-1, [], {}),
    ("epoch", Int32),
    (
        "subtopologies",
        structs(
            ("subtopologyId", SHORT_TEXT),
            ("sourceTopics", CompactArray(SHORT_TEXT)),
            ("repartitionSinkTopics", CompactArray(SHORT_TEXT)),
            ("stateChangelogTopics", STREAMS_TOPICS),
            ("repartitionSourceTopics", STREAMS_TOPICS),
        ),
    ),
    TAGS,
)


class StreamsAnswer(Response):
    API_KEY = 89
    API_VERSION = 0
    SCHEMA = _groups_described(
        ("topology", TOPOLOGY),
        (
            "members",
            structs(
                ("member_id", SHORT_TEXT),
                ("epoch", Int32),
                ("instance_id", SHORT_TEXT),
                ("rack", SHORT_TEXT),
                ("client_id", SHORT_TEXT),
                ("host", SHORT_TEXT),
                ("topology_epoch", Int32),
                ("process_id", SHORT_TEXT),
                # The port is unsigned; nothing here reads it.
                (
                    "user_endpoint",
                    Optional(("", 0, {}), ("host", SHORT_TEXT), ("port", Int16), TAGS),
                ),
                ("client_tags", KEY_VALUES),
                ("task_offsets", TASK_OFFSETS),
                ("task_end_offsets", TASK_OFFSETS),
                ("assignment", STREAMS_HELD),
                ("target", STREAMS_HELD),
                ("is_classic", Boolean),
            ),
        ),
    )


class StreamsQuestion(ConsumerQuestion):
    API_KEY = 89
    RESPONSE_TYPE = StreamsAnswer


class DescribeStreams(_DescribeNewer[StreamsQuestion]):
    """Asks for groups of Kafka Streams' own protocol."""

    API_KEY = 89


class ShareAnswer(Response):
    API_KEY = 77
    API_VERSION = 1
    SCHEMA = _groups_described(
        ("assignor", SHORT_TEXT),
        (
            "members",
            structs(
                ("member_id", SHORT_TEXT),
                ("rack", SHORT_TEXT),
                ("epoch", Int32),
                ("client_id", SHORT_TEXT),
                ("host", SHORT_TEXT),
                ("topics", CompactArray(SHORT_TEXT)),
                ("assignment", HELD),
            ),
        ),
    )


class ShareQuestion(ConsumerQuestion):
    API_KEY = 77
    API_VERSION = 1
    RESPONSE_TYPE = ShareAnswer


class DescribeShare(_DescribeNewer[ShareQuestion]):
    """Asks for share groups."""

    API_KEY = 77


class CoordinatorsAnswer(Response):
    API_KEY = 10
    API_VERSION = 4
    SCHEMA = struct(
        ("throttle_time_ms", Int32),
        (
            "coordinators",
            structs(
                ("group", SHORT_TEXT),
                ("node_id", Int32),
                ("host", SHORT_TEXT),
                ("port", Int32),
                ("error_code", Int16),
                ("error_message", SHORT_TEXT),
            ),
        ),
    )


class CoordinatorsQuestion(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 10
    API_VERSION = 4
    RESPONSE_TYPE = CoordinatorsAnswer
    SCHEMA = struct(("key_type", Int8), ("keys", CompactArray(SHORT_TEXT)))


class FindCoordinators(Request[CoordinatorsQuestion]):
    """Asks which brokers coordinate these groups."""

    API_KEY = 10

    def __init__(self, groups: Sequence[str]) -> None:
        self.groups = groups

    def build(self, request_struct_class: type[CoordinatorsQuestion]) -> CoordinatorsQuestion:
        # Key type 0 is a group; 1 would be a transactional id.
        return request_struct_class(0, self.groups, {})


class OffsetsAnswer(Response):
    API_KEY = 9
    API_VERSION = 8
    SCHEMA = struct(
        ("throttle_time_ms", Int32),
        (
            "groups",
            structs(
                ("group", SHORT_TEXT),
                (
                    "topics",
                    structs(
                        ("topic", SHORT_TEXT),
                        (
                            "partitions",
                            structs(
                                ("partition", Int32),
                                ("offset", Int64),
                                ("epoch", Int32),
                                ("metadata", SHORT_TEXT),
                                ("error_code", Int16),
                            ),
                        ),
                    ),
                ),
                ("error_code", Int16),
            ),
        ),
    )


class OffsetsQuestion(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 9
    API_VERSION = 8
    RESPONSE_TYPE = OffsetsAnswer
    SCHEMA = struct(
        (
            "groups",
            structs(
                ("group", SHORT_TEXT),
                ("topics", structs(("topic", SHORT_TEXT), ("partitions", CompactArray(Int32)))),
            ),
        ),
        ("require_stable", Boolean),
    )


class FetchOffsets(Request[OffsetsQuestion]):
    """Asks for all committed offsets of these groups."""

    API_KEY = 9

    def __init__(self, groups: Sequence[str], require_stable: bool) -> None:
        self.groups, self.require_stable = groups, require_stable

    def build(self, request_struct_class: type[OffsetsQuestion]) -> OffsetsQuestion:
        # Null topics stand for all: the topics that a group has committed to need not be known.
        return request_struct_class([(name, None, {}) for name in self.groups], self.require_stable, {})
