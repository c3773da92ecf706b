"""Which client library a member has is told by the two blobs that it and its leader sent to a real broker."""

from __future__ import annotations

import pytest

from kagent.groups.client_library import library_of
from kagent.offsets.blobs import assignment, subscription

TOPIC = "000000010001" + b"t".hex()
OWNED = "000000010001" + b"t".hex() + "0000000100000000"
SENT = {
    "kafka-clients 4.3.0, range": (
        "range",
        f"0003{TOPIC}ffffffff00000000ffffffffffff",
        f"0003{OWNED}ffffffff",
    ),
    "kafka-clients 4.3.0, cooperative-sticky": (
        "cooperative-sticky",
        f"0003{TOPIC}00000004ffffffff00000000ffffffffffff",
        f"0003{OWNED}ffffffff",
    ),
    "librdkafka 2.16.0, range": ("range", f"0003{TOPIC}0000000000000000ffffffff0000", f"0000{OWNED}00000000"),
    "librdkafka 2.16.0, cooperative-sticky, in its second generation": (
        "cooperative-sticky",
        f"0003{TOPIC}00000008000000000000000300000000000000030000",
        f"0000{OWNED}000000080000000000000003",
    ),
    "aiokafka 0.14.0": ("roundrobin", f"0000{TOPIC}00000000", f"0000{OWNED}00000000"),
    "franz-go 1.22.2, range": ("range", f"0003{TOPIC}ffffffff00000000ffffffffffff", f"0000{OWNED}ffffffff"),
    "franz-go 1.22.2, cooperative-sticky": (
        "cooperative-sticky",
        f"0003{TOPIC}000000040000000000000000ffffffffffff",
        f"0000{OWNED}ffffffff",
    ),
    "franz-go 1.22.2, cooperative-sticky, in its second generation": (
        "cooperative-sticky",
        f"0003{TOPIC}0000000800000000000000030000000000000003ffff",
        f"0000{OWNED}ffffffff",
    ),
    "sarama 1.61.1": ("range", f"0001{TOPIC}ffffffff00000000", f"0000{OWNED}ffffffff"),
    "kafka-go 0.4.51": ("range", f"0001{TOPIC}ffffffff", f"0001{OWNED}ffffffff"),
}
"""Protocol, subscription and assignment as these clients sent them, of a topic ``t``."""
LIBRARIES = {"kafka-clients": "java", "librdkafka": "librdkafka", "aiokafka": "python"}


@pytest.mark.parametrize("client", SENT)
def test_a_client_is_told_by_its_blobs_and_a_go_client_is_no_other(client: str) -> None:
    protocol, sent, given = SENT[client]
    subscribed, assigned = subscription(bytes.fromhex(sent)), assignment(bytes.fromhex(given))

    assert library_of(protocol, subscribed, assigned) == LIBRARIES.get(client.split()[0])


def test_a_member_that_was_given_nothing_yet_is_not_called_java() -> None:
    _, sent, _ = SENT["kafka-clients 4.3.0, range"]

    assert library_of("range", subscription(bytes.fromhex(sent)), {}) is None
