"""What commands print while they wait."""

from __future__ import annotations

import sys

import pytest

from kagent.commands import output
from tests.fixtures.waiting import until


def test_a_long_wait_is_announced_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(output, "AT_ONCE_S", 0.0)

    with output.waiting_for("kafka:9092"):
        until(lambda: "kafka:9092" in capsys.readouterr().err)


def test_of_what_is_answered_at_once_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(output, "AT_ONCE_S", 3600.0)

    with output.waiting_for("kafka:9092"):
        pass

    assert capsys.readouterr() == ("", "")
