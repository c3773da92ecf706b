"""Addresses of hosts by name, where the name server may hang or be away: what it last answered is used until it answers again (RFC 8767).

asyncio asks in its pool of threads, as many as processors and four more, for which pages and questions to the cluster wait too: a
resolver that takes 20 s for each of a worker's connections would leave none. Here each name has one thread at most, however many wait for it.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from kagent.text import in_words

T = TypeVar("T")
Question = tuple[Any, ...]
"""The arguments of ``socket.getaddrinfo``."""
Answer = list[Any]
PATIENCE_S = 1.8
"""How long a name server is waited for where its last answer is known: the client response timer that RFC 8767 recommends. Others who
ask for the name wait no more, until it has answered."""


class Names:
    """The last answers. For all threads and event loops of a process."""

    def __init__(self, ask: Any = socket.getaddrinfo) -> None:
        self._ask, self._lock = ask, threading.Lock()
        self._asked: dict[Question, Future[Answer]] = {}
        self._known: dict[Question, Answer] = {}
        self._overdue: set[Question] = set()
        self.lacking: dict[str, str] = {}
        """Host → why the name server does not say now where it is."""

    async def answer(self, *question: Any) -> Answer:
        """The addresses, of now or of before. Raises socket.gaierror."""
        asked = asyncio.wrap_future(self._question(question))
        try:
            await asyncio.wait([asked], timeout=self._patience_s(question))
        finally:
            # An answer that comes later must not reach a loop that may have ended by then.
            asked.cancel()
        return self._settled(question, asked)

    def answer_within(self, timeout_s: float, *question: Any) -> Answer:
        """As ``answer``; blocks. Raises TimeoutError where none is known by then."""
        asked = self._question(question)
        patience_s = self._patience_s(question)
        wait([asked], timeout_s if patience_s is None else min(timeout_s, patience_s))
        return self._settled(question, asked)

    def _patience_s(self, question: Question) -> float | None:
        """None: without end, as there is nothing else."""
        if question not in self._known:
            return None
        return 0.0 if question in self._overdue else PATIENCE_S

    def _settled(self, question: Question, asked: Any) -> Answer:
        answered = asked.done() and not asked.cancelled()
        known = self._known.get(question)
        if answered and (known is None or not _is_away(asked.exception())):
            found: Answer = asked.result()
            return found
        if not answered:
            self.lacking[question[0]] = "the name server does not answer"
        if known is None:
            raise TimeoutError(f"the name server does not say where {question[0]} is")
        self._overdue.add(question)
        return known

    def _question(self, question: Question) -> Future[Answer]:
        with self._lock:
            asked = self._asked.get(question)
            if asked is None:
                asked = self._asked[question] = Future()
                # So that one who ceases to wait does not cancel it for the others.
                asked.set_running_or_notify_cancel()
                # A daemon: the resolver cannot be interrupted, and no process is to wait for it at its end.
                threading.Thread(
                    target=self._run, args=(question, asked), name="kagent-names", daemon=True
                ).start()
            return asked

    def _run(self, question: Question, asked: Future[Answer]) -> None:
        try:
            found = self._ask(*question)
        except Exception as error:
            with self._lock:
                del self._asked[question]
                self.lacking[question[0]] = getattr(error, "strerror", None) or in_words(error)
            asked.set_exception(error)
            return
        with self._lock:
            del self._asked[question]
            self._known[question] = found
            self._overdue.discard(question)
            self.lacking.pop(question[0], None)
        asked.set_result(found)


def _is_away(error: BaseException | None) -> bool:
    """Whether no name server answered. One that knows no such name has answered."""
    return isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN


NAMES = Names()


def lacking(hosts: Iterable[str]) -> str | None:
    """Which of these hosts has no address now, and why; None if all have."""
    found = ((host, NAMES.lacking.get(host)) for host in hosts)
    return next((f"the name {host} has no address ({why})" for host, why in found if why), None)


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose connections are made by these names."""

    async def getaddrinfo(  # type: ignore[override]  # typeshed has bytes for the host, which is never given
        self,
        host: str | None,
        port: str | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002  asyncio's name
        proto: int = 0,
        flags: int = 0,
    ) -> Answer:
        return await NAMES.answer(host, port, family, type, proto, flags)


class LoopPolicy(asyncio.DefaultEventLoopPolicy):
    """Such loops in a process that leaves the making of them to others, as Faust does."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return Loop()


def run(main: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, in such a loop."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main)


def connected(host: str, port: int, timeout_s: float) -> socket.socket:
    """As ``socket.create_connection``, the name asked within the timeout too. Raises OSError."""
    failed: OSError | None = None
    for *_, address in NAMES.answer_within(timeout_s, host, port, 0, socket.SOCK_STREAM):
        try:
            return socket.create_connection(address[:2], timeout_s)
        except OSError as error:
            failed = error
    try:
        raise failed or OSError(f"{host} has no address")
    finally:
        # The error's traceback holds this frame, which must not hold the error: the cycle would keep all that the callers hold.
        failed = None
