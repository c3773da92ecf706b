"""What commands print while they wait."""

from __future__ import annotations

import ast
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import kagent.commands
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


def test_what_was_loaded_before_counts_as_waiting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(output, "AT_ONCE_S", 3600.0)
    monkeypatch.setattr(output, "BEGAN_S", time.monotonic() - 7200)

    with output.unless_at_once("Replaying a capture."):
        until(lambda: "Replaying a capture." in capsys.readouterr().err)


def test_a_name_is_no_formula_to_a_spreadsheet_and_a_number_is_a_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.print_records([{"group": "=cmd|' /C calc'!A0", "lag": -1}, {"group": "a=b", "lag": 0}], "csv", ())

    assert capsys.readouterr().out == "group,lag\n'=cmd|' /C calc'!A0,-1\na=b,0\n"


HIDDEN = "\x7f \x9b31m \u202e \u2028 \u200b \ue000 \U000e0041"


def test_json_has_no_character_that_a_terminal_obeys_and_says_the_same() -> None:
    line = output.json_line({"group": HIDDEN})

    assert line.isprintable()
    assert json.loads(line) == {"group": HIDDEN}


def test_all_json_about_the_cluster_is_escaped_in_one_place() -> None:
    """Messages, stories and records hold names that any client may choose."""
    printed = re.compile(r"click\.echo\((?!json\.dumps|output\.|json_line).*(dump_json|orjson|to_bytes)")
    folder = Path(output.__file__).parent
    found = [path.name for path in folder.glob("*.py") if printed.search(path.read_text(encoding="utf-8"))]

    assert found == []


def test_csv_without_a_row_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_records([], "csv", ("group", "lag"))

    assert capsys.readouterr().out == "group,lag\n"


def test_a_setting_that_fits_only_without_the_indent_has_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "width", lambda: 80)
    setting = "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor"

    output.say(f"  do: Set {setting} in every consumer of the group.", indent=4)

    assert capsys.readouterr().out.splitlines() == [
        "  do: Set",
        setting,
        "    in every consumer of the group.",
    ]


def test_no_sentence_is_printed_past_the_terminals_edge() -> None:
    # A name of 60 characters in it, and the terminal breaks it within a word: `say` folds it.
    found = [f"{path.name}:{line}" for path in MODULES for line in _echoed_sentences(path)]

    assert found == []


MODULES = sorted(Path(kagent.commands.__path__[0]).glob("*.py"))


def _echoed_sentences(path: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.echo" and node.args:
            texts = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
            if any(isinstance(text, str) and text.endswith(".") for text in texts):
                yield node.lineno
