"""A recovery that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from kagent.worker.recovery_watch import watched


@dataclass
class Recovery:
    """How many rows are left at each look; None: no recovery runs. Ends the watch after the last."""

    left: list[int | None]
    looks: Iterator[int | None] = field(init=False)
    now: int | None = None

    def __post_init__(self) -> None:
        self.looks = iter(self.left)

    @property
    def in_recovery(self) -> bool:
        try:
            self.now = next(self.looks)
        except StopIteration:
            raise asyncio.CancelledError from None
        return self.now is not None

    def active_remaining(self) -> dict[str, int]:
        return {"behind": self.now or 0, "beyond its end": -1}


@pytest.mark.parametrize(
    ("left", "begins"),
    [
        ([900, 900], 1),
        ([900, 400, 100, None, None], 0),
        ([0, 0, 0], 0),
        ([900, None, 900], 0),
        ([None, None], 0),
    ],
)
async def test_only_one_that_reads_nothing_between_two_looks_begins_anew(
    left: list[int | None], begins: int
) -> None:
    reasons: list[str] = []
    with suppress(asyncio.CancelledError):
        await watched(Recovery(left), reasons.append, every_s=0)

    assert len(reasons) == begins
    assert all("900 rows" in reason for reason in reasons)
