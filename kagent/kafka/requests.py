"""Two of Kafka's requests that no client library offers in full, for aiokafka's connections.

``DescribeGroupsRequest.json`` version 4 (what classic members subscribe to, their instance ids) and
``ConsumerGroupDescribeRequest.json`` version 0 (KIP-848). A topic id is two numbers of 64 bits here.
"""

from __future__ import annotations

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    Bytes,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)

TEXT, SHORT_TEXT = String("utf-8"), CompactString("utf-8")
HELD = Schema(
    (
        "topic_partitions",
        CompactArray(
            ("topic_id_high", Int64),
            ("topic_id_low", Int64),
            ("topic_name", SHORT_TEXT),
            ("partitions", CompactArray(Int32)),
            ("tags", TaggedFields),
        ),
    ),
    ("tags", TaggedFields),
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
    """Asks for a group of the classic protocol; the state of any other is ``Dead``."""

    API_KEY = 15

    def __init__(self, group: str) -> None:
        self.group = group

    def build(self, request_struct_class: type[ClassicQuestion]) -> ClassicQuestion:
        return request_struct_class([self.group], False)


class ConsumerAnswer(Response):
    API_KEY = 69
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            CompactArray(
                ("error_code", Int16),
                ("error_message", SHORT_TEXT),
                ("group", SHORT_TEXT),
                ("state", SHORT_TEXT),
                ("group_epoch", Int32),
                ("assignment_epoch", Int32),
                ("assignor", SHORT_TEXT),
                (
                    "members",
                    CompactArray(
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
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class ConsumerQuestion(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 69
    API_VERSION = 0
    RESPONSE_TYPE = ConsumerAnswer
    SCHEMA = Schema(
        ("groups", CompactArray(SHORT_TEXT)),
        ("include_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class DescribeConsumer(Request[ConsumerQuestion]):
    """Asks for a KIP-848 group."""

    API_KEY = 69

    def __init__(self, group: str) -> None:
        self.group = group

    def build(self, request_struct_class: type[ConsumerQuestion]) -> ConsumerQuestion:
        return request_struct_class([self.group], False, {})
