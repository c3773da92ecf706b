"""What coordinators answer, in sentences for people."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.errors import KafkaError as ClientError

from kagent.errors import KafkaError
from kagent.kafka import group_admin
from kagent.kafka.brokers import NoAnswer, Silences
from kagent.kafka.coordinators import REACH_IT, Coordinators
from kagent.kafka.descriptions import GroupAnswers
from kagent.settings import Cluster


class NeverAsked(Coordinators):
    """Of a cluster that no test asks anything."""

    cluster = Cluster(bootstrap="here:9092")
    deadline = 1.0

    def require_answer(self) -> None:
        raise NotImplementedError

    def topics(self, names: Any) -> Any:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def reached(self) -> None:
        raise NotImplementedError


class Asked(NeverAsked):
    """Of a cluster whose bootstrap address answers."""

    def __init__(self) -> None:
        self.silences = Silences()

    def require_answer(self) -> None:
        pass

    def check(self) -> None:
        pass

    def reached(self) -> None:
        pass


def test_an_error_is_a_sentence_with_one_full_stop() -> None:
    said = NeverAsked()._answered("asked for its groups", ClientError("The node is not ready."))

    assert (
        said
        == "The cluster at here:9092 answered with an error when asked for its groups: KafkaError: The node is not ready."
    )


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            NoAnswer("broker 1 at there:9093 cannot be reached", silent=False),
            "broker 1 at there:9093 cannot be reached",
        ),
        (
            NoAnswer("no answer from broker 1 at there:9093", silent=True),
            "no answer from broker 1 at there:9093",
        ),
    ],
)
def test_of_no_answer_is_said_which_broker_gave_none_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    def asked(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(group_admin, "asked", asked)
    with pytest.raises(KafkaError) as said:
        Asked().groups()

    assert (
        str(said.value)
        == f"A broker of the cluster at here:9092 did not answer when asked for its groups: {why}; {REACH_IT}."
    )


def test_a_group_whose_coordinator_gives_no_answer_was_answered_with_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: GroupAnswers[Any] = GroupAnswers({}, settled={"orders": "no answer from broker 1 at there:9093"})
    monkeypatch.setattr(group_admin, "asked", lambda *_: answers)
    with pytest.raises(KafkaError) as said:
        Asked().described(["orders"])

    assert str(said.value) == (
        "The coordinator of orders on the cluster at here:9092 does not answer when asked to describe groups: no answer from broker 1 at "
        f"there:9093; {REACH_IT}."
    )
