"""Lines of JSON as they come: each is an object or an error that says why not, and none stops the others."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kagent.cli import main, root
from kagent.commands.input_lines import ident, objects
from kagent.errors import InputError

GOOD = b'{"id": "g", "strategy": "range", "partitions_per_topic": {"t": 2}, "lags": {"t": [[0, 9], [1, 9]]}, "members": [{"id": "a", "topics": ["t"]}]}'


def test_what_surrounds_a_line_is_not_part_of_it() -> None:
    read = list(objects([b'\xef\xbb\xbf{"id": 1}\r\n', b" \r\n", b"\n", b'\t{"id": 2} ']))
    assert read == [("line 1", {"id": 1}), ("line 4", {"id": 2})]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"id": 1,\n', "not JSON at column 10: Expecting property name enclosed in double quotes"),
        (b'{"id": "\xff"}\n', "not JSON: byte 8 is not UTF-8"),
        ('{"id": 1}'.encode("utf-16"), "not JSON: byte 0 is not UTF-8"),
        (b"[" * 100_000, "not JSON to be read: nested too deeply"),
        (b"9" * 5000, "not JSON to be read: a number has too many digits"),
        (b"[1]", "a JSON object is expected"),
        (b"null", "a JSON object is expected"),
    ],
)
def test_a_line_that_is_no_object_is_an_error_that_says_why(line: bytes, says: str) -> None:
    [(where, read)] = objects([line])
    assert where == "line 1"
    assert isinstance(read, InputError)
    assert str(read) == says


def test_an_id_that_json_cannot_hold_is_none() -> None:
    assert [ident({"id": value}) for value in ("a", 7, float("nan"), [1])] == ["a", 7, None, None]


@pytest.mark.parametrize("command", ["assign", "plan"])
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": float("nan")}, "id"),
        ({"id": [1]}, "id"),
        ({"lags": []}, "lags"),
        ({"lags": {"t": [[0, float("nan")], [1, 9]]}}, 'lags["t"][0]'),
        ({"replica_racks": False}, "replica_racks"),
        ({"topic_ids": ""}, "topic_ids"),
        ({"topic_ids": {"t": "+" * 22}}, 'topic_ids["t"]'),
        ({"topic_ids": {"t": "x" * 22, "u": "x" * 22}}, 'topic_ids["u"]: it is the id of "t" too'),
        ({"members": [{"id": "a", "topics": ["t"], "owned": {}}]}, "members[0].owned"),
    ],
)
def test_the_field_at_fault_is_named_and_the_next_line_answered(
    command: str, change: dict[str, object], field: str
) -> None:
    bad = json.dumps({**json.loads(GOOD), **change}).encode()
    result = run(command, bad + b"\n" + GOOD)
    assert result.exit_code == 2
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["error"]["message"].startswith(f"line 1: {field}")
    assert second["error"] is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"costs": {"t": 10**400}}, 'line 1: costs["t"]'),
        ({"speeds": {"a": 1e-320}}, 'line 1: speeds["a"]: 1e-320 cannot be'),
        ({"pinned": False}, "line 1: pinned: a list"),
        (
            {
                "lags": {"t": [[0, 9], [1, 9]], "u": [[0, 1]]},
                "partitions_per_topic": None,
                "units": [["t", "u"]],
            },
            "line 1: units[0]: no member subscribes to all of its topics",
        ),
        ({"assumed": 5}, "line 1: assumed: a list"),
    ],
)
def test_a_plan_that_cannot_be_made_says_which_field_is_why(change: dict[str, object], says: str) -> None:
    result = run("plan", json.dumps({**json.loads(GOOD), **change}).encode())
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["message"].startswith(says)


def test_a_line_that_cannot_be_decoded_is_said_by_its_number() -> None:
    result = CliRunner().invoke(
        root, ["decode"], input=b'\xef\xbb\xbf{"key_hex": null}\n\n{"key_hex": "7fff"\n'
    )
    said = [json.loads(line)["error"] for line in result.stdout.splitlines()]
    assert said == [
        "line 1: the line has no value_hex",
        "line 3: not JSON at column 19: unexpected end of data",
    ]


def test_a_closed_input_is_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    main(["assign", "--json"])
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_under_the_output_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "dup2", lambda *_: None)  # the descriptor is pytest's own here
    with suppress(OSError), Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main(["partition", "--partitions", "3", "--json", "key"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("kagent: The output cannot be written")


def run(command: str, text: bytes) -> Result:
    return CliRunner().invoke(root, [command, "--json"], input=text)
