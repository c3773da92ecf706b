"""The key under which a partition is remembered in rows."""

from __future__ import annotations


def partition_key(topic: str, partition: int) -> str:
    """
    >>> partition_key("orders", 3)
    'orders/3'
    """
    return f"{topic}/{partition}"


def of_partition_key(key: str) -> tuple[str, str]:
    """Topic and partition; no topic's name has a slash (``Topic.LEGAL_CHARS`` of Kafka).

    >>> of_partition_key("orders/3")
    ('orders', '3')
    """
    topic, _, partition = key.rpartition("/")
    return topic, partition
