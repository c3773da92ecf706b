"""What the adapters for the client libraries share: the members of a join in, everybody's partitions out.

An assignor runs on the group's leader while everybody waits, so nothing here asks a network, and nothing raises: what
goes wrong falls back to the sticky assignment, and that to round robin.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kagent.errors import InputError
from kagent.strategies import STRATEGIES, Member, Scenario, assign
from kagent.strategies.plugins import userdata
from kagent.strategies.plugins.lags import LagCache
from kagent.text import shown

log = logging.getLogger(__name__)

Pairs = list[tuple[str, int]]

FALLBACK = "sticky"
LAST_RESORT = "roundrobin"


@dataclass(frozen=True, slots=True)
class Joined:
    """One member as its JoinGroup request shows it."""

    member_id: str
    topics: tuple[str, ...]
    user_data: bytes | None = None
    group_instance_id: str | None = None
    rack: str | None = None
    owned: tuple[tuple[str, int], ...] | None = None
    """From the subscription's own field (cooperative clients); None where the client does not send it."""
    generation: int | None = None


class Engine:
    """One consumer's assignor: what it remembers of its own assignment, and the leader's computation."""

    def __init__(
        self,
        strategy: str,
        lags: LagCache | None = None,
        clock: Callable[[], float] = time.time,
        **options: Any,
    ) -> None:
        if strategy not in STRATEGIES:
            raise InputError(f'"{shown(strategy)}" is no strategy; there are {", ".join(STRATEGIES)}')
        self.strategy = STRATEGIES[strategy]
        if "python" not in self.strategy.runs_on:
            raise InputError(f"{strategy} is computed by the broker: no client can run it")
        if self.strategy.needs_lag and lags is None:
            raise InputError(f"{strategy} needs lags=LagCache(…), filled by keep_filled")
        self.lags, self.clock, self.options = lags, clock, options
        self.owned: Pairs = []
        self.generation = userdata.NO_GENERATION

    def user_data(self) -> bytes:
        """What to send with a JoinGroup request: what this member owns."""
        return userdata.encode(self.owned, self.generation)

    def assigned(self, owned: Iterable[tuple[str, int]], generation: int) -> None:
        """Remember what this member was given."""
        self.owned, self.generation = list(owned), generation

    def place(self, counts: Mapping[str, int], joined: Sequence[Joined]) -> dict[str, Pairs]:
        """Everybody's partitions, every member present; ``counts`` has the topics whose metadata is there."""
        # The whole group waits for this answer: where a strategy fails, a plainer one must give it.
        names = [self.strategy.name, FALLBACK, LAST_RESORT]
        for name in names[self._starting_at(counts, joined) :]:
            try:
                options = self.options if name == self.strategy.name else {}
                return assign(name, self._scenario(counts, joined), **options).to_dict()
            except Exception:
                log.exception("strategy %s failed; the next one is taken", name)
        return {member.member_id: [] for member in joined}

    def _starting_at(self, counts: Mapping[str, int], joined: Sequence[Joined]) -> int:
        if not self.strategy.needs_lag:
            return 0
        assert self.lags is not None
        lags = self.lags.fresh(self.clock())
        # With the lag of some topics only, members that read the others would seem idle.
        wanted = {topic for member in joined for topic in member.topics if counts.get(topic)}
        if all(len(lags.get(topic, ())) == counts[topic] for topic in wanted):
            return 0
        log.warning("lags are missing or old: members keep what they have (%s)", FALLBACK)
        return 1

    def _scenario(self, counts: Mapping[str, int], joined: Sequence[Joined]) -> Scenario:
        remembered: dict[str, Pairs] = {}
        owned: dict[str, Pairs] = {}
        members: list[Member] = []
        for one in joined:
            remembers, generation = userdata.decode(one.user_data)
            member = Member(
                one.member_id,
                # A client may name a topic twice; a scenario refuses that.
                tuple(dict.fromkeys(one.topics)),
                one.group_instance_id,
                one.rack,
                one.generation,
                generation,
            )
            if one.owned is None:  # an eager client: all that is known is in the user data
                known = None if generation in (None, -1) else generation
                member = msgspec.structs.replace(member, generation=known)
            members.append(member)
            remembered[one.member_id] = _once(remembers)
            owned[one.member_id] = _once(remembers if one.owned is None else one.owned)
        lags = self.lags.fresh(self.clock()) if self.lags is not None else {}
        usable = {topic: values for topic, values in lags.items() if len(values) == counts.get(topic)}
        return Scenario.of(members, counts, owned=owned, remembered=remembered, lags=usable)

    def next_generation(self, joined: Sequence[Joined]) -> int:
        """A generation above all that the members remember, for clients that do not tell an assignor the real one."""
        known = [userdata.decode(member.user_data)[1] for member in joined]
        return max((generation for generation in known if generation is not None), default=-1) + 1


def _once(pairs: Iterable[tuple[str, int]]) -> Pairs:
    return [pair for pair in dict.fromkeys(pairs) if pair[1] >= 0]


def by_topic(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    """Pairs in the shape of an assignment message."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in pairs:
        grouped.setdefault(topic, []).append(partition)
    return sorted((topic, sorted(partitions)) for topic, partitions in grouped.items())
