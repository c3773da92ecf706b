"""What the log holds of an outage."""

from __future__ import annotations

import logging

from kagent.worker.repeated_lines import RepeatedLines


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
