"""Keeping a query running: start, wait, start again from its place with back-off; one sentence for what cannot be mended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kagent.errors import KafkaError, mendable
from kagent.pipeline.spark_errors import sentence
from kagent.pipeline.wall_clock import ClockSetBack
from kagent.retry import pause_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

log = logging.getLogger("kagent.pipeline")
HEALTHY_AFTER = 60.0
"""Seconds after which a query counts as having started well, so that its next back-off begins small again."""

BATCH_WITHIN_S = 15.0
"""Less than what `kagent up` and Kubernetes give a process to end by itself (30 s)."""

STOP_WITHIN_S = 5.0
"""How long Spark waits for a batch that it has interrupted. Together with the above less than 30 s, too."""


class SparkDied(Exception):
    """Spark's JVM is gone; only a new process helps."""


def kept(
    run: Callable[[], None], stop: threading.Event, once: bool, failed: Callable[[], None] | None = None
) -> None:
    """Call ``run`` until ``stop`` is set; with ``once`` until it has ended well. Raises KafkaError where trying again is
    hopeless, or at the first failure with ``once``; SparkDied when the JVM is gone."""
    failures = 0
    while not stop.is_set():
        began = time.monotonic()
        reason = _interrupted(run, once)
        if reason is None:
            if once:
                return
            continue
        failures = 1 if time.monotonic() - began > HEALTHY_AFTER else failures + 1
        log.warning("The stream stopped: %s Starting again in %.0f s.", reason, pause_s(failures))
        if failed:
            failed()
        stop.wait(pause_s(failures))


def _interrupted(run: Callable[[], None], once: bool) -> str | None:
    """Why it stopped, if trying again may help; None if it ended well. Raises as :func:`kept`."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        run()
    except (PySparkException, Py4JJavaError) as error:
        reason, hopeless = sentence(error)
        log.debug("Spark's error: %s", error)
        if once or hopeless:
            raise KafkaError(reason) from error
        return reason
    except KafkaError as error:
        if once or not mendable(error):
            raise
        return str(error)
    except ClockSetBack as error:
        return str(error)
    # Not a Java exception but a broken gateway: the JVM is gone, and its sessions with it. What is called after that, such as
    # `isActive` of the query, finds no one listening, which is no error of Py4J's own.
    except (Py4JError, ConnectionError) as error:
        raise SparkDied("Spark's JVM has ended") from error
    return None


def awaited(query: StreamingQuery, stop: threading.Event, check: Callable[[], None] | None = None) -> None:
    """Until the query ends or fails (raises), ``check`` raises, or ``stop`` is set."""
    while not stop.is_set():
        # With a time limit: a thread that waits in the JVM does not see that ``stop`` was set.
        if query.awaitTermination(1):
            return
        if check:
            check()


def wait_for_the_last(running: SparkSession, name: str, stop: threading.Event) -> None:
    """Wait until the query of this name has ended: one that asks a broker that is away cannot be stopped until it gives up, and Spark
    starts no second one."""
    # Not by its isActive, which is false once it was asked to stop.
    while not stop.is_set() and name in {query.name for query in running.streams.active}:
        stop.wait(0.2)


def between_batches(query: StreamingQuery, within_s: float = BATCH_WITHIN_S) -> None:
    """Wait for the end of the batch under way, at most ``within_s`` seconds.

    Spark's stop() interrupts a batch: it is then done again at the next start, and of one in Python Spark prints pages of a
    StackOverflowError, as it looks for the interruption in the message with a regular expression that recurses
    (StreamExecution.PROXY_ERROR).
    """
    end = time.monotonic() + within_s
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < end:
        time.sleep(0.1)


def stopped(query: StreamingQuery | None) -> None:
    """Stop the query. One that waits for a broker that is away does not end by itself: it ends with the process."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        if query is not None and query.isActive:
            query.stop()
    except (PySparkException, Py4JJavaError) as error:
        log.warning(
            "The stream did not end within %.0f s: its batch is done again at the next start.", STOP_WITHIN_S
        )
        log.debug("Spark's error: %s", error)


@contextmanager
def ending(running: SparkSession) -> Iterator[SparkSession]:
    """The session, stopped at the end, also when its JVM has gone before.

    After Ctrl-C it is left: the connection waits for the answer about a job, and a JVM ends when the process that started it does.
    """
    try:
        yield running
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt):
            _stop(running)
        raise
    _stop(running)


def _stop(running: SparkSession) -> None:
    from py4j.protocol import Py4JError

    try:
        running.stop()
    except (Py4JError, OSError):
        log.debug("Spark had gone before it was stopped")


def quiet_about_java() -> None:
    """Have py4j say nothing of Java that is interrupted, by Ctrl-C, or gone, as the process ends: it reports both with stack traces,
    to its own logger and to the root logger."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    from pyspark.accumulators import AccumulatorServer

    # Its thread prints a stack trace when Java goes while it waits for a number (socketserver.BaseServer.handle_error).
    AccumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
