"""What waits at each partition at a given time, and since when its oldest record waits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.measure import Floats, Lags, Longs


def backlog(lags: Lags, ends: Mapping[str, EndHistory], times: Longs, allowed: int) -> tuple[Floats, Floats]:
    """Records that wait per partition, at least and at most: the log end in the last sample before, and in the first one
    after, the time at which the offset is known to hold. Within ``allowed`` it is 0 (transaction markers)."""
    low, high = np.zeros(len(lags)), np.zeros(len(lags))
    for code, name in enumerate(lags.topics):
        here = np.flatnonzero(lags.topic == code)
        # What retention deleted is lost, not waiting: a reader below the log start can only go on at the log start.
        base = np.maximum(lags.committed[here], lags.start[here])
        before, after = ends[name].bracket(lags.partition[here], times[here])
        waits = np.where(before == UNKNOWN, 0, np.maximum(before - base, 0))
        # Commit and abort markers of transactions take an offset each and are never read (KIP-98), so a reader of a transactional
        # topic may end one short of the log end for ever.
        # https://cwiki.apache.org/confluence/display/KAFKA/KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging
        low[here] = np.where(waits <= allowed, 0, waits)
        high[here] = np.maximum(np.where(after == UNKNOWN, lags.end[here], after) - base, low[here])
    return low, high


def waiting_since(lags: Lags, ends: Mapping[str, EndHistory], allowed: int) -> Longs:
    """When each partition's oldest unread record was in the log for certain, ms; 0 where nothing is unread, or no more than is
    allowed: these may be transaction markers, which no consumer reads, so
    they would count as unread for ever."""
    out = np.zeros(len(lags), np.int64)
    for code, name in enumerate(lags.topics):
        here = np.flatnonzero(lags.topic == code)
        base = np.maximum(lags.committed[here], lags.start[here])
        since = ends[name].first_beyond(lags.partition[here], base)
        out[here] = np.where(lags.end[here] - base > allowed, since, 0)
    return out
