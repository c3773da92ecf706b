"""Which of the printed rights the user of a cluster lacks now. No question here changes what others see.

Brokers tell what a user may do with a topic (KIP-430, authorized operations). Of groups only the DESCRIBE is asked that way by
clients; READ is known by a heartbeat of a member that does not exist: without the right the answer is
GROUP_AUTHORIZATION_FAILED, with it UNKNOWN_MEMBER_ID (``KafkaApis.handleHeartbeatRequest``). WRITE on a transactional id is known by
initialising one of kagent's own that nothing else uses; the broker forgets it after ``transactional.id.expiration.ms``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from aiokafka.errors import ClusterAuthorizationFailedError, TopicAuthorizationFailedError

from kagent.kafka.acls import Rule
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic

EVERY = "*"
# Kafka has no notice of a changed ACL: what is lacking has to be asked again.
LOOK_EVERY_S = 10.0
UNKNOWN = None
IMPLIED_BY = {"describe": {"read", "write", "delete", "alter"}, "describe_configs": {"alter_configs"}}
"""``AclAuthorizer``: an operation is also allowed by these."""
REFUSED = (ClusterAuthorizationFailedError, TopicAuthorizationFailedError)
"""For a right that is lacking to create a topic."""


@dataclass(frozen=True, slots=True)
class Lack:
    """A right that is not there; ``example`` is what it was asked for, where the right is on all names."""

    rule: Rule
    user: str
    example: str | None = None

    def __str__(self) -> str:
        operation, kind = self.rule.operation.upper(), self.rule.resource.replace("_", " ")
        name = self.rule.name if self.rule.name != EVERY else f"{self.example or 'all'}"
        many = f" (give it on all {kind}s)" if self.rule.name == EVERY else ""
        return f"{self.user} lacks {operation} on the {kind} {name}{many}; `kagent acls` prints the command"


class Announcer:
    """Logs what is lacking when that changes."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said: list[str] = []

    def say(self, sentences: list[str]) -> None:
        """Log those that are new, and once that there are none any more."""
        for sentence in sentences:
            if sentence not in self._said:
                self._log.error("%s", sentence)
        if self._said and not sentences:
            self._log.info("No right is lacking any more.")
        self._said = sentences


def lacking(
    admin: Admin, rules: Iterable[Rule], topics: Collection[str] = (), groups: Collection[str] = ()
) -> list[Lack]:
    """Those of these rules that do not hold now. Raises KafkaError if the cluster cannot be asked.

    ``topics`` and ``groups``: examples for the rules on all names, which can only be checked with an example.
    """
    wanted = list(rules)
    user = f"The user {admin.cluster.security.username or 'of the certificate'}"
    found = [*_topics(admin, wanted, topics), *_groups(admin, wanted, groups), *_transactions(admin, wanted)]
    return [Lack(rule, user, example) for rule, example in dict(found).items()]


def _topics(admin: Admin, rules: list[Rule], examples: Collection[str]) -> Iterator[tuple[Rule, str | None]]:
    own = [rule for rule in rules if rule.resource == "topic" and rule.name != EVERY]
    general = [rule for rule in rules if rule.resource == "topic" and rule.name == EVERY]
    allowed = admin.topic_operations({rule.name for rule in own} | set(examples))
    for rule in own:
        operations = allowed.get(rule.name, UNKNOWN)
        if rule.operation == "create":
            if operations is UNKNOWN and not may_create(admin, rule.name):
                yield rule, None
        elif operations is not UNKNOWN and not _holds(rule.operation, operations):
            yield rule, None
    for rule in general:
        for name in examples:
            operations = allowed.get(name, UNKNOWN)
            unseen = (
                not operations and rule.operation != "describe"
            )  # the broker reports nothing else of such a topic
            if operations is not UNKNOWN and not unseen and not _holds(rule.operation, operations):
                yield rule, name
                break


def _holds(operation: str, operations: Collection[str]) -> bool:
    return operation in operations or bool(IMPLIED_BY.get(operation, set()) & set(operations))


def may_create(admin: Admin, topic: str) -> bool:
    """Whether this topic, which does not exist, could be created: asked by a request that creates nothing."""
    refused = admin.create([NewTopic(topic, 1, 1)], validate_only=True).get(topic)
    return not isinstance(refused, REFUSED)


def _groups(admin: Admin, rules: list[Rule], examples: Collection[str]) -> Iterator[tuple[Rule, str | None]]:
    for rule in rules:
        if rule.resource != "group":
            continue
        # A prefix is a name that begins with it, and so is the name * for the right on all.
        if rule.operation == "read" and not admin.may_read(rule.name):
            yield rule, next(iter(examples), None) if rule.name == EVERY else None
        if rule.operation == "describe" and rule.name == EVERY:
            answers = admin.described_each(examples)
            unseen = sorted(set(examples) - answers.found.keys() - answers.failed.keys())
            if unseen:
                yield rule, unseen[0]


def _transactions(admin: Admin, rules: list[Rule]) -> Iterator[tuple[Rule, str | None]]:
    for rule in rules:
        if rule.resource == "transactional_id" and rule.operation == "write":
            name = f"{rule.name}rights" if rule.pattern == "prefixed" else rule.name
            if not admin.may_transact(name):
                yield rule, None
