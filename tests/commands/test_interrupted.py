"""Ctrl-C is the end of what runs until it is stopped, and a failure of what had not finished: docs/cli.md and docs/faq.md say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kagent.cli import main
from kagent.commands import decode, watch
from kagent.reference_pages import CLI_HEAD


def interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def interrupted_later(*_: Any) -> Iterator[Any]:
    yield {"key": None}
    raise KeyboardInterrupt


def code(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    for name in ("_board", "_follow", "_once"):
        monkeypatch.setattr(watch, name, interrupted)
    monkeypatch.setattr(decode, "_live", interrupted_later)
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main(["-b", "127.0.0.1:1", *arguments]))
    return int(end.value.code or 0)


@pytest.mark.parametrize(
    "arguments", [("watch",), ("watch", "--json"), ("watch", "--wide"), ("decode", "--follow")]
)
def test_what_runs_until_it_is_stopped_ends_well(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    assert code(monkeypatch, *arguments) == 0


@pytest.mark.parametrize("arguments", [("watch", "--open"), ("watch", "-o", "csv")])
def test_an_answer_that_had_not_come_is_130(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    assert code(monkeypatch, *arguments) == 130


def test_the_pages_say_what_ctrl_c_gives() -> None:
    faq = (Path(__file__).parents[2] / "docs" / "faq.md").read_text(encoding="utf-8")

    assert (
        "After Ctrl-C: 0 of commands that run until they are stopped (`watch`, `decode --follow`," in CLI_HEAD
    )
    assert "`capture`, whose folder is complete up to there; 130 of all others" in CLI_HEAD
    assert "130: Ctrl-C ended it before it had finished." in faq


def test_a_wrong_name_to_sort_by_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code(monkeypatch, "watch", "--sort", "lateness") == 2
    assert "seconds_behind" in capsys.readouterr().err
