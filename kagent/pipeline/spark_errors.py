"""Spark's exceptions as sentences for people, and whether trying again can mend what they tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kagent.errors import KafkaError, missing_right
from kagent.offsets import OFFSETS_TOPIC

HOPELESS = {
    "SaslAuthenticationException": "The cluster refuses the login: check security in the settings.",
    "SslAuthenticationException": "The TLS handshake with the cluster failed: check security in the settings.",
    "Permission denied": "A folder of the stream may not be written: give this user the right, or choose another folder.",
}
NO_TOPIC = f"Spark is refused: {missing_right(f'READ on {OFFSETS_TOPIC} or WRITE on the events')}."
NO_GROUP = f"Spark is refused: {missing_right('READ on its consumer groups')}."
PASSING = {
    "TopicAuthorizationException": NO_TOPIC,
    "GroupAuthorizationException": NO_GROUP,
    # Where Spark passes on the words of Kafka's exceptions without their names.
    "Not authorized to access topics": NO_TOPIC,
    "Not authorized to access group": NO_GROUP,
    "ClusterAuthorizationException": f"Spark is refused: {missing_right('a right on the cluster')}.",
    "No space left on device": "The disk is full: free some space; the stream has kept its place.",
    "Disk quota exceeded": "The disk quota is used up: free some space; the stream has kept its place.",
    "OutOfMemoryError": "Spark ran out of memory: give pipeline.driver_memory more, or lower pipeline.max_offsets_per_trigger.",
    "RecordTooLargeException": "An event is larger than the events topic allows: set its max.message.bytes to 8388608.",
    "TimeoutException": "The cluster does not answer.",
    "DisconnectException": "The cluster does not answer.",
}


def sentence(error: Exception) -> tuple[str, bool]:
    """What is wrong, for a person, and whether trying again is hopeless."""
    if (known := _known(error)) is not None:
        return known
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)[:300], False


def passing(error: Exception) -> str | None:
    """The sentence of what ends without a change of the settings, as a full disk; None if it is not known to."""
    meaning, hopeless = _known(error) or (None, False)
    return None if hopeless else meaning


def _known(error: Exception) -> tuple[str, bool] | None:
    """What one of the signs means, and whether trying again is hopeless; None where the text has none of them."""
    text = str(error)
    for table, hopeless in ((HOPELESS, True), (PASSING, False)):
        # By the class names in the text: across py4j a Java cause arrives only as its stack trace.
        for sign, meaning in table.items():
            if sign in text:
                return meaning, hopeless
    return None


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Turns what Spark raises into KafkaError with a sentence: for commands that run once."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise KafkaError(sentence(error)[0]) from error
