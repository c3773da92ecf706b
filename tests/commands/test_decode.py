"""``kagent decode`` on files and standard input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kagent.cli import root
from kagent.offsets.decode_lines import READERS

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "offsets" / "data" / "records.jsonl").read_text().splitlines()
]
TOMBSTONE = {"key_hex": "00010001670001740000000" + "3", "value_hex": None}


def said(lines: str, *options: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(root, ["decode", *options], input=lines, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("kind", sorted({vector["kind"] for vector in VECTORS}))
def test_every_vector_is_printed_as_its_expectation(kind: str) -> None:
    vectors = [vector for vector in VECTORS if vector["kind"] == kind]
    lines = "\n".join(
        json.dumps({name: v[name] for name in v if name in ("key_hex", "value_hex", "hex")}) for v in vectors
    )

    found = said(lines, "--kind", kind if kind in READERS else "record")

    if kind == "malformed":
        assert [set(line) for line in found] == [{"error"}] * len(vectors)
    else:
        assert found == [vector["expected"] for vector in vectors]


def test_a_file_is_read_as_standard_input_is(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text(json.dumps(TOMBSTONE) + "\n\n")

    (line,) = said("", str(tmp_path / "lines"))

    assert line["key"] == {"group": "g", "topic": "t", "partition": 3}


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[1]",
        "3",
        '{"key_hex": "00"}',
        '{"key_hex": "zz", "value_hex": null}',
        '{"key_hex": 7, "value_hex": null}',
        '{"key_hex": null, "value_hex": "00"}',
        '{"key_hex": "\\ud800", "value_hex": null}',
        "[" * 5000,
    ],
)
def test_a_line_that_cannot_be_read_gives_an_error_and_the_next_is_read(line: str) -> None:
    first, second = said(f"{line}\n{json.dumps(TOMBSTONE)}\n")

    assert set(first) == {"error"}
    assert second["record"] == "OffsetCommit"


def test_records_of_other_groups_are_left_out() -> None:
    other = {"key_hex": "00010001680001740000000" + "3", "value_hex": None}

    found = said(f"{json.dumps(TOMBSTONE)}\n{json.dumps(other)}\n", "--group", "h")

    assert [line["key"]["group"] for line in found] == ["h"]


def test_what_a_terminal_would_obey_is_escaped() -> None:
    group = "\x1b[2J\u202e\x9b日本"
    key = b"\x00\x01" + len(group.encode()).to_bytes(2, "big") + group.encode() + b"\x00\x01t" + bytes(4)

    result = CliRunner().invoke(root, ["decode"], input=json.dumps({"key_hex": key.hex(), "value_hex": None}))

    assert result.stdout.strip().isprintable()
    assert "日本" in result.stdout
    assert json.loads(result.stdout)["key"]["group"] == group


def test_user_data_nested_too_deep_to_be_printed_is_an_error() -> None:
    (line,) = said(json.dumps({"hex": (b"[" * 500 + b"]" * 500).hex()}), "--kind", "faust_user_data")

    assert set(line) == {"error"}
