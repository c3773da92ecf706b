"""The Kafka client without its log lines, where our own sentence or exception has the same information."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_client(unless: int = logging.NOTSET) -> Iterator[None]:
    """Within the block aiokafka logs nothing below CRITICAL. ``unless``: where its logger has this level or a lower one, it goes on."""
    client = logging.getLogger("aiokafka")
    before = client.level
    if client.getEffectiveLevel() > unless:
        client.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        client.setLevel(before)
