"""A log that can be read, and does not fill a disk: complaints of the Kafka client, and those about records that are not let in, once a
minute each, with how many more there were."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

EVERY_S = 60.0
"""While a broker is away aiokafka complains some ten times a second; one line a minute says that it still is."""
REFUSED = "kagent.refused"
"""The logger about records that are not let in: a client that may write to kagent's topics can make any number of them."""
READERS = "kagent.client"
"""The logger about messages and mutes that cannot be read back: the same clients may write them."""
REPEATED = ("aiokafka", REFUSED, READERS)


class RepeatedLines(logging.Filter):
    """Lets each warning or error of REPEATED through once in EVERY_S: those of one wording count as the same. ``clock``: s."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._written: dict[tuple[str, str], tuple[float, int]] = {}
        """Logger and wording → when it was last written, and how often it was left out since; as many as there are wordings."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written; one that is says how many were not."""
        if record.levelno < logging.WARNING or not record.name.startswith(REPEATED):
            return True
        # Each handler asks, and all have to hear the same.
        known = record.__dict__
        if "is_written" not in known:
            known["is_written"] = self._decide(record)
        return bool(known["is_written"])

    def _decide(self, record: logging.LogRecord) -> bool:
        # The wording before its arguments are filled in: which node or partition it is changes from line to line.
        key, now = (record.name, str(record.msg)), self._clock()
        written, left_out = self._written.get(key, (-EVERY_S, 0))
        if now - written < EVERY_S:
            self._written[key] = (written, left_out + 1)
            return False
        self._written[key] = (now, 0)
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more like this since)", ()
        return True


def shorten_outages() -> None:
    """Every handler of the process writes repeated complaints once a minute."""
    repeated = RepeatedLines()
    # Without a handler Python writes warnings by one of its own: of commands that print for people.
    for handler in logging.getLogger().handlers or filter(None, [logging.lastResort]):
        handler.addFilter(repeated)
