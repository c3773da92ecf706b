"""What the demo does with a message."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path

import pytest
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


ENDLESS = """
import asyncio
from kagent.demo import choreography

async def run(demo):
    while True:
        demo.console.print("a line")
        await asyncio.sleep(0.01)

choreography.Demo.run = run
raise SystemExit(choreography.main(keep=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, None], ids=["Ctrl-C", "only the reader goes"])
def test_a_demo_whose_output_nobody_reads_any_more_ends_and_leaves_no_folder(
    tmp_path: Path, how: signal.Signals | None
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, env=environment)
    assert demo.stdout is not None
    assert demo.stdout.readline() == b"a line\n"
    assert [folder.name[:12] for folder in tmp_path.iterdir()] == ["kagent-demo-"]

    demo.stdout.close()
    if how is not None:
        demo.send_signal(how)

    assert demo.wait(30) == 130
    assert list(tmp_path.iterdir()) == []
