"""Connections to the brokers of a cluster for one question, one for each: a broker that does not answer delays no other.

aiokafka's clients open their connections one after the other, and send what any broker can answer to one that they choose by chance:
with one broker frozen (a stopped process, a lost disk), every question to the others would wait for it, or fail.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import CorrelationIdError, KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from kagent.kafka import names
from kagent.kafka.clients import aiokafka
from kagent.kafka.reach import addresses
from kagent.settings import Cluster

Address = tuple[str, int]
T = TypeVar("T")
SHARES = 3
"""One answer is waited for through this part of a question's time: with an address that does not answer and a broker that does not,
there is time left for a third."""
SILENT_FOR_S = 30.0
"""A broker that was waited for in vain is not waited for with the whole patience so soon again: a command puts five questions."""
SILENT_PATIENCE_S = 1.0
"""Enough for one that answers again, so that it is heard at the next question."""


class NoAnswer(KafkaConnectionError):
    """One broker does not answer. ``silent``: it was waited for in vain; else nothing listens there, or it closed the connection."""

    def __init__(self, sentence: str, silent: bool) -> None:
        super().__init__(sentence)
        self.sentence, self.silent = sentence, silent

    def __str__(self) -> str:
        return self.sentence


async def together(asked: Iterable[Awaitable[T]], *also: type[Exception]) -> list[T | Exception]:
    """The answers to questions that are put at once, in their order; in the place of one its NoAnswer, or what is ``also`` no error of all.

    Raises every other error. One broker that does not answer costs its own answer alone.
    """
    found: list[T | Exception] = []
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, BaseException) and not isinstance(answer, (NoAnswer, *also)):
            raise answer
        found.append(answer)  # type: ignore[arg-type]
    return found


@dataclass(slots=True)
class Silences:
    """When brokers were waited for in vain, for all questions to a cluster."""

    since: dict[Address, float] = field(default_factory=dict)

    def lately(self, address: Address) -> bool:
        """Whether this one was waited for in vain a moment ago."""
        return time.monotonic() - self.since.get(address, float("-inf")) < SILENT_FOR_S

    def note(self, address: Address) -> None:
        """It was waited for in vain. Not anew within the time: a slow one is to have the whole patience again after it."""
        if not self.lately(address):
            self.since[address] = time.monotonic()

    def over(self, address: Address) -> None:
        """It has answered."""
        self.since.pop(address, None)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker as the cluster's metadata has it."""

    address: Address
    rack: str | None


class Brokers:
    """The brokers, for one question. ``nodes``: those of the metadata, by their id, once it has started."""

    def __init__(self, cluster: Cluster, deadline_s: float, silences: Silences | None = None) -> None:
        config = aiokafka(cluster)
        self._bootstrap = list(addresses(config.pop("bootstrap_servers")))
        self._config = config
        self._deadline_s, self._silences = deadline_s, silences or Silences()
        self._ends_at = 0.0
        self._connections: dict[Address, asyncio.Task[AIOKafkaConnection]] = {}
        self._silent: dict[Address, bool] = {}
        """Those that did not answer this question: whether they were waited for in vain, or cannot be reached."""
        self.nodes: dict[int, Node] = {}

    async def __aenter__(self) -> Brokers:
        """Learn the brokers from the first address that answers. Raises KafkaConnectionError if none does."""
        self._ends_at = asyncio.get_running_loop().time() + self._deadline_s
        try:
            await self._learn()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def ask(self, request: Any, node: int) -> Any:
        """This broker's answer. Raises NoAnswer, and what aiokafka raises for a request that the broker does not know."""
        if node not in self.nodes:
            raise NoAnswer(f"broker {node} is not in the cluster's list of brokers", silent=False)
        return await self._send(request, self.nodes[node].address, f"broker {node} at")

    async def ask_any(self, request: Any) -> Any:
        """The answer of one broker, whichever answers first of those that are asked one after the other."""
        last: NoAnswer | None = None
        for node in self._by_likelihood():
            try:
                return await self.ask(request, node)
            except NoAnswer as error:
                last = error
        raise last or KafkaConnectionError("the cluster's metadata names no broker")

    def _by_likelihood(self) -> list[int]:
        """All brokers, those first that are connected already, those last that did not answer lately; the rest by chance."""
        nodes = random.sample(list(self.nodes), len(self.nodes))
        return sorted(nodes, key=lambda node: self._likelihood(self.nodes[node].address))

    def _likelihood(self, address: Address) -> int:
        if self._silences.lately(address) or address in self._silent:
            return 2
        return int(address not in self._connections)

    async def _learn(self) -> None:
        for address in sorted(self._bootstrap, key=self._silences.lately):
            try:
                answer = await self._send(MetadataRequest([]), address)
            except NoAnswer:
                continue
            self.nodes = {node: Node((host, port), rack) for node, host, port, rack in answer.brokers}
            if self.nodes:
                return
        everywhere = ",".join(f"{host}:{port}" for host, port in self._bootstrap)
        unnamed = names.lacking(host for host, _ in self._bootstrap)
        raise KafkaConnectionError(f"no broker answers at {everywhere}{f': {unnamed}' if unnamed else ''}")

    async def _send(self, request: Any, address: Address, whose: str = "the broker at") -> Any:
        where = f"{whose} {address[0]}:{address[1]}"
        if address not in self._silent:
            patience_s, began_at = self._patience_s(address), asyncio.get_running_loop().time()
            try:
                answer = await self._answer(request, address, patience_s)
            except TimeoutError:
                self._silent[address] = True
                # Not one for which others left no time.
                if asyncio.get_running_loop().time() - began_at >= patience_s:
                    self._silences.note(address)
            except (OSError, KafkaConnectionError, CorrelationIdError):
                self._silent[address] = False
            else:
                self._silences.over(address)
                return answer
        # Also to what is asked after it: it was waited for.
        silent = self._silent[address]
        raise NoAnswer(f"no answer from {where}" if silent else f"{where} cannot be reached", silent)

    async def _answer(self, request: Any, address: Address, patience_s: float) -> Any:
        # Each answer within the patience, all together by the question's end: a login takes several.
        async with asyncio.timeout_at(self._ends_at):
            connection = await self._connected(address, patience_s)
            return await connection.send(request)

    def _patience_s(self, address: Address) -> float:
        usual = self._deadline_s / SHARES
        everyone = {*self._bootstrap, *(node.address for node in self.nodes.values())}
        # Only while there is another one to ask: a cluster of one slow broker is waited for.
        if self._silences.lately(address) and not all(map(self._silences.lately, everyone)):
            return min(usual, SILENT_PATIENCE_S)
        return usual

    async def _connected(self, address: Address, patience_s: float) -> AIOKafkaConnection:
        if address not in self._connections:
            host, port = address
            opening = create_conn(host, port, request_timeout_ms=patience_s * 1000, **self._config)
            self._connections[address] = asyncio.ensure_future(opening)
        # Shielded: another request to the same broker may wait for it too, and longer.
        return await asyncio.shield(self._connections[address])

    async def _close(self) -> None:
        tasks = self._connections.values()
        for task in tasks:
            task.cancel()
        opened = await asyncio.gather(*tasks, return_exceptions=True)
        # Waited for, as a socket is closed only in the loop's next round, and this may be its last.
        closed = [found.close() for found in opened if not isinstance(found, BaseException)]
        await asyncio.gather(*closed)
