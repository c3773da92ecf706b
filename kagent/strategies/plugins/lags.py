"""Lags for assignors: a cache that a background thread fills, because an assignor must not wait for a network."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

log = logging.getLogger(__name__)

Lags = Mapping[str, Sequence[int]]
"""Topic → lag per partition."""


class LagCache:
    """The last lags that were learned, for as long as they are worth something."""

    def __init__(self, max_age: float = 60.0) -> None:
        """Lags older than ``max_age`` seconds are as good as none."""
        self.max_age = max_age
        self._entry: tuple[float, Lags] | None = None

    def put(self, lags: Lags, now: float) -> None:
        """Replace what is there; one assignment of a reference, so readers in other threads see all or nothing."""
        self._entry = (now, dict(lags))

    def fresh(self, now: float) -> Lags:
        """The lags, or nothing if there are none or they are old."""
        entry = self._entry
        return entry[1] if entry is not None and now - entry[0] <= self.max_age else {}


@contextmanager
def keep_filled(
    cache: LagCache,
    source: Callable[[], Lags],
    every: float = 15.0,
    clock: Callable[[], float] = time.time,
) -> Iterator[None]:
    """While the block runs, a thread asks ``source`` and puts its answer into the cache.

    A source that fails is logged and asked again; the cache then grows old, and the assignors fall back.
    """
    done = threading.Event()

    def fill() -> None:
        while True:
            try:
                cache.put(source(), clock())
            except Exception:
                log.warning("lags could not be had", exc_info=True)
            if done.wait(every):
                return

    # A daemon: a consumer that ends without leaving the block is not kept alive by it.
    thread = threading.Thread(target=fill, name="kagent-lags", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)


def group_lag(
    bootstrap: str, group: str, topics: Sequence[str], auto_offset_reset: str = "latest", admin: Any = None
) -> Callable[[], Lags]:
    """A source for ``keep_filled``: the group's lag on these topics, by the rule of KAFKA-5337.

    Lag is end − committed and never below 0; without a commit it is 0 if ``auto_offset_reset`` is latest, else all
    that the partition has. A topic of which a log end could not be had is left out.
    """
    from kagent.kafka.admin import Admin
    from kagent.settings import Cluster

    asked = admin or Admin(Cluster(bootstrap=bootstrap))

    def source() -> Lags:
        counts = {name: topic.partitions for name, topic in asked.topics(topics).items()}
        keys = [(name, partition) for name, count in counts.items() for partition in range(count)]
        # Before the log ends: what is committed meanwhile cannot make a lag negative.
        committed = asked.committed([group]).get(group, {})
        begin = asked.log_start(keys).found
        end = asked.log_end(keys).found
        # A topic with a partition that did not answer is left out: a guess for it would move partitions.
        known = {
            n: count
            for n, count in counts.items()
            if all((n, p) in end and (n, p) in begin for p in range(count))
        }
        return {
            name: [
                lag_of(begin[name, p], end[name, p], committed.get((name, p)), auto_offset_reset)
                for p in range(count)
            ]
            for name, count in known.items()
        }

    return source


def lag_of(begin: int, end: int, committed: int | None, auto_offset_reset: str) -> int:
    """The lag of one partition, as grantneale's assignor computes it."""
    if committed is None:
        committed = end if auto_offset_reset.lower() == "latest" else begin
    return max(end - committed, 0)
