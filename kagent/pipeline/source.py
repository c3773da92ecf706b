"""``__consumer_offsets`` as the cluster tells of it: whether it is there and may be read, its ends, and its identity.

A topic that may not be seen looks like one that does not exist, and Spark reads either as empty, silently. So this asks
first, and goes on asking: a topic that was re-created under the stream is a reason to stop, not to wait.

A log can lose its end where a replica that had fallen behind is elected its leader (``unclean.leader.election.enable``). Spark then goes on
from wherever it stands, and what was written meanwhile at lesser offsets would be missed. So at each change of a leader its log is compared
with what was seen of it (KIP-320), and what was lost is a reason to go back.

A partition without a leader holds up every batch of Spark, which asks for the ends of all. It is left out until a broker leads it again.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tenacity import RetryCallState, Retrying, sleep_using_event, stop_when_event_set

from kagent.errors import KafkaError, Misconfigured, SettingsError
from kagent.group_key import source_partition
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import Offsets, TopicDescription
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.progress import Ends
from kagent.retry import while_mendable
from kagent.text import partition_name

log = logging.getLogger("kagent.pipeline")
Found = TypeVar("Found")
UNDEFINED = -1
"""A leader's epoch that is not known, or where it ended."""
LEADERLESS_AFTER_S = 5.0
"""The election of a leader takes less; a new start of the query costs a batch."""


class LogCutError(KafkaError):
    """The log has lost what stood at its end: the stream has to go back."""


class LeadersChanged(KafkaError):
    """Other partitions can be read than those that are: the stream has to begin with those."""


@dataclass(slots=True)
class OffsetsSource:
    """The source topic of one cluster. ``lost``: a sentence, once the topic is no longer the one that was begun.

    ``cut``: partition → the first offset that was lost, of those whose logs lost their ends.
    """

    admin: Admin
    stop: threading.Event
    patient: bool = True
    topic: TopicDescription | None = None
    lost: str | None = None
    cut: dict[int, int] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    _seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    _leaderless_since: dict[int, float] = field(default_factory=dict)
    _looked: bool = False

    def wait(self) -> TopicDescription | None:
        """The topic, as soon as it exists (a new cluster makes it with its first group); None if asked to stop.

        Raises KafkaError for what waiting cannot mend, or at once when not ``patient``.
        """
        warned = False
        while not self.stop.is_set():
            self.topic = self.tried(lambda: self.admin.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC))
            if self.topic is not None or self.stop.is_set():
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
        if self.stop.is_set():
            return None
        if not self.patient:
            return ask()
        attempts = while_mendable(
            Retrying,
            _trying_again,
            sleep=sleep_using_event(self.stop),
            stop=stop_when_event_set(self.stop),
            retry_error_callback=lambda _: None,
        )
        return attempts(ask)

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
        self._note_leaders(now)
        # Not of the others: with what one leader does not answer all would wait.
        partitions = [(OFFSETS_TOPIC, p) for p in range(now.partitions) if now.has_leader(p)]
        # Asked besides the log end: an open transaction holds this one back, and with it what the stream may read.
        # First, because both grow: asked second it could lie beyond the log end.
        stable = self.admin.log_end(partitions, committed_only=True).found
        answer = self.admin.log_end(partitions)
        log_end = answer.found
        trusted = self._compared(now, answer)
        return {p: (log_end[t, p], stable[t, p]) for t, p in partitions if (t, p) in stable and p in trusted}

    def _note_leaders(self, topic: TopicDescription) -> None:
        now_s = self.clock()
        without = [p for p in range(topic.partitions) if not topic.has_leader(p)]
        # At the first look it may have been so for long: a query that begins with such a partition waits for it.
        since_s = now_s if self._looked else now_s - LEADERLESS_AFTER_S
        self._leaderless_since = {p: self._leaderless_since.get(p, since_s) for p in without}
        self._looked = True

    @property
    def leaderless(self) -> frozenset[int]:
        """The partitions that have had no leader for longer than an election takes."""
        since_s = self.clock() - LEADERLESS_AFTER_S
        return frozenset(p for p, began_s in self._leaderless_since.items() if began_s <= since_s)

    @property
    def partitions(self) -> frozenset[int]:
        """All partitions that the topic has, once it is there."""
        assert self.topic is not None
        return frozenset(range(self.topic.partitions))

    @property
    def readable(self) -> frozenset[int]:
        """The partitions that can be read."""
        return self.partitions - self.leaderless

    def group_with_coordinator(self, prefix: str) -> str:
        """A new group's name with this prefix, whose coordinator is there: the leader of its partition."""
        count, readable = len(self.partitions), self.readable
        while True:
            name = f"{prefix}-{uuid.uuid4().hex}"
            if source_partition(name, count) in readable or not readable:
                return name

    @property
    def epochs(self) -> dict[int, int]:
        """Partition → the latest leader's epoch under which it was seen."""
        return {partition: epoch for partition, (epoch, _) in self._seen.items()}

    def resume(self, reached: Mapping[int, int], epochs: Mapping[int, int]) -> None:
        """What was read before this process: up to which offset, and the latest epoch that was seen then."""
        self._seen = {p: (epochs.get(p, UNDEFINED), end) for p, end in reached.items()}

    def _compared(self, topic: TopicDescription, answer: Offsets) -> set[int]:
        """The partitions whose logs still have all that was seen of them; the others go to ``cut``, or are left for the next time."""
        found = {p: (answer.epochs.get((t, p), UNDEFINED), end) for (t, p), end in answer.found.items()}
        before = {p: self._seen[p] for p in found if p in self._seen}
        changed = {p: epoch for p, (epoch, _) in before.items() if UNDEFINED < epoch < found[p][0]}
        # Only at a change of leaders: it opens connections of its own.
        ended = self.admin.epoch_ends(topic, changed) if changed else {}
        trusted = set()
        for p, (epoch, end) in found.items():
            known_epoch, known_end = before.get(p, (UNDEFINED, 0))
            # A leader of before that does not know yet that it leads no longer, or a new one that could not be asked.
            if epoch < known_epoch or (p in changed and p not in ended):
                continue
            kept = end if ended.get(p, UNDEFINED) == UNDEFINED else ended[p]
            if (epoch != known_epoch or epoch == UNDEFINED) and kept < known_end:
                self.cut[p] = min(kept, self.cut.get(p, kept))
            self._seen[p] = epoch, end
            trusted |= {p} - self.cut.keys()
        return trusted

    def check(self, read: Collection[int] | None = None) -> None:
        """Raise Misconfigured once the topic is no longer the one that was begun, LogCutError once its log has lost its end,
        LeadersChanged once others can be read than those that are ``read``."""
        if self.lost:
            raise Misconfigured(self.lost)
        if self.cut:
            raise LogCutError(self.cut_sentence())
        if read is not None and self.readable != frozenset(read):
            raise LeadersChanged(self.leaders_sentence())

    def leaders_sentence(self) -> str:
        """Which partitions have no leader."""
        if not self.leaderless:
            return f"All partitions of {OFFSETS_TOPIC} have a leader again."
        which = ", ".join(partition_name(OFFSETS_TOPIC, p) for p in sorted(self.leaderless))
        return f"No broker leads {which}: the groups whose commits stand there are not watched until one that holds them is back."

    def cut_sentence(self) -> str:
        """Which logs lost what."""
        which = ", ".join(
            f"{partition_name(OFFSETS_TOPIC, p)} from offset {offset} on"
            for p, offset in sorted(self.cut.items())
        )
        return f"Commits were lost: a replica that had fallen behind was elected leader (unclean.leader.election.enable), and what stood in {which} is gone."

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
