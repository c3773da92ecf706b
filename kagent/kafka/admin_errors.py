"""What goes wrong when a cluster is asked something: by its error codes, as exceptions, and in a sentence for a person."""

from __future__ import annotations

import logging
import re
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from confluent_kafka import KafkaError as Code
from confluent_kafka import KafkaException
from tenacity import (
    Retrying,
    retry,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    wait_exponential,
)

from kagent.errors import KafkaError, missing_right
from kagent.kafka.reach import LoginRefused, advice

log = logging.getLogger("kagent.kafka")
T = TypeVar("T")

RIGHTS = {
    Code.TOPIC_AUTHORIZATION_FAILED: "a right on a topic",
    Code.GROUP_AUTHORIZATION_FAILED: "DESCRIBE on the groups",
    Code.CLUSTER_AUTHORIZATION_FAILED: "DESCRIBE on the cluster",
}
UNREACHABLE = {
    # Codes with an underscore are librdkafka's own; the others come from a broker.
    Code._ALL_BROKERS_DOWN,
    Code._TRANSPORT,
    Code._TIMED_OUT,
    Code._RESOLVE,
    Code.REQUEST_TIMED_OUT,
}
# Kafka marks these as retriable: https://kafka.apache.org/protocol.html#protocol_error_codes
TRANSIENT = {
    Code.NOT_COORDINATOR,
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code.COORDINATOR_NOT_AVAILABLE,
    Code.NOT_LEADER_FOR_PARTITION,
    Code.LEADER_NOT_AVAILABLE,
}
UNSEEN_TOPIC = {
    Code.UNKNOWN_TOPIC_OR_PART,
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.TOPIC_EXCEPTION,
    Code._UNKNOWN_TOPIC,
}
LOGIN = {Code._AUTHENTICATION, Code.SASL_AUTHENTICATION_FAILED, Code._SSL}


class RefusedRequest(KafkaError):
    """The cluster is there and answers, and refuses what was asked: perhaps only for one of the names in it."""


class Unsettled(KafkaError):
    """A leader or coordinator is moving: the same question has an answer in a moment."""


# A leader election or a coordinator that loads its partition is over in seconds.
LONG_ENOUGH, BETWEEN = stop_after_delay(15), wait_exponential(0.1, max=1)
patiently = retry(retry=retry_if_exception_type(Unsettled), stop=LONG_ENOUGH, wait=BETWEEN, reraise=True)
until_settled = Retrying(
    retry=retry_if_result(bool), retry_error_callback=lambda state: None, stop=LONG_ENOUGH, wait=BETWEEN
)
"""Calls a function until it returns nothing that is unsettled; gives up in silence: the caller knows what is."""


def is_unreachable(error: BaseException | None) -> bool:
    """Whether no broker answered."""
    if isinstance(error, KafkaException):
        return error.args[0].code() in UNREACHABLE
    return isinstance(error, FutureTimeout)


def kind_of(code: int) -> type[KafkaError]:
    """The exception for one of the cluster's error codes."""
    if code in TRANSIENT:
        return Unsettled
    if code in LOGIN:
        return LoginRefused
    return KafkaError if code in UNREACHABLE | set(RIGHTS) else RefusedRequest


def sentence(error: Any, doing: str, where: str) -> str:
    """What went wrong when the cluster at ``where`` was asked something, and what to do, for a person."""
    if error.code() in LOGIN:
        # Without librdkafka's own state: "… (after 302ms in state AUTH_REQ)".
        reported = re.sub(r" \(after \d+ms in state \w+\)", "", error.str())
        return f"The cluster at {where} refuses the login ({reported}): check security in the settings."
    if error.code() in UNREACHABLE:
        return f"The cluster at {where} cannot be reached when {doing}: {advice(where)}."
    if error.code() in RIGHTS:
        return f"The cluster at {where} refuses when {doing}: {missing_right(RIGHTS[error.code()])}."
    return f"The cluster at {where} answered with an error when {doing}: {error.str()}."
