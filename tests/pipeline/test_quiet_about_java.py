"""What is printed when Java goes before the process that started it."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.pipeline.restarts import quiet_about_java


def test_the_accumulators_print_no_stack_trace(capsys: pytest.CaptureFixture[str]) -> None:
    from pyspark.accumulators import AccumulatorServer

    quiet_about_java()
    server: Any = object.__new__(AccumulatorServer)
    server.handle_error(None, ("127.0.0.1", 1))

    assert capsys.readouterr() == ("", "")
