"""Which names a topic may have. By itself, as clients of Kafka need it and nothing else of the contract."""

from __future__ import annotations

import re

TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
"""Kafka's ``org.apache.kafka.common.internals.Topic.validate``, which also refuses ``.`` and ``..``."""


def is_topic_name(name: object) -> bool:
    """Whether Kafka allows a topic of this name; a broker refuses a whole request over one that it does not."""
    return isinstance(name, str) and name not in (".", "..") and TOPIC_NAME.match(name) is not None
