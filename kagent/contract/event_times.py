"""Times in events: a producer's clock that is ahead must not make data look newer than it is."""

from __future__ import annotations

from dataclasses import replace

from kagent.contract.admission import MAX_AHEAD_MS, not_ahead
from kagent.contract.events import Beat, LogCut, Message


def limited(message: Message, now_ms: int) -> Message:
    """The message with no time ahead of the broker's clock; the same object if there was none."""
    # Nearly always: one pass of maxima instead of new lists.
    if _newest(message) <= now_ms + MAX_AHEAD_MS:
        return message
    if isinstance(message, Beat | LogCut):
        return replace(message, time=now_ms)
    # Corrected, not refused: the offsets in it are right, and would be missed until the next commit.
    offsets = [replace(o, time=not_ahead(o.time, now_ms)) for o in message.offsets]
    records = [replace(r, time=not_ahead([r.time], now_ms)[0]) for r in message.records]
    return replace(message, time=min(message.time, now_ms), offsets=offsets, records=records)


def _newest(message: Message) -> int:
    if isinstance(message, Beat | LogCut):
        return message.time
    columns = (max(o.time, default=0) for o in message.offsets)
    return max((message.time, *columns, *(r.time for r in message.records)))
