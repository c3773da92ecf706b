"""What the log holds of an outage, and of a flood of bad records."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import pytest

from kagent.client import mutes_topic
from kagent.client.client import parsed
from kagent.contract import mute
from kagent.contract.admission import Refused
from kagent.worker.dead_letters import DeadLetters
from kagent.worker.repeated_lines import READERS, REFUSED, RepeatedLines
from tests.worker.test_engine import desk


class Listed(logging.Handler):
    """Keeps what would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_a_complaint_of_the_client_is_written_once_a_minute_with_the_number_of_those_left_out() -> None:
    now = 0.0
    written = Listed()
    written.addFilter(RepeatedLines(clock=lambda: now))
    client, own = logging.getLogger("aiokafka.conn"), logging.getLogger("kagent.worker")
    for logger in (client, own):
        logger.addHandler(written)
    try:
        for second in range(61):
            now = float(second)
            client.error("Unable connect to node with id %s", second % 2)
            own.warning("a group is blind")
        client.warning("Heartbeat failed")
    finally:
        for logger in (client, own):
            logger.removeHandler(written)

    assert written.lines.count("a group is blind") == 61
    assert [line for line in written.lines if "blind" not in line] == [
        "Unable connect to node with id 0",
        "Unable connect to node with id 0 (59 more like this since)",
        "Heartbeat failed",
    ]


def test_a_topic_of_unreadable_messages_and_mutes_is_a_line_for_each_of_the_two() -> None:
    written = Listed()
    written.addFilter(RepeatedLines(clock=lambda: 0.0))
    logger = logging.getLogger(READERS)
    logger.addHandler(written)

    def take(key: str, value: bytes | None) -> None:
        mute.from_bytes(value or b"")

    try:
        for number in range(1000):
            parsed(b"main/%d" % number, b"poison")
            mutes_topic._take(take, b"k", b"poison")
    finally:
        logger.removeHandler(written)

    assert len(written.lines) == 2


@pytest.mark.slow
def test_a_flood_of_refused_records_is_a_line_a_minute_for_each_kind_and_reason() -> None:
    now = 0.0
    written = Listed()
    written.addFilter(RepeatedLines(clock=lambda: now))
    logger = logging.getLogger(REFUSED)
    logger.addHandler(written)
    letters = DeadLetters(desk(), SimpleNamespace(send=nothing))
    poison = SimpleNamespace(topic="e", partition=0, offset=7, key=b"k", value=b"x")
    try:
        for number in range(1000):
            now = number / 10
            for reason in ("no_json", "out_of_bounds"):
                asyncio.run(letters.refuse("event", poison, Refused(reason, "it is wrong")))
    finally:
        logger.removeHandler(written)

    assert written.lines == [
        "event is refused (no_json): it is wrong at e-0@7",
        "event is refused (out_of_bounds): it is wrong at e-0@7",
        "event is refused (no_json): it is wrong at e-0@7 (599 more like this since)",
        "event is refused (out_of_bounds): it is wrong at e-0@7 (599 more like this since)",
    ]
    assert letters.engine.refused["event", "no_json"] == 1000


async def nothing(**_: bytes) -> None:
    """A send that succeeds."""
