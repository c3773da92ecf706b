"""What the worker's user may do: it waits for what it cannot work without, and says what else it lacks.

Without a right on kagent's own topics, group or transactions nothing is kept or published, so the worker does not start, or begins
anew if it loses one, until the right is there: `/healthz` answers 503 and the state message is ``blind``, both with
the right's name. Rights on users' topics and groups blind what they are for; dead letters, mutes and what `apply: auto` needs are only missed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NoReturn

from aiohttp import web
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from confluent_kafka import KafkaException, Producer

from kagent.client.client import current
from kagent.contract.recommendation import State, to_bytes
from kagent.errors import KafkaError, mendable
from kagent.kafka.acls import Rule, rules, to_apply
from kagent.kafka.admin import Admin
from kagent.kafka.clients import confluent
from kagent.kafka.ends_aside import EndsAside
from kagent.kafka.rights import EVERY, Announcer, Lack, lacking
from kagent.kafka.topics import ensure, make_sure, wanted
from kagent.retry import pause_s
from kagent.settings import Cluster, Settings, Topics
from kagent.worker.http import security
from kagent.worker.status import state_message
from kagent.worker.table_disk import lacking_room

log = logging.getLogger("kagent.rights")
# Often enough for someone who just opened the log, seldom enough not to fill it.
SAY_AGAIN_S = 60.0
# Bounds the state message: a user without any right lacks each of them, a sentence each.
LONGEST_REASON = 2000
EXAMPLES = 200
"""Topics and groups of users that are asked for at a time."""
ABOUT_RIGHTS = (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)


def own(topics: Topics) -> list[Rule]:
    """The rights without which no row is kept and nothing is published."""
    spared = {topics.dead_letters, topics.mutes}
    return [rule for rule in rules(topics)["worker"] if rule.name != EVERY and rule.name not in spared]


def others(topics: Topics) -> list[Rule]:
    """The rights that a worker can run without, for the worse."""
    return [rule for rule in rules(topics)["worker"] if rule not in own(topics)]


class Rights:
    """What is lacking now, by cluster, as last asked."""

    def __init__(self, settings: Settings, home: Cluster) -> None:
        self.topics, self.home = settings.topics, Admin(home, deadline=10)
        self.applying = to_apply(settings.topics, settings.policies().applied)
        """The rights by which groups are had to take their plans."""
        self.lacks: dict[str, list[Lack]] = {}
        self.own: list[Lack] = []
        self.missing: dict[str, str] = {}
        """Topic of kagent's that is not there and could not be made → why."""
        self._announcer = Announcer(log)

    def look(self, name: str, admin: Admin, topics: Collection[str], groups: Collection[str]) -> None:
        """Ask for the rights on this cluster's topics and groups. Raises KafkaError."""
        general = [rule for rule in others(self.topics) if rule.name == EVERY]
        rights = [*general, *(rule for rule in self.applying if rule.resource == "group")]
        self.lacks[name] = lacking(admin, rights, sorted(topics)[:EXAMPLES], sorted(groups)[:EXAMPLES])

    def look_home(self) -> None:
        """Ask for the rights on kagent's own topics and group. Raises KafkaError."""
        # To ask for those, a producer has to be started; the running ones find out by themselves.
        checked = [rule for rule in own(self.topics) if rule.resource != "transactional_id"]
        spared = [rule for rule in others(self.topics) if rule.name != EVERY]
        spared += [rule for rule in self.applying if rule.resource == "topic"]
        found = lacking(self.home, [*checked, *spared])
        self.own = [lack for lack in found if lack.rule in checked]
        self.lacks["home"] = [lack for lack in found if lack.rule in spared]
        self._make_missing({lack.rule.name for lack in found})

    def _make_missing(self, hidden: Collection[str]) -> None:
        """Make topics that were deleted, as at the start: what is sent to them waits, and offsets are not committed meanwhile."""
        self.missing = {}
        # What we may not see is not missing: its right is.
        needed = [topic for topic in wanted(self.topics) if topic.name not in hidden]
        known = self.home.topics([topic.name for topic in needed])
        for topic in needed:
            if topic.name in known:
                continue
            log.warning("The topic %s is gone: it is made anew, without what was on it.", topic.name)
            try:
                ensure(self.home, self.topics, needed=[topic])
            except KafkaError as error:
                self.missing[topic.name] = str(error)

    @property
    def sentences(self) -> list[str]:
        """All that is lacking."""
        lacks = [f"{lack}." for lacks in (self.own, *self.lacks.values()) for lack in lacks]
        return [*lacks, *self.missing.values()]

    def say(self) -> None:
        """Log what changed."""
        self._announcer.say(self.sentences)

    def state(self, cluster: str, state: State) -> State:
        """The state message with what is lacking: blind without a right on users' topics or groups."""
        mine = self.own + self.lacks.get(cluster, []) + self.lacks.get("home", [])
        if not mine and not self.missing:
            return state
        blind = self._lacks_needed_topic() or any(map(self._blinding, mine))
        reason = "; ".join([*map(str, mine), *self.missing.values()])
        return state.model_copy(update={"status": "blind" if blind else state.status, "reason": reason})

    def blinds(self) -> bool:
        """Whether the worker cannot do its work without what is lacking."""
        return bool(self.own or self._lacks_needed_topic()) or any(
            self._blinding(lack) for lacks in self.lacks.values() for lack in lacks
        )

    def _blinding(self, lack: Lack) -> bool:
        """Whether less is seen without this right."""
        return lack in self.own or (lack.rule.name == EVERY and lack.rule not in self.applying)

    def _lacks_needed_topic(self) -> bool:
        return bool(self.missing.keys() - {self.topics.dead_letters, self.topics.mutes})


async def granted(settings: Settings, home: Cluster, watched: Iterable[str]) -> None:
    """Return once all rights on kagent's own topics are there, and room for tables; until then say what is lacking.

    Raises KafkaError for what waiting cannot mend, such as a refused login.
    """
    failures = 0
    async with _WaitingServer(settings) as waiting:
        while True:
            try:
                lacks = await asyncio.to_thread(_lacks, settings, home)
            except KafkaError as error:
                if not mendable(error):
                    raise
                lacks = [str(error)]
            if not lacks:
                return
            failures += 1
            await waiting.say(lacks)
            await _tell(settings, home, watched, lacks)
            # At most 5 s: someone who has just granted the right is waiting.
            await asyncio.sleep(min(5.0, pause_s(failures)))


def _lacks(settings: Settings, home: Cluster) -> list[str]:
    """What stands in the way, asked from nothing: topics are created if they can be."""
    with Admin(home, deadline=10) as admin:
        found = [f"{lack}." for lack in lacking(admin, own(settings.topics))]
        if not found:
            make_sure(admin, settings.topics, log)
    full = lacking_room(settings)
    return [*found, full] if full else found


class _WaitingServer:
    """Answers 503 with the reason on the worker's port while it waits, and logs it; not a word if it need not wait."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.lacks = settings, list[str]()
        self._runner: web.AppRunner | None = None
        self._logged = float("-inf")

    async def __aenter__(self) -> _WaitingServer:
        return self

    async def __aexit__(self, error: object, *_: object) -> None:
        if self._runner is not None:
            if error is None:  # else something ends the wait: a signal, or what no waiting can mend
                log.info("All that was lacking is there: the worker starts.")
            await self._runner.cleanup()

    async def say(self, lacks: list[str]) -> None:
        now = asyncio.get_running_loop().time()
        if lacks != self.lacks or now - self._logged > SAY_AGAIN_S:
            self._logged = now
            for sentence in lacks:
                log.error("%s Waiting for it.", sentence)
        self.lacks = lacks
        if self._runner is None:
            self._runner = await self._serve()

    async def _serve(self) -> web.AppRunner:
        worker = self.settings.worker
        guarding: list[Any] = [security.guard(worker.http)]
        app = web.Application(middlewares=guarding)
        # Every path: orchestrators, Prometheus and the page ask for different ones.
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(
            runner, worker.web_host, worker.web_port, ssl_context=security.server_tls(worker.http)
        )
        try:
            await site.start()
        except OSError as error:
            log.warning("the port %d cannot be used while waiting: %s", worker.web_port, error)
        return runner

    async def _answer(self, request: web.Request) -> web.Response:
        return web.json_response({"ready": False, "lacking": self.lacks}, status=503)


async def _tell(settings: Settings, home: Cluster, watched: Iterable[str], lacks: Sequence[str]) -> None:
    """Publish a blind state message, with the reason, for clusters that no worker reports on. Nothing where that is refused too."""
    topic = settings.topics.recommendations
    try:
        standing = await current(home, topic)
    except KafkaError:
        standing = {}  # perhaps the very right that is lacking
    try:
        for cluster in watched:
            state = _blind(settings, cluster, lacks)
            if _unspoken(standing.get(cluster), state, settings.worker.state_interval):
                await asyncio.to_thread(_send, home, topic, cluster.encode(), to_bytes(state))
    except KafkaException as error:
        log.debug("the state message could not be sent: %s", error)


def _unspoken(last: object, state: State, interval_s: float) -> bool:
    """Whether no other worker has published a state of this cluster lately."""
    if not isinstance(last, State) or last.reason == state.reason:
        return True
    # Three intervals: while another worker publishes the state of this cluster, it is not contradicted.
    return state.time - last.time > 3000 * interval_s


def _blind(settings: Settings, cluster: str, lacks: Sequence[str]) -> State:
    now = int(time.time() * 1000)
    state = state_message(cluster, (), settings.topics.partitions, now, settings.worker.tick)
    return state.model_copy(update={"reason": " ".join(lacks)[:LONGEST_REASON]})


def _send(home: Cluster, topic: str, key: bytes, value: bytes) -> None:
    # Faust's producers do not run yet.
    producer = EndsAside(Producer(confluent(home, log_level=0)))
    producer.client.produce(topic, value, key)
    producer.client.flush(10)


def begin_anew(reason: object) -> NoReturn:
    """Start this process again, which then waits for what it lacks: memory holds what could not be kept."""
    log.error("this worker restarts: %s", reason)
    logging.shutdown()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def about_rights(error: BaseException | None) -> bool:
    """Whether this error, or what caused it, is a right that is lacking."""
    while error is not None:
        if isinstance(error, ABOUT_RIGHTS):
            return True
        error = error.__cause__ or error.__context__
    return False
