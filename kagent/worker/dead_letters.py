"""Records that are not let in: counted, and put on the dead-letters topic. Nothing restarts over one."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from kagent.contract.admission import Refused
from kagent.text import partition_name
from kagent.worker.engine import GroupEngine
from kagent.worker.repeated_lines import REFUSED

log = logging.getLogger(REFUSED)
# Not the whole record: a letter must fit whatever the size of what it is about.
KEPT_BYTES = 256
"""Of the record's key and of its value: enough to recognise its producer."""


class DeadLetters:
    """``topic`` is Faust's, with raw bytes as keys and values."""

    def __init__(self, engine: GroupEngine, topic: Any) -> None:
        self.engine, self.topic = engine, topic

    async def refuse(self, what: str, message: Any, error: Exception, value: bytes | None = None) -> None:
        """Count this record (``what``: its kind) and put it among the dead letters, with the reason.

        :param value: the part of the message that is not let in; by default all of it.
        """
        reason = _reason(error)
        self.engine.counts["dead_letters"] += 1
        self.engine.refused[what, reason] += 1
        letter = dead_letter(message, error, bool(self.engine.redaction), value)
        # A refusal is the producer's fault; anything else is a defect here, so its traceback is logged.
        if isinstance(error, Refused):
            # Kind and reason in the wording: each of them is written once a minute (kagent.worker.repeated_lines).
            log.warning(f"{what} is refused ({reason}): %s at %s", letter["why"], letter["from"])
        else:
            log.error(f"{what} cannot be applied: %s", letter["from"], exc_info=error)
        # Through Faust's producer, outside the transactions: a letter may be there twice.
        await self.topic.send(key=message.key, value=orjson.dumps({**letter, "reason": reason}))

    def count(self, what: str, message: Any, errors: Sequence[Exception]) -> None:
        """Count what else of this message is not let in, without a letter for each."""
        if errors:
            self.engine.refused.update(Counter((what, _reason(error)) for error in errors))
            log.warning("%d more of %s are refused", len(errors), _place(message))


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, Refused) else "not_applied"


def _place(message: Any) -> str:
    return f"{partition_name(message.topic, message.partition)}@{message.offset}"


def dead_letter(message: Any, error: Exception, hidden: bool, value: bytes | None = None) -> dict[str, str]:
    """Where the record lies, why it is not let in, and its first bytes unless names are ``hidden``."""
    kind, shown = type(error).__name__, (message.value if value is None else value) or b""
    letter = {
        "from": _place(message),
        # An error's text can quote the record, and so hosts and client ids.
        "why": kind if hidden else str(error),
        "kind": kind,
        "key_hex": (message.key or b"")[:KEPT_BYTES].hex(),
    }
    return letter if hidden else {**letter, "value_hex": shown[:KEPT_BYTES].hex()}
