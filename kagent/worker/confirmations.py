"""Coordinators are asked about findings beside the ticks: one that does not answer holds up no tick, and no other group's finding.

A broker that is gone takes the coordinators of its groups along, and what is asked of it waits for its deadline. Waited for within a tick,
group after group, that would be minutes in which no group of the worker is judged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError as ClientError

from kagent.errors import KafkaError
from kagent.kafka.descriptions import GroupAnswers
from kagent.worker.coordinator_check import CoordinatorAnswer
from kagent.worker.groups import Entry

log = logging.getLogger("kagent.worker")

AskCoordinators = Callable[[str, Sequence[Entry]], Awaitable[GroupAnswers[CoordinatorAnswer]]]
"""Ask the coordinators about these groups of one cluster now."""
BROKER_TROUBLE = (KafkaError, ClientError, TimeoutError)
"""Errors of the broker, not of a group."""
Answer = CoordinatorAnswer | Exception | None
"""None: the coordinator could not be asked. An exception: the answer about this group made the question raise."""
SHARE_OF_TICK = 0.5
"""Of a tick's time its answers are waited for; the rest is for the judgement. A healthy coordinator answers within 0.1 s."""
FRESH_TICKS = 3
"""An older answer is not used: the group was no candidate at the ticks in between."""


@dataclass(slots=True)
class _Questions:
    """About the groups of one cluster, one question at a time: those that become candidates meanwhile are asked about together."""

    queued: dict[str, Entry] = field(default_factory=dict)
    asked: dict[str, Entry] = field(default_factory=dict)
    answered: dict[str, tuple[float, Answer]] = field(default_factory=dict)
    """Group key → when its answer came (monotonic, s), and the answer."""
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Confirmations:
    """``tick_s``: seconds between the ticks of a partition."""

    ask: AskCoordinators
    tick_s: float
    _clusters: dict[str, _Questions] = field(default_factory=lambda: defaultdict(_Questions))

    async def answers(self, entries: Iterable[Entry]) -> dict[str, Answer]:
        """Group key → answer, of those that came until the tick has to go on; a later one is there at the next tick."""
        until = time.monotonic() + SHARE_OF_TICK * self.tick_s
        by_cluster: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            by_cluster[entry.cluster].append(entry)
        for cluster, mine in by_cluster.items():
            self._put(cluster, mine)
        found: dict[str, Answer] = {}
        for cluster, mine in by_cluster.items():
            found |= await self._taken(self._clusters[cluster], [entry.key for entry in mine], until)
        return found

    def _put(self, cluster: str, entries: Iterable[Entry]) -> None:
        questions, oldest = self._clusters[cluster], time.monotonic() - FRESH_TICKS * self.tick_s
        fresh = {key: one for key, one in questions.answered.items() if one[0] >= oldest}
        questions.answered = fresh
        questions.queued |= {e.key: e for e in entries if e.key not in fresh and e.key not in questions.asked}
        self._start(cluster, questions)

    def _start(self, cluster: str, questions: _Questions) -> None:
        """Ask about all that are queued, unless a question is under way."""
        if questions.queued and questions.task is None:
            questions.asked, questions.queued = questions.queued, {}
            questions.task = asyncio.create_task(self._ask(cluster, questions))

    async def _ask(self, cluster: str, questions: _Questions) -> None:
        try:
            found = await self._answered(cluster, list(questions.asked.values()))
            now = time.monotonic()
            questions.answered |= {key: (now, found.get(key)) for key in questions.asked}
        finally:
            questions.asked, questions.task = {}, None
        self._start(cluster, questions)

    async def _answered(self, cluster: str, entries: Sequence[Entry]) -> dict[str, Answer]:
        try:
            answers = await self.ask(cluster, entries)
        except BROKER_TROUBLE as error:
            for entry in entries:
                _held_back(entry, error)
            return {}
        except Exception as error:
            if len(entries) == 1:
                return {entries[0].key: error}
            # One of them makes the question raise: it costs the others no answer.
            return {key: one for e in entries for key, one in (await self._answered(cluster, [e])).items()}
        for entry in entries:
            why = answers.failed.get(entry.group) or answers.settled.get(entry.group)
            if why is not None:
                _held_back(entry, why)
        return {e.key: answers.found[e.group] for e in entries if e.group in answers.found}

    async def _taken(self, questions: _Questions, keys: Sequence[str], until: float) -> dict[str, Answer]:
        while questions.task is not None and not questions.answered.keys() >= set(keys):
            left = until - time.monotonic()
            if left <= 0:
                break
            await asyncio.wait({questions.task}, timeout=left)
        return {key: questions.answered.pop(key)[1] for key in keys if key in questions.answered}


def _held_back(entry: Entry, why: object) -> None:
    # Not dropped: the candidate stays in the state, and the next tick asks again.
    log.warning("a finding about %r is held back: %s", entry.key, why)
