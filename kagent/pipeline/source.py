"""``__consumer_offsets`` as the cluster tells of it: whether it is there and may be read, its ends, and its identity.

A topic that may not be seen looks like one that does not exist, and Spark reads either as empty, silently. So this asks
first, and goes on asking: a topic that was re-created or cut short under the stream is a reason to stop, not to wait.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_when_event_set,
)

from kagent.errors import KafkaError, SettingsError
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import TopicDescription
from kagent.kafka.reach import Misconfigured
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.progress import Ends
from kagent.retry import BACKOFF

log = logging.getLogger("kagent.pipeline")
Found = TypeVar("Found")


@dataclass(slots=True)
class OffsetsSource:
    """The source topic of one cluster. ``lost``: a sentence, once the topic is no longer the one that was begun."""

    admin: Admin
    stop: threading.Event
    patient: bool = True
    topic: TopicDescription | None = None
    lost: str | None = None
    _reached: dict[int, int] = field(default_factory=dict)

    def wait(self) -> TopicDescription | None:
        """The topic, as soon as it exists (a new cluster makes it with its first group); None if asked to stop.

        Raises KafkaError for what waiting cannot mend, or at once when not ``patient``.
        """
        warned = False
        while not self.stop.is_set():
            self.topic = self.tried(lambda: self.admin.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC))
            if self.topic is not None:
                return self.topic
            sentence = f"{OFFSETS_TOPIC} does not exist yet (no group has ever committed here) or may not be seen (`kagent acls` prints the rights)"
            if not self.patient:
                raise KafkaError(f"{sentence}.")
            if not warned:
                log.warning("%s; waiting for it.", sentence)
                warned = True
            self.stop.wait(2)
        return None

    def tried(self, ask: Callable[[], Found]) -> Found | None:
        """The answer, however long the cluster is away; None if asked to stop. Raises what waiting cannot mend."""
        attempts = Retrying(
            retry=retry_if_exception(lambda e: self.patient and isinstance(e, KafkaError) and mendable(e)),
            wait=BACKOFF,
            sleep=sleep_using_event(self.stop),
            stop=stop_when_event_set(self.stop),
            before_sleep=_trying_again,
            retry_error_callback=lambda _: None,
        )
        return None if self.stop.is_set() else attempts(ask)

    def ends(self) -> Ends:
        """Log end and last stable offset of every partition. Raises KafkaError; notices a topic that is another now."""
        now = self.admin.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC)
        if now is None:
            raise KafkaError(f"{OFFSETS_TOPIC} is gone or may no longer be seen.")
        # Topic ids (KIP-516) tell: a topic of the same name that was created anew has other offsets.
        if self.topic is not None and now.id != self.topic.id:
            self.lost = f"{OFFSETS_TOPIC} was re-created: remove the checkpoint, and the stream starts anew from the beginning."
        if self.topic is not None and now.partitions > self.topic.partitions:
            log.warning(
                "%s has %d partitions now, %d before.", OFFSETS_TOPIC, now.partitions, self.topic.partitions
            )
            self.topic = now
        partitions = [(OFFSETS_TOPIC, p) for p in range(now.partitions)]
        # Asked besides the log end: an open transaction holds this one back, and with it what the stream may read.
        # First, because both grow: asked second it could lie beyond the log end.
        stable = self.admin.log_end(partitions, committed_only=True).found
        log_end = self.admin.log_end(partitions).found
        return {
            p: (log_end[t, p], stable[t, p]) for t, p in partitions if (t, p) in stable and (t, p) in log_end
        }

    def check(self) -> None:
        """Raise KafkaError once the topic is no longer the one that was begun."""
        if self.lost:
            raise KafkaError(self.lost)

    def identified(self, wanted: str | None, name: str) -> str:
        """The cluster's id. Raises SettingsError if the settings expect another."""
        found = self.admin.cluster_id()
        if wanted and found != wanted:
            raise SettingsError(
                f"The cluster at {self.admin.cluster.bootstrap} is {found}, but the settings say that {name} is {wanted}."
            )
        return found


def _trying_again(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning("%s Trying again in %.0f s.", error, state.upcoming_sleep)


def mendable(error: KafkaError) -> bool:
    """Whether waiting may mend it: a cluster comes back and a right is given; a wrong password or certificate stays wrong."""
    return not isinstance(error, Misconfigured)
