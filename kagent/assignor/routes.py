"""What the consumers of a classic group need so that the group can take a plan: what their own client can have, and nothing else."""

from __future__ import annotations

from kagent.contract.recommendation import GroupKind

ROUTES = {
    GroupKind.CLASSIC_JAVA: "kagent's assignor in every consumer (`kagent assignor --consumer`)",
    GroupKind.CLASSIC_PYTHON: "kagent.follow in every consumer (aiokafka, kafka-python)",
    # https://github.com/confluentinc/librdkafka/issues/2284
    GroupKind.CLASSIC_LIBRDKAFKA: (
        "the consumer protocol (group.protocol=consumer in every consumer) and kagent's assignor on the brokers (`kagent assignor`)"
    ),
    GroupKind.CLASSIC: (
        "kagent's assignor in every consumer (Java: `kagent assignor --consumer`; aiokafka and kafka-python: kagent.follow)"
    ),
}
"""Kind → what is needed; kinds that are missing can have nothing. Of ``classic`` the client is not known."""
