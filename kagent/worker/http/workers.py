"""One question to all workers: every answer has a version, and one that did not change is not sent again.

The answers of one moment are shared by all who ask within FRESH_S, so ten open pages cost what one does.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp

PATIENCE_S = 5.0
"""For another worker's answer. Less than the page waits, so that one worker that hangs is named and does not hide the rest."""
FRESH_S = 0.4
REMEMBERED = 64
OWN = "/api/own/v1/"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the workers answered: ``parts`` with their ``version``, and who did not answer and why. ``tag``: changes when they do."""

    parts: list[Json]
    silent: dict[str, str]

    @property
    def tag(self) -> str:
        """The ETag of whatever is made of these answers."""
        versions = ",".join(sorted(f"{part['worker']}={part['version']}" for part in self.parts))
        return f"{versions};{','.join(sorted(self.silent))}"


@dataclass(slots=True)
class Workers:
    """All workers. ``own``: this one's answer to a question and its parameters; ``peers``: the others' addresses."""

    session: Callable[[], aiohttp.ClientSession]
    own: Callable[[str, Mapping[str, str]], Awaitable[Json]]
    peers: Callable[[], list[str]]
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[str, Json] = field(default_factory=OrderedDict)
    _recent: OrderedDict[str, tuple[float, asyncio.Task[Answers]]] = field(default_factory=OrderedDict)

    async def ask(self, question: str, params: Mapping[str, str]) -> Answers:
        """What all workers answer."""
        key = f"{question}?{urlencode(sorted(params.items()))}"
        at, task = self._recent.get(key, (-FRESH_S, None))
        if task is None or task.cancelled() or (task.done() and self.clock() - at >= FRESH_S):
            task = asyncio.create_task(self._ask(question, params))
            self._recent[key] = (self.clock(), task)
            _bound(self._recent)
        # A page that is closed must not cancel the question that others wait for.
        return await asyncio.shield(task)

    async def _ask(self, question: str, params: Mapping[str, str]) -> Answers:
        urls = self.peers()
        asking = asyncio.gather(*(self._peer(url, question, params) for url in urls))
        # Side by side: this worker's own part takes as long as another's.
        mine, others = await asyncio.gather(self.own(question, params), asking)
        silent = {url: other for url, other in zip(urls, others, strict=True) if isinstance(other, str)}
        return Answers([mine, *(other for other in others if not isinstance(other, str))], silent)

    async def _peer(self, url: str, question: str, params: Mapping[str, str]) -> Json | str:
        """One worker's answer, or why there is none."""
        address = f"{url.rstrip('/')}{OWN}{question}"
        key = f"{address}?{urlencode(sorted(params.items()))}"
        known = self._known.get(key)
        headers = {**self.headers, **({"If-None-Match": f'"{known["version"]}"'} if known else {})}
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S, sock_connect=3)
        try:
            async with self.session().get(
                address, params=params, headers=headers, timeout=timeout, ssl=self.tls or True
            ) as answer:
                # The other's 304 saves it the encoding and both the transfer.
                if answer.status == 304 and known is not None:
                    return known
                if answer.status != 200:
                    return f"HTTP {answer.status}"
                return self._remember(key, await answer.json(content_type=None))
        except TimeoutError:
            return "no answer in time"
        except aiohttp.ClientError as error:
            return f"cannot be reached ({type(error).__name__})"
        except (ValueError, TypeError, KeyError):
            return "its answer cannot be read"

    def _remember(self, key: str, answer: Json) -> Json:
        # What is remembered is sent back as a header: only what kagent can have answered is kept.
        if not isinstance(answer["worker"], str) or not isinstance(answer["version"], str):
            raise ValueError
        self._known[key] = answer
        self._known.move_to_end(key)
        _bound(self._known)
        return answer


def _bound(cache: OrderedDict[str, Any]) -> None:
    while len(cache) > REMEMBERED:
        cache.popitem(last=False)
