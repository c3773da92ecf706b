"""The one back-off."""

from __future__ import annotations

import logging

import pytest
from tenacity import AsyncRetrying, Retrying, wait_none

from kagent.errors import KafkaError, Misconfigured
from kagent.retry import pause_s, warned, while_mendable


def test_the_pause_doubles_up_to_half_a_minute() -> None:
    assert [pause_s(failures) for failures in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


async def test_each_failure_is_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    failures = iter([ValueError("the first"), TimeoutError()])
    retrying = AsyncRetrying(
        wait=wait_none(), before_sleep=warned(logging.getLogger("kagent"), "not read yet")
    )

    async for attempt in retrying:
        with attempt:
            for error in failures:
                raise error

    assert [record.message for record in caplog.records] == [
        "not read yet: the first",
        "not read yet: TimeoutError",
    ]


def test_what_waiting_mends_is_tried_again_and_the_rest_is_raised_as_it_is() -> None:
    pauses: list[float] = []
    errors = iter([KafkaError("away"), KafkaError("no right"), Misconfigured("wrong password")])
    retrying = while_mendable(
        Retrying, lambda state: pauses.append(state.upcoming_sleep), sleep=lambda _: None
    )

    def start() -> None:
        raise next(errors)

    with pytest.raises(Misconfigured, match="wrong password"):
        retrying(start)
    assert pauses == [1, 2]
