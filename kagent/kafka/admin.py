"""Questions to a cluster, answered as small values, with deadlines and errors for people.

All calls block: call them in a thread from async code. Topics, logs and settings are asked of confluent-kafka, which knows
topic ids and both isolation levels; large requests go in chunks, as its time grows faster than the request. Groups are
asked of their coordinators (``kagent.kafka.coordinators``), by aiokafka: when a connection to a coordinator breaks under such a question,
librdkafka aborts the process (https://github.com/confluentinc/librdkafka/issues/4605) or never ends it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, Self, TypeVar

from aiokafka.errors import KafkaError as ClientError
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka import KafkaError as Code
from confluent_kafka.admin import AdminClient, OffsetSpec

from kagent.contract.topic_name import is_topic_name
from kagent.errors import KafkaError
from kagent.kafka import reach, topic_creation, topic_requests
from kagent.kafka.admin_errors import (
    LOGIN,
    TRANSIENT,
    UNREACHABLE,
    RefusedRequest,
    is_unreachable,
    kind_of,
    patiently,
    sentence,
    until_settled,
)
from kagent.kafka.brokers import SHARES, Silences
from kagent.kafka.clients import confluent
from kagent.kafka.coordinators import Coordinators
from kagent.kafka.descriptions import (
    Key,
    NewTopic,
    Offsets,
    TopicDescription,
)
from kagent.kafka.ends_aside import EndsAside
from kagent.kafka.reach import LoginRefused
from kagent.settings import Cluster

if TYPE_CHECKING:
    from kagent.kafka.log_offsets import OffsetQuery, OffsetSample

T = TypeVar("T")
_SILENT = logging.getLogger("kagent.kafka.silent")
"""librdkafka prints a refused login or right to stderr at any log level, unless a logger takes it."""
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

# librdkafka's time grows faster than the request: 100,000 partitions took 1.5 s in chunks of 250, 2.6 s in chunks of 2,500.
CHUNK = 500
DEADLINE = 30.0
AWAY_S = 10.0
"""How long a question waits where nothing listened at the address: a broker that restarts is back by then, and who typed a wrong
address wants to know."""
RENEW_AFTER = 3
"""After this many requests in a row that reached no broker, a new client is made. One that outlived a frozen broker was seen to
call it unreachable for minutes, while new clients were answered."""
RENEW_WAITED_S = 5.0
"""Or after one question that waited for so long. librdkafka sends most questions to the broker that is the controller by its metadata,
and learns of another one at its next refresh, 5 minutes later. With one of two brokers killed, six clients of six reached no broker for
75 s, and two threads of each took 0.6 cores all the while; new ones are answered once the cluster has noticed, after 10 s."""
RENEW_AGE_S = 5.0
"""A younger client that misses offsets is kept: a new one takes a while to find its brokers, and a partition without a leader has none
to find."""
LOGIN_POLL_S = 1.0
LOGIN_WITHIN_S = 5.0


class Admin(Coordinators):
    """The questions. One instance per cluster, to be kept: the first call of a client is the dear one.

    Who asks anew every few seconds uses ``with``. Tenacity's and asyncio's frames of a failed call hold each other and its callers', so
    that a client would live on until the garbage collector comes: 61 of them, with 247 threads, in a worker that had waited for its
    broker for 35 minutes.
    """

    def __init__(self, cluster: Cluster, deadline: float = DEADLINE) -> None:
        self.cluster, self._patience = cluster, deadline
        self.silences = Silences()
        self._away = False
        # librdkafka reports a refused login only to error_cb; the failed call itself says no more than "timed out".
        self._client_errors: list[Any] = []
        self._checked = False
        self._unreached = 0
        self._was_answered = False
        """Whether the client that is used now was answered before."""
        self._held, self._made_at = self._made(), time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.end()

    @property
    def _client(self) -> AdminClient:
        return self._held.client

    def _made(self) -> EndsAside[AdminClient]:
        # By default librdkafka waits up to 10 s between connection attempts, longer than most deadlines here:
        # https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md
        own = {"error_cb": self._client_errors.append, "log_level": 0, "reconnect.backoff.max.ms": 1000}
        return EndsAside(AdminClient(confluent(self.cluster, **own)))

    @property
    def deadline(self) -> float:
        """How long a question waits for its answer, s."""
        return min(self._patience, AWAY_S) if self._away else self._patience

    def note(self, reached: bool, waited_s: float = 0.0) -> None:
        """Count questions that reached no broker; a client that reaches none any more is made anew.

        :param waited_s: how long the question waited for its answer.
        """
        self._unreached = 0 if reached else self._unreached + 1
        self._away = self._away and not reached
        # Not a client that is still finding its brokers: with one that answers in 5 s it takes more than one question to.
        lost = self._was_answered and not reached and waited_s >= RENEW_WAITED_S
        self._was_answered = self._was_answered or reached
        if lost or self._unreached >= RENEW_AFTER:
            self._renew()

    def _renew(self) -> None:
        self._held, self._made_at = self._made(), time.monotonic()
        self._unreached, self._was_answered = 0, False

    def reached(self) -> None:
        """Note that a broker has answered."""
        self._away = False

    def check(self) -> None:
        """Once: raises Misconfigured, in seconds, for TLS that does not fit or a login that is refused."""
        if self._checked:
            return
        self._away = not reach.check(self.cluster)
        self._checked = not self.cluster.security.protocol.startswith("SASL") or self._logged_in()

    def _logged_in(self) -> bool:
        """Whether the login was taken; librdkafka goes on trying one that was refused, and says so by its callback alone."""
        until = time.monotonic() + min(LOGIN_WITHIN_S, self.deadline)
        while time.monotonic() < until:
            try:
                # Short, and again: the callback with the reason is called only while librdkafka is being polled.
                self._client.list_topics(timeout=LOGIN_POLL_S)
                return True
            except KafkaException as error:
                self._client.poll(0)
                if error.args[0].code() in LOGIN or any(e.code() in LOGIN for e in self._client_errors):
                    raise LoginRefused(self.sentence(error.args[0], "asked for a login")) from error
        return False

    @patiently
    def cluster_id(self) -> str:
        """The cluster's id."""
        with self._errors("asked for its metadata"):
            return str(self._client.list_topics(timeout=self.deadline).cluster_id)

    def require_answer(self) -> None:
        """Raise KafkaError with a sentence if no broker answers, or if the login is refused: then no right is at fault."""
        self.cluster_id()  # the cheapest question there is

    @patiently
    def topic_names(self) -> dict[str, int]:
        """All topics that may be seen, internal ones too: name → number of partitions."""
        with self._errors("asked for its topics"):
            found = self._client.list_topics(timeout=self.deadline).topics
            return {name: len(topic.partitions) for name, topic in found.items()}

    def topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Those of these topics that exist and may be seen. A name that Kafka does not allow costs only itself.

        More than CHUNK names are first looked up among all that exist: a client's subscription can hold any number of
        names that do not, and librdkafka waits for each of those.
        """
        wanted = {name for name in names if is_topic_name(name)}
        if len(wanted) > CHUNK:
            wanted &= set(self.topic_names())
        return self._of_topics("asked to describe topics", topic_requests.described, wanted)

    def topic_configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings of these topics that exist and may be seen."""
        wanted = {name for name in names if is_topic_name(name)}
        return self._of_topics("asked for topic settings", topic_requests.configs, wanted)

    @patiently
    def _of_topics(
        self, doing: str, question: Callable[..., Awaitable[dict[str, Any]]], names: set[str]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for chunk in _chunks(sorted(names), CHUNK):
            found |= self._asked(doing, question, chunk)
        return found

    def create(self, topics: Sequence[NewTopic], validate_only: bool = False) -> dict[str, ClientError]:
        """Create these topics: those that were refused, and the cluster's error for each. ``validate_only``: only ask.

        Raises KafkaError if no broker answers, or the controller does not.
        """
        doing = "asked to create topics"
        silent = self._asked(doing, topic_creation.silent)
        # The controller writes it to its log and its brokers' first: that takes longer than an answer out of memory.
        patience_s = self.deadline
        return self._asked(
            doing,
            topic_creation.created,
            topics,
            validate_only,
            int(patience_s * 1000),
            silent,
            deadline_s=patience_s * SHARES,
        )

    def topic_operations(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """What our user may do with these topics, by the names of Kafka's AclOperation in small letters (KIP-430).

        Empty for one that may not be seen; a topic that does not exist is left out.
        """
        wanted = {name for name in names if is_topic_name(name)}
        return self._of_topics("asked for our rights on topics", topic_requests.operations, wanted)

    def may_transact(self, transactional_id: str) -> bool:
        """Whether our user may write under this transactional id. It is initialised: a producer that uses it is fenced off."""
        # No request asks for this right; InitProducerId is the first one that needs WRITE on the id (KIP-98).
        quiet = {"log_level": 0, "logger": _SILENT, "transactional.id": transactional_id}
        producer = EndsAside(Producer(confluent(self.cluster, **quiet)))
        try:
            producer.client.init_transactions(self.deadline)
        except KafkaException as error:
            if error.args[0].code() == Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                return False
            raise KafkaError(self.sentence(error.args[0], "asked for our rights on transactions")) from error
        return True

    def log_start(self, keys: Iterable[Key]) -> Offsets:
        """The first offset that each of these partitions still has."""
        return self._offsets(keys, OffsetSpec.earliest(), committed_only=False)

    def log_end(self, keys: Iterable[Key], committed_only: bool = False) -> Offsets:
        """The log end of these partitions, or with ``committed_only`` the last stable offset."""
        return self._offsets(keys, OffsetSpec.latest(), committed_only)

    def offset_at(self, keys: Iterable[Key], time_ms: int) -> Offsets:
        """The first offset at or after this time in each partition; not found where there is none."""
        return self._offsets(keys, OffsetSpec.for_timestamp(time_ms), committed_only=False)

    def columns(
        self, leaders: Mapping[str, Sequence[int]], wanted: Sequence[OffsetQuery]
    ) -> list[OffsetSample]:
        """Offsets of any number of partitions, one answer for each that is wanted.

        ``leaders``: the node that leads each partition, as ``topics`` says. Raises KafkaError if no broker answers at all.
        """
        from kagent.kafka import log_offsets

        return self._asked("asked for log offsets", log_offsets.listed, leaders, wanted)

    def epoch_ends(self, topic: TopicDescription, epochs: Mapping[int, int]) -> dict[int, int]:
        """Partition → where this epoch of its leaders ended in the log of now: see :mod:`kagent.kafka.leader_epochs`.

        Raises KafkaError if no broker answers at all.
        """
        from kagent.kafka import leader_epochs

        asked = "asked where leaders' epochs ended"
        return self._asked(asked, leader_epochs.epoch_ends, topic.name, topic.leaders, epochs)

    def offsets_each(self, keys: Iterable[Key], wanted: Sequence[OffsetQuery]) -> list[Offsets]:
        """What is wanted of these partitions; a leader that does not answer costs its own.

        Partitions whose leader is moving are asked again until it must have settled.
        """
        from kagent.kafka.log_offsets import leaders_of, note

        answers = [Offsets({}) for _ in wanted]
        left = {key for key in keys if is_topic_name(key[0])}

        def ask() -> set[Key]:
            nonlocal left
            topics = self.topics({name for name, _ in left})
            samples = self.columns(leaders_of(topics, left), wanted)
            left = set().union(*(note(*pair, topics, left) for pair in zip(answers, samples, strict=True)))
            return left

        until_settled(ask)
        return answers

    @patiently
    def _offsets(self, keys: Iterable[Key], spec: Any, committed_only: bool) -> Offsets:
        """Partitions whose leader is moving are asked again until it must have settled; one without a leader fails alone."""
        # With READ_COMMITTED, ListOffsets returns the last stable offset as the end (KIP-98).
        level = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
        answers = Offsets({}, {}, {})
        left = sorted({key for key in keys if is_topic_name(key[0])})

        def ask() -> list[Key]:
            nonlocal left
            left = [
                key for chunk in _chunks(left, CHUNK) for key in self._unsettled(answers, chunk, spec, level)
            ]
            return left

        wanted = len(left)
        until_settled(ask)
        if len(answers.found) < wanted and time.monotonic() - self._made_at >= RENEW_AGE_S:
            # For a leader that was killed, perhaps, which the client's metadata has for up to five minutes more: librdkafka gives no offset
            # and no error then; it waits for it each time, or asks it in vain once it is back and leads no longer.
            self._renew()
        return answers

    def _unsettled(self, answers: Offsets, keys: list[Key], spec: Any, level: Any) -> Iterator[Key]:
        """Ask for these partitions' offsets; those whose leader is moving."""
        asked = {TopicPartition(topic, partition): spec for topic, partition in keys}
        with self._errors("asked for log offsets"):
            futures = self._client.list_offsets(asked, isolation_level=level, request_timeout=self.deadline)
            for tp, future in futures.items():
                try:
                    answers.take((tp.topic, tp.partition), future.result(self.deadline + 5))
                except KafkaException as error:
                    code = error.args[0].code()
                    if code in LOGIN | UNREACHABLE:
                        raise
                    answers.failed[tp.topic, tp.partition] = error.args[0].str()
                    if code in TRANSIENT:
                        yield tp.topic, tp.partition

    def _errors(self, doing: str) -> _Errors:
        return _Errors(self, doing)

    def sentence(self, error: Any, doing: str) -> str:
        """What went wrong, and what to do, for a person."""
        self._client.poll(0)  # librdkafka calls error_cb only from within poll
        refused = next((e for e in reversed(self._client_errors) if e.code() in LOGIN), None)
        return sentence(refused or error, doing, self.cluster.bootstrap)


class _Errors:
    """Turns the client's exceptions into KafkaError with a sentence."""

    def __init__(self, admin: Admin, doing: str) -> None:
        self.admin, self.doing = admin, doing
        self.asked_at = 0.0

    def __enter__(self) -> None:
        self.admin.check()
        self.admin._client_errors.clear()
        self.asked_at = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.admin.note(not is_unreachable(error), time.monotonic() - self.asked_at)
        if isinstance(error, KafkaException):
            raise kind_of(error.args[0].code())(self.admin.sentence(error.args[0], self.doing)) from error
        if isinstance(error, ValueError | TypeError):  # the client's own checks of its arguments
            raise RefusedRequest(f"The client refuses when {self.doing}: {error}.") from error
        if isinstance(error, FutureTimeout):
            raise KafkaError(self.admin.sentence(Code(Code._TIMED_OUT), self.doing)) from error


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
