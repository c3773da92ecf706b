"""What Spark raises becomes a sentence, and what cannot be mended is not tried again."""

from __future__ import annotations

import threading

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kagent.errors import KafkaError, Misconfigured
from kagent.pipeline import restarts as service
from kagent.pipeline.restarts import SparkDied, kept
from kagent.pipeline.spark_errors import errors_as_sentences, sentence


@pytest.mark.parametrize(
    ("text", "said", "hopeless"),
    [
        (
            "x\norg.apache.kafka.common.errors.TopicAuthorizationException: Not authorized",
            "the user lacks READ on",
            False,
        ),
        ("[STREAM_FAILED] Not authorized to access topics: [x]", "the user lacks READ on", False),
        ("[STREAM_FAILED] Not authorized to access group: x", "the user lacks READ on its", False),
        ("java.io.IOException: No space left on device", "The disk is full", False),
        ("SaslAuthenticationException: bad", "refuses the login", True),
        ("\n\n  something else\nmore", "something else", False),
    ],
)
def test_a_sentence_for_each(text: str, said: str, hopeless: bool) -> None:
    found = sentence(PySparkException(text))

    assert said in found[0]
    assert found[1] is hopeless
    assert "\n" not in found[0]


def test_commands_that_run_once_get_the_sentence() -> None:
    with pytest.raises(KafkaError, match="refuses the login"), errors_as_sentences():
        raise PySparkException("SaslAuthenticationException")


class Query:
    """Fails so often, then runs until asked to stop."""

    def __init__(self, stop: threading.Event, *errors: Exception) -> None:
        self.stop, self.errors, self.runs = stop, list(errors), 0

    def __call__(self) -> None:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        self.stop.set()


def test_a_query_that_fails_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "pause_s", lambda failures: 0.0)
    stop, failed = threading.Event(), []
    query = Query(stop, PySparkException("TimeoutException"), PySparkException("No space left on device"))

    kept(query, stop, once=False, failed=lambda: failed.append(1))

    assert query.runs == 3
    assert len(failed) == 2


def test_a_cluster_that_goes_away_while_a_query_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "pause_s", lambda failures: 0.0)
    stop, failed = threading.Event(), []
    query = Query(stop, KafkaError("The cluster cannot be reached."))

    kept(query, stop, once=False, failed=lambda: failed.append(1))

    assert (query.runs, len(failed)) == (2, 1)


def test_what_is_hopeless_or_runs_once_is_not_tried_again() -> None:
    stop = threading.Event()

    with pytest.raises(KafkaError, match="refuses the login"):
        kept(Query(stop, PySparkException("SaslAuthenticationException")), stop, once=False)
    with pytest.raises(KafkaError, match="does not answer"):
        kept(Query(stop, PySparkException("TimeoutException")), stop, once=True)
    with pytest.raises(KafkaError, match="re-created"):
        kept(Query(stop, Misconfigured("It was re-created.")), stop, once=False)
    with pytest.raises(KafkaError, match="cannot be reached"):
        kept(Query(stop, KafkaError("It cannot be reached.")), stop, once=True)


@pytest.mark.parametrize("error", [Py4JError("gone"), ConnectionRefusedError("gone")])
def test_a_jvm_that_is_gone_is_no_stack_trace_whoever_finds_it_out(error: Exception) -> None:
    stop = threading.Event()

    with pytest.raises(SparkDied):
        kept(Query(stop, error), stop, once=False)
