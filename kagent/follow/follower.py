"""One consumer's follower: what it remembers, what it does when it leads the group, and when it asks for a rebalance.

The decisions are in kagent.follow.rebalance_decision and kagent.follow.rejoin_budget; this is the state between them and the client.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from kagent.errors import InputError
from kagent.follow import plan_userdata
from kagent.follow.decision_types import (
    Decision,
    Followed,
    Held,
    Peer,
    Reason,
    Rules,
    Snapshot,
    View,
    member_name,
    once,
)
from kagent.follow.rebalance_decision import decide
from kagent.follow.rejoin_budget import Asking, May, may_ask, recent
from kagent.follow.snapshot_reader import Reader
from kagent.groups.client_library import FOLLOWING
from kagent.settings import Cluster, Topics
from kagent.strategies.plugins import userdata
from kagent.strategies.plugins.join import Engine, Joined, Pairs
from kagent.text import shown

log = logging.getLogger("kagent.follow")

SWITCH = "KAGENT_FOLLOW"
AS_IT_IS, DRY = ("", "on"), "dry"
"""What the variable may say without switching off; it never switches on what was not asked for."""
NEWEST = 2**31 - 1
"""The greatest generation: Kafka's protocol has 32 bits for it."""


class Client(Protocol):
    """What a follower needs of its consumer; nothing here waits for a network."""

    def name(self) -> tuple[str | None, str, str | None]:
        """Instance id, client id, and the host that the broker sees (None while there is no connection)."""

    def generation(self) -> int | None:
        """The group's generation that this member is in; None where the client does not tell."""

    def rejoin(self) -> None:
        """Join the group again; may be called from any thread."""


class Follower:
    """Made by ``aiokafka_follower`` or ``kafka_python_follower``, one for each consumer.

    ``counts``: how often each Reason decided a rebalance that this member led, and ``asked``.
    """

    eager_only: str | None = None
    """The library, where it does not speak the cooperative protocol."""

    def __init__(
        self,
        bootstrap: str | Cluster,
        group: str,
        cluster: str = "main",
        *,
        apply: bool = False,
        strategy: str = "sticky",
        asking: Asking | None = None,
        host: str | None = None,
        prefix: str = "kagent-",
        max_age: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.builtin = Engine(strategy)
        if self.cooperative and self.eager_only:
            raise InputError(
                f"{strategy} needs the cooperative protocol, which {self.eager_only} does not speak: take sticky"
            )
        self.builtin.place(
            {"t": 1}, [Joined(name, ("t",)) for name in "ab"]
        )  # loads what else a first rebalance would
        self.rules = Rules(cluster, group, max_age=max_age)
        self.apply, self.asking, self.host, self.clock = apply, asking or Asking(), host, clock
        self.counts: Counter[str] = Counter()
        self.snapshot: Snapshot | None = None
        self.client: Client | None = None
        source = bootstrap if isinstance(bootstrap, Cluster) else Cluster(bootstrap=bootstrap)
        self.reader = Reader(source, cluster, group, self.learned, self.tick, Topics(prefix=prefix))
        self._lock = threading.Lock()
        self._held: Held = ()
        self._target: Held | None = None
        self._generation: int | None = None
        self._followed: Followed | None = None
        self._asked: tuple[int, ...] = ()
        self._forgiven = 0.0
        self._latched = False
        # What this member gave out as the leader, until it gets its own part; from then on, while it leads, it is in _leads.
        self._led: View | None = None
        self._leads: View | None = None
        self._last_logged = ""

    @property
    def protocol(self) -> str:
        """The name under which all members of the group join; kagent knows a following group by it."""
        name = self.builtin.strategy.name
        return FOLLOWING if name == "sticky" else f"{FOLLOWING}-{name}"

    @property
    def cooperative(self) -> bool:
        """Whether members keep what they hold while they join (KIP-429)."""
        return self.builtin.strategy.cooperative

    @property
    def latched(self) -> bool:
        """Whether it stopped following because it would have asked for too many rebalances."""
        return self._latched

    def reset(self) -> None:
        """Follow again after it latched off; what was asked for before no longer counts."""
        with self._lock:
            self._latched, self._asked, self._forgiven = False, (), self.clock()

    def check_group(self, group: str | None) -> None:
        """Raises InputError where the consumer is of another group than the follower."""
        if group != self.rules.group:
            raise InputError(
                f"the consumer is in the group {shown(str(group))}, its follower in {shown(self.rules.group)}"
            )

    def learned(self, snapshot: Snapshot) -> None:
        """The cache: one assignment of a reference, so an assignor in another thread sees all or nothing."""
        self.snapshot = snapshot

    # As a member: what it sends when it joins, and what it was given.

    def user_data(self) -> bytes:
        """What to send with a JoinGroup request."""
        with self._lock:
            self._leads = self._led = None
            held = self._held if self._target is None else self._target
            return plan_userdata.joining(self._name(), held, self._generation, self._followed, self._asked)

    def owned(self, topics: Iterable[str]) -> tuple[Held, int | None]:
        """What this member holds of these topics, and since which generation; for a cooperative JoinGroup request."""
        with self._lock:
            wanted = set(topics)
            return tuple(pair for pair in self._held if pair[0] in wanted), self._generation

    def assigned(self, pairs: Iterable[tuple[str, int]], generation: int | None, data: bytes | None) -> None:
        """Remember what this member was given; ``generation`` as the client tells it, None where it does not."""
        given = plan_userdata.read_given(data)
        with self._lock:
            self._held = once(pairs)
            self._generation = given.generation if given and generation is None else generation
            self._followed = given.followed if given else None
            self._target = given.pairs if given and self._followed else None
            self._remember(given.asked if given else ())
            if self._led is not None:
                peers = tuple(replace(peer, generation=self._generation) for peer in self._led.peers)
                self._leads = replace(self._led, peers=peers)

    def _name(self) -> str | None:
        if self.client is None:
            return None
        instance_id, client_id, host = self.client.name()
        host = self.host or host
        return instance_id or (member_name(None, client_id, host) if host else None)

    # As the leader.

    def place(
        self, counts: Mapping[str, int], joined: Sequence[Joined]
    ) -> tuple[dict[str, Pairs], dict[str, bytes]]:
        """Every member's partitions, and the userdata that goes with each. Makes no request, never raises."""
        heard = [plan_userdata.read_joining(one.user_data) for one in joined]
        owners = _owners(joined)
        view = View(
            tuple(_peer(one, userdata, owners) for one, userdata in zip(joined, heard, strict=True)), counts
        )
        with self._lock:
            self._remember(at for one in heard if one is not None for at in one.asked)
        decision = self._decide(view)
        dry = self._dry()
        self.counts[decision.reason] += 1
        self._log_decision(decision, dry)
        target = None if dry else decision.placed
        if target is None:
            placed = self.builtin.place(counts, self._for_builtin(view, joined))
        else:
            placed = _without_held_by_others(target, owners)
        followed = None if target is None else decision.followed
        peers = tuple(
            replace(peer, held=once(placed.get(peer.member_id, ())), followed=followed) for peer in view.peers
        )
        with self._lock:
            self._led, asked = View(peers, dict(counts)), self._asked
        targets = target if target is not None and self.cooperative else {}
        generation = _next(view.generation)
        return placed, {
            member: plan_userdata.given(generation, followed, asked, targets.get(member)) for member in placed
        }

    def _for_builtin(self, view: View, joined: Sequence[Joined]) -> list[Joined]:
        """The members as they would have joined with the built-in assignor alone."""
        if self.cooperative:
            return [replace(one, user_data=b"") for one in joined]
        return _for_eager(view, joined)

    def _decide(self, view: View) -> Decision:
        rules = replace(self.rules, off=self._off(), latched=self._latched)
        try:
            return decide(view, self.snapshot, self.clock(), rules)
        except Exception:
            log.exception("group %s: no decision could be made", shown(self.rules.group))
            return Decision(Reason.FAILED, "no decision could be made.")

    def _log_decision(self, decision: Decision, dry: bool) -> None:
        group, builtin = shown(self.rules.group), self.builtin.strategy.name
        if decision.placed is None:
            log.info("group %s: assigned by %s: %s", group, builtin, decision.sentence)
        elif dry:
            log.info("group %s: assigned by %s; but for the dry run, %s", group, builtin, decision.sentence)
        else:
            log.info("group %s: %s", group, decision.sentence)

    # Asking the group to rejoin.

    def tick(self) -> None:
        """Ask for a rebalance if this member leads and a plan could be followed; by the reader, about twice a second."""
        view, client = self._leads, self.client
        if view is None or client is None:
            return
        decision = self._decide(view)
        if decision.reason is not Reason.FOLLOWED:
            return
        if self._dry():
            self._log_once(f"but for the dry run, the group would be asked to rejoin: {decision.sentence}")
            return
        now = self.clock()
        with self._lock:
            may = may_ask(self._asked, now, self.asking)
            if may is May.ASK:
                self._remember((int(now * 1000),))
            elif may is May.LATCH:
                self._latched = True
        if may is May.ASK:
            self.counts["asked"] += 1
            log.info("group %s is asked to rejoin: %s", shown(self.rules.group), decision.sentence)
            client.rejoin()
        elif may is May.LATCH:
            log.error(
                "group %s: %d rebalances were asked for in a day and another would be needed: following is off (latched) "
                "until this consumer restarts or its follower is reset",
                shown(self.rules.group),
                self.asking.most_per_day,
            )

    def _log_once(self, sentence: str) -> None:
        if sentence != self._last_logged:
            self._last_logged = sentence
            log.info("group %s: %s", shown(self.rules.group), sentence)

    def _remember(self, asked: Iterable[int]) -> None:
        counting = (at for at in (*self._asked, *asked) if at / 1000 > self._forgiven)
        self._asked = recent(counting, self.clock())

    def _off(self) -> bool:
        return os.environ.get(SWITCH, "").strip().lower() not in (*AS_IT_IS, DRY)

    def _dry(self) -> bool:
        return not self.apply or os.environ.get(SWITCH, "").strip().lower() == DRY


def partition_counts(cluster: Any, joined: Sequence[Joined]) -> dict[str, int]:
    """Partitions of each topic as the client's metadata has them; none while it is not there (the group joins again)."""
    topics = dict.fromkeys(topic for one in joined for topic in one.topics)
    found = {topic: cluster.partitions_for_topic(topic) for topic in topics}
    return {topic: max(numbers) + 1 if numbers else 0 for topic, numbers in found.items()}


def _next(generation: int | None) -> int:
    return min((-1 if generation is None else generation) + 1, NEWEST)


def _owners(joined: Sequence[Joined]) -> dict[tuple[str, int], str]:
    """Partition → the member that holds it, of cooperative members; of two claims the one of the newer generation counts."""
    oldest_first = sorted(joined, key=lambda one: -1 if one.generation is None else one.generation)
    return {pair: one.member_id for one in oldest_first for pair in one.owned or ()}


def _without_held_by_others(
    target: Mapping[str, Sequence[tuple[str, int]]], owners: Mapping[tuple[str, int], str]
) -> dict[str, Pairs]:
    """What each member gets now; the rest is given out at the rebalance that follows its revocation (KIP-429)."""
    return {
        member: [pair for pair in held if owners.get(pair, member) == member]
        for member, held in target.items()
    }


def _peer(one: Joined, heard: plan_userdata.Joining | None, owners: Mapping[tuple[str, int], str]) -> Peer:
    """The broker's word for an instance id counts more than the member's own."""
    topics = tuple(dict.fromkeys(one.topics))
    if heard is None:
        return Peer(one.member_id, topics)
    name = one.group_instance_id or heard.name
    if one.owned is None:
        return Peer(one.member_id, topics, name, heard.pairs, heard.generation, heard.followed)
    held = once(pair for pair in one.owned if owners[pair] == one.member_id)
    generation = heard.generation if one.generation is None else one.generation
    return Peer(one.member_id, topics, name, held, generation, heard.followed, heard.pairs)


def _for_eager(view: View, joined: Sequence[Joined]) -> list[Joined]:
    """What members hold, in the user data of the sticky assignor."""
    out: list[Joined] = []
    for peer, one in zip(view.peers, joined, strict=True):
        held = [pair for pair in peer.held or () if pair in view.partitions]
        generation = userdata.NO_GENERATION if peer.generation is None else peer.generation
        data = None if peer.held is None else userdata.encode(held, generation)
        out.append(replace(one, user_data=data, owned=None))
    return out
