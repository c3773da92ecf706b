"""Source partitions in progress and cuts: a record may only tell of partitions that ``__consumer_offsets`` has."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import Any

from kagent.contract.events import Beat, LogCut


def existing(message: Beat | LogCut, partitions: int) -> Beat | LogCut:
    """The message without what it tells of other partitions than 0 to ``partitions`` - 1; the same object if there is none.

    The rest counts: of partitions that were added lately the worker does not know yet, and the others would seem to have a gap.
    """
    # Nearly always: one pass instead of new lists.
    if max(message.source, default=-1) < partitions:
        return message
    there = [source < partitions for source in message.source]
    names: tuple[str, ...] = ("source", "offset")
    if isinstance(message, Beat):
        names += ("start", "log_end", "stable_end")
    columns: dict[str, Any] = {name: list(compress(getattr(message, name), there)) for name in names}
    return replace(message, **columns)
