"""Clients of librdkafka that end in a thread of their own.

One waits at its end for its own threads, and those for the resolver: with a name server that takes 20 s, whichever thread drops the
last reference stands still for so long. That may be an event loop, where an exception was raised in a thread and held its frames.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound=AbstractContextManager[Any])


class EndsAside(Generic[T]):
    """Holds a client; to be held in its place. ``client`` is to be used, not kept."""

    def __init__(self, client: T) -> None:
        self._held = [client]
        # Not at the end of the process, when no thread can be started any more.
        self._finalizer = weakref.finalize(self, _end, self._held)
        self._finalizer.atexit = False

    @property
    def client(self) -> T:
        return self._held[0]

    def end(self) -> None:
        """End it now, without waiting for it, even if another object holds it: frames of a call that failed may, until the garbage collector comes."""
        if self._finalizer.detach():
            _aside(_close, self._held)


def _end(held: list[T]) -> None:
    _aside(held.clear)


def _close(held: list[T]) -> None:
    # Clients of librdkafka have no other name for it that all of them know.
    with held.pop():
        pass


def _aside(end: Callable[..., None], *given: object) -> None:
    # A daemon: no process is to wait for it at its end.
    threading.Thread(target=end, args=given, name="kagent-client-end", daemon=True).start()
