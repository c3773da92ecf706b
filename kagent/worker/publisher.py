"""Recommendations onto their topic: numbered, counted, and remembered as the latest under their key."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kagent.contract.recommendation import Recommendation, Status, to_bytes
from kagent.worker.context import WorkerContext

log = logging.getLogger("kagent.worker")

Publish = Callable[[int, str, bytes | None, Callable[[], None] | None], None]
"""Send a message under this key to the recommendations topic, with the rows of the partition of its group; call when it is committed."""


@dataclass(slots=True)
class Publisher:
    """``latest``: key → latest message. ``revisions``: key → revision of the latest message; it only grows."""

    context: WorkerContext
    send: Publish
    latest: dict[str, Recommendation] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)

    def publish(self, partition: int, key: str, messages: Iterable[Recommendation]) -> None:
        """Put a group's messages into the outbox."""
        for recommendation in messages:
            # The incident may be older than the setting that hides names: its message is taken back from the topic.
            redacted, began = self.context.redaction.checked(recommendation), self.context.now
            message = self._numbered(key, redacted)
            self.send(partition, key, to_bytes(message), partial(self._delivered, began, message.as_of))
            # Before the commit: a failed transaction ends the process, and the next start reads the topic.
            self.latest[key] = message
            self.context.live.published(partition, key, message)
            self.context.counts[f"said_{message.status.value}"] += 1
            log.info("%s %s: %s", message.status.value, key, message.reason)

    def publish_again(self, partition: int, key: str, message: Recommendation) -> None:
        """Put a message that the topic has lost into the outbox: it tells nothing new."""
        # How far it was numbered may be lost with it: seconds since the epoch are more than any number of changes.
        self.revisions.setdefault(key, self.context.now // 1000)
        again = self._numbered(key, self.context.redaction.checked(message))
        self.send(partition, key, to_bytes(again), None)
        self.latest[key] = again
        self.context.live.published(partition, key, again)

    def publish_common(self, partition: int, key: str, message: Recommendation) -> None:
        """Put a message about many groups into the outbox."""
        # Not in `latest`, which holds groups: common incidents are remembered in the rows of coverage.
        self.send(partition, key, to_bytes(self._numbered(key, message)), None)

    def _numbered(self, key: str, message: Recommendation) -> Recommendation:
        self.revisions[key] = self.revisions.get(key, 0) + 1
        return message.model_copy(update={"revision": self.revisions[key]})

    def _delivered(self, began: int, as_of: int) -> None:
        self.context.delays.add("publish", self.context.now - began)
        self.context.delays.add("whole", self.context.now - as_of)

    def continue_revisions(self, published: Mapping[str, Any]) -> None:
        """Number on from what the topic holds (key → message): readers drop a revision that they have seen."""
        for key, message in published.items():
            if isinstance(message, Recommendation):
                # The greater: this worker may have put out more than the read of the topic has seen.
                self.revisions[key] = max(message.revision, self.revisions.get(key, 0))

    def retire(self, partition: int, at: int) -> None:
        """Delete resolved recommendations from the topic when they are old."""
        limit = at - int(self.context.settings.worker.keep_resolved_hours * 3_600_000)
        for key in list(self.context.index.entries(partition)):
            message = self.latest.get(key)
            if message is not None and message.status is Status.RESOLVED and message.as_of < limit:
                # A tombstone: the topic is compacted and has no retention, so nothing else removes a key.
                self.send(partition, key, None, None)
                del self.latest[key]
                self.revisions.pop(key, None)
