"""The one back-off."""

from __future__ import annotations

import logging

import pytest
from tenacity import AsyncRetrying, wait_none

from kagent.retry import pause_s, warned


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
