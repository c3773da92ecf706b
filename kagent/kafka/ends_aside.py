"""Clients of librdkafka that end in a thread of their own.

One waits at its end for its own threads, and those for the resolver: with a name server that takes 20 s, whichever thread drops the
last reference stands still for so long. That may be an event loop, where an exception was raised in a thread and held its frames.
"""

from __future__ import annotations

import threading
import weakref
from typing import Generic, TypeVar

T = TypeVar("T")


class EndsAside(Generic[T]):
    """Holds a client; to be held in its place. ``client`` is to be used, not kept."""

    def __init__(self, client: T) -> None:
        self._held = [client]
        # Not at the end of the process, when no thread can be started any more.
        weakref.finalize(self, _end, self._held).atexit = False

    @property
    def client(self) -> T:
        return self._held[0]


def _end(held: list[T]) -> None:
    # A daemon: no process is to wait for it at its end.
    threading.Thread(target=held.clear, name="kagent-client-end", daemon=True).start()
