"""A group as its coordinator describes it is of the same kind as by its records."""

from __future__ import annotations

import pytest
from aiokafka.protocol.types import Bytes, Int16, Int32, Schema, String

from kagent.check.judge_cluster import view_of
from kagent.contract.recommendation import GroupKind
from kagent.kafka.group_answers import classic
from kagent.lag.membership import Roster, kind_of


def subscription(version: int, user_data: bytes | None) -> bytes:
    """What a member sends when it joins: version, one topic, user data, and from version 1 on no owned partitions."""
    schema = Schema(("version", Int16), ("count", Int32), ("topic", String("utf-8")), ("user_data", Bytes))
    owned = Int32.encode(0) if version else b""
    return bytes(schema.encode((version, 1, "t", user_data)) + owned)


def given(version: int) -> bytes:
    """What a leader gives a member: version, no partitions, no user data."""
    return bytes(Int16.encode(version) + Int32.encode(0) + Int32.encode(-1))


@pytest.mark.parametrize(
    ("sent", "given", "kind"),
    [
        (subscription(0, b""), given(0), GroupKind.CLASSIC_PYTHON),
        (subscription(1, None), given(1), GroupKind.CLASSIC_JAVA),
        (subscription(1, None), given(0), GroupKind.CLASSIC),
        (subscription(1, b""), given(0), GroupKind.CLASSIC_LIBRDKAFKA),
        (b"", b"", GroupKind.CLASSIC),
    ],
)
def test_the_client_library_is_told_by_what_the_members_sent(
    sent: bytes, given: bytes, kind: GroupKind
) -> None:
    member = {"member_id": "m", "instance_id": None, "client_id": "app", "host": "/h", "metadata": sent, "assignment": given}  # fmt: skip
    raw = {"group": "g", "state": "Stable", "protocol_type": "consumer", "protocol": "range", "members": [member]}  # fmt: skip

    assert kind_of(Roster.of(view_of(classic(raw))), "g") == kind
