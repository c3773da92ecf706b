"""A worker whose tables' recovery stands still begins anew, instead of being blind until somebody restarts it.

A recovery that misses one record of a changelog waits for it for ever, and Faust has had several ways to miss one
(https://github.com/faust-streaming/faust/issues/651; see ``ConsumerThread._fetch_records`` for another).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

STANDS_S = 60.0
"""Recovery reads thousands of rows a second, and a broker that was restarted is back by then."""


async def watched(recovery: Any, begin_anew: Callable[[str], object], every_s: float = STANDS_S) -> None:
    """Look at Faust's ``Recovery`` for ever; call ``begin_anew`` with the reason where it has read nothing between two looks."""
    before = 0
    while True:
        await asyncio.sleep(every_s)
        left = (
            sum(max(0, rows) for rows in recovery.active_remaining().values()) if recovery.in_recovery else 0
        )
        if left and left == before:
            begin_anew(
                f"the recovery of the tables has stood still for {every_s:g} s with {left} rows to read"
            )
        before = left
