"""Questions about groups, asked of their coordinators; a group whose coordinator does not answer costs no other group.

``kagent.kafka.group_admin`` puts the requests; here is what is asked again, what is left out and what a person reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from aiokafka.errors import KafkaConnectionError
from aiokafka.errors import KafkaError as ClientError

from kagent.errors import KafkaError
from kagent.group_key import one_name_each
from kagent.kafka import group_admin
from kagent.kafka.admin_errors import Unsettled, patiently, until_settled
from kagent.kafka.brokers import Silences
from kagent.kafka.descriptions import (
    WITH_LAG,
    Described,
    GroupAnswers,
    GroupDescription,
    Key,
    TopicDescription,
)
from kagent.kafka.group_admin import Listing
from kagent.offsets import OFFSETS_TOPIC
from kagent.settings import Cluster
from kagent.text import shown

T = TypeVar("T")
REACH_IT = "check that the broker runs, and that its address (advertised.listeners) can be reached from here"
DESCRIBING, COMMITS = "asked to describe groups", "asked for committed offsets"


def with_lag(kinds: Mapping[str, str]) -> list[str]:
    """The names of those that read topics."""
    return sorted(name for name, kind in kinds.items() if kind in WITH_LAG)


class Coordinators(ABC):
    """The questions about the groups of one cluster."""

    cluster: Cluster
    silences: Silences
    """Which brokers were waited for in vain lately."""

    @property
    @abstractmethod
    def deadline(self) -> float:
        """How long a question waits for its answer, s."""

    @abstractmethod
    def require_answer(self) -> None:
        """Raise KafkaError with a sentence if no broker answers, or if the login is refused."""

    @abstractmethod
    def check(self) -> None:
        """Once: raises Misconfigured for settings that do not fit the cluster."""

    @abstractmethod
    def reached(self) -> None:
        """Note that a broker has answered."""

    @abstractmethod
    def topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Those of these topics that exist and may be seen."""

    @patiently
    def may_read(self, group: str) -> bool:
        """Whether our user may be a member of this group."""
        return self._asked("asked for our rights on a group", group_admin.may_read, group)

    def groups(self) -> list[str]:
        """The names of all groups that read topics and may be seen, of every protocol."""
        return with_lag(self.listed().kinds)

    @patiently
    def listed(self) -> Listing:
        """Every group that may be seen, and why some brokers list none of theirs."""
        listing = Listing({})

        def ask() -> Mapping[str, str]:
            nonlocal listing
            listing = self._asked("asked for its groups", group_admin.listed)
            # A broker that ended is in the metadata for some seconds more.
            return listing.failed

        until_settled(ask)
        return Listing(listing.kinds, {**listing.failed, **listing.settled})

    def described(self, groups: Iterable[str]) -> dict[str, Described]:
        """These groups with what their members reported, without those that may not be seen. State ``dead``: no such group.

        Raises KafkaError if one cannot be asked; :meth:`described_each` does not.
        """
        return self._all_of(self.described_each(groups), DESCRIBING)

    @patiently
    def described_each(self, groups: Iterable[str]) -> GroupAnswers[Described]:
        """These groups, and why their coordinators do not describe some."""
        return self._of_each(DESCRIBING, group_admin.described, groups)

    def describe(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        """These groups as their coordinators describe them; without those that may not be seen."""
        return {name: found.group for name, found in self.described(groups).items()}

    def committed(self, groups: Iterable[str], require_stable: bool = False) -> dict[str, dict[Key, int]]:
        """All committed offsets of these groups: group → (topic, partition) → offset. No commit: not there.

        Raises KafkaError if one cannot be asked; :meth:`committed_each` does not.
        """
        return self._all_of(self.committed_each(groups, require_stable), COMMITS)

    def described_now(self, groups: Iterable[str]) -> GroupAnswers[Described]:
        """As :meth:`described_each`, for those who ask again soon: a coordinator that moves is not waited for."""
        return self._of_each_now(DESCRIBING, group_admin.described, groups)

    def committed_now(
        self, groups: Iterable[str], require_stable: bool = False
    ) -> GroupAnswers[dict[Key, int]]:
        """As :meth:`committed_each`, for those who ask again soon: a coordinator that moves is not waited for."""
        return self._of_each_now(COMMITS, group_admin.committed, groups, require_stable)

    @patiently
    def committed_each(
        self, groups: Iterable[str], require_stable: bool = False
    ) -> GroupAnswers[dict[Key, int]]:
        """All committed offsets of these groups, and why some coordinators do not tell them."""
        return self._of_each(COMMITS, group_admin.committed, groups, require_stable)

    def without_coordinator(self) -> dict[int, str]:
        """Partitions of ``__consumer_offsets`` for which no broker answers, and why: their groups are missing from every list.

        A broker that could not load such a partition lists the groups of the others alone, and says nothing of it.
        """
        topic = self.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        names = one_name_each(topic.partitions) if topic else {}
        failed = self.described_each(names.values()).failed
        return {partition: failed[name] for partition, name in names.items() if name in failed}

    def _of_each(
        self,
        doing: str,
        question: Callable[..., Awaitable[GroupAnswers[T]]],
        groups: Iterable[str],
        *reported: Any,
    ) -> GroupAnswers[T]:
        """The answers for these groups; those that fail are asked again until a moving coordinator must have settled."""
        found: dict[str, T] = {}
        settled: dict[str, str] = {}
        failed: Mapping[str, str] = dict.fromkeys(groups, "")

        def ask() -> Mapping[str, str]:
            nonlocal failed
            answers = self._of_each_now(doing, question, failed, *reported)
            found.update(answers.found)
            settled.update(answers.settled)
            failed = answers.failed
            return failed

        until_settled(ask)
        return GroupAnswers(found, {**failed, **settled})

    def _of_each_now(
        self,
        doing: str,
        question: Callable[..., Awaitable[GroupAnswers[T]]],
        groups: Iterable[str],
        *reported: Any,
    ) -> GroupAnswers[T]:
        names = sorted(groups)
        return self._asked(doing, question, names, *reported) if names else GroupAnswers({})

    def _all_of(self, answers: GroupAnswers[T], doing: str) -> dict[str, T]:
        for group, why in answers.failed.items():
            whose = f"The coordinator of {shown(group)} on the cluster at {self.cluster.bootstrap}"
            raise Unsettled(f"{whose} does not answer when {doing}: {_in_words(why)}; {REACH_IT}.")
        return dict(answers.found)

    def _asked(
        self,
        doing: str,
        question: Callable[..., Awaitable[T]],
        *reported: Any,
        deadline_s: float | None = None,
    ) -> T:
        """The answer to a question over connections of its own. Raises KafkaError; Unsettled if it has an answer in a moment.

        ``deadline_s``: in place of the usual one.
        """
        self.check()
        try:
            answer = group_admin.asked(
                self.cluster, deadline_s or self.deadline, self.silences, question, *reported
            )
        except group_admin.Moving as error:
            raise Unsettled(self._answered(doing, error)) from error
        except ClientError as error:
            self.require_answer()
            raise KafkaError(self._answered(doing, error)) from error
        self.reached()
        return answer

    def _answered(self, doing: str, error: BaseException) -> str:
        where, why = self.cluster.bootstrap, _in_words(error)
        # An address of the settings may answer while a broker is elsewhere by the name that it gives itself.
        if isinstance(error, KafkaConnectionError):
            return f"A broker of the cluster at {where} did not answer when {doing}: {why}; {REACH_IT}."
        return f"The cluster at {where} answered with an error when {doing}: {why}."


def _in_words(error: BaseException | str) -> str:
    # Some of the client's own sentences end with a full stop.
    return str(error).rstrip(".")
