"""What the demo does with a message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path

from rich.console import Console

from kagent.contract.recommendation import Recommendation, Status
from kagent.demo.choreography import Demo
from kagent.demo.processes import Processes
from tests.demo.test_scene import said


def test_advice_that_is_superseded_before_the_next_look_was_taken(tmp_path: Path) -> None:
    async def messages() -> AsyncIterator[Recommendation]:
        yield said("orders-a")
        yield said("orders-a", status=Status.SUPERSEDED)

    output = StringIO()
    demo = Demo(Console(file=output, width=120), tmp_path)
    asyncio.run(demo._hear(messages(), Processes(tmp_path)))
    assert list(demo.scene.followed) == ["orders-a"]
    assert "orders-a follows the advice by" in output.getvalue()
