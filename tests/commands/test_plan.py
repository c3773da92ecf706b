"""``kagent plan``: for lines, in JSON and for a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kagent.cli import main

LINE: dict[str, Any] = {
    "id": "one",
    "lags": {"t": [[0, 100], [1, 50], [2, 60], [3, 3]]},
    "members": [
        {"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]]},
        {"id": "b\x1b[2J", "topics": ["t"], "owned": [["t", 2]]},
        {"id": "c", "topics": ["t"], "owned": [["t", 3]]},
    ],
}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "groups.jsonl"
    bad = {**LINE, "id": "bad", "lags": {"t": [[0, -5]]}}
    path.write_text("\n".join([json.dumps(LINE), "{oops", json.dumps(bad), "", json.dumps(LINE)]))
    return path


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[str, str, int]:
    try:
        code = main(["plan", *args]) or 0
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    said = capsys.readouterr()
    return said.out, said.err, code


def test_each_line_gets_its_plan_and_a_bad_one_its_error(
    lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _, code = run(capsys, "--json", str(lines))
    first, broken, bad, last = map(json.loads, out.splitlines())

    assert first == last
    assert first["id"] == "one"
    assert first["verdict"] == "rebalance"
    assert first["moves"] == [{"topic": "t", "partition": 1, "from": "a", "to": "c", "lag": 50}]
    assert first["assignment"] == {"a": [["t", 0]], "b\x1b[2J": [["t", 2]], "c": [["t", 1], ["t", 3]]}
    assert first["greatest"] == {"now": 150, "after": 100, "best": 100, "lower_bound": 100}
    assert first["skew"] == {"now": pytest.approx(450 / 213), "after": pytest.approx(300 / 213)}
    assert first["frontier"] == [[0, 150], [1, 100]]
    assert {"strategy", "skew", "greatest", "moves"} <= set(first["alternatives"][0])
    assert "range" in {one["strategy"] for one in first["alternatives"]}
    assert broken["error"]["message"].startswith("line 2: not JSON at column 2")
    assert bad["error"] == {
        "class": "InputError",
        "message": 'line 3: lags["t"][0]: partition 0 has the lag -5, which cannot be',
    }
    assert code == 2


def test_a_person_gets_bars_and_no_control_characters(
    lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err, _ = run(capsys, str(lines))

    assert "uneven work: 1 move (proven fewest); most loaded member 150 → 100" in out
    assert "█" in out
    assert "\x1b" not in out
    assert "kagent: line 2: not JSON" in err


def test_tolerance_and_most_moves_are_obeyed(lines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still, _, _ = run(capsys, "--json", "--max-moves", "0", str(lines))
    loose, _, _ = run(capsys, "--json", "--tolerance", "0.5", str(lines))

    assert json.loads(still.splitlines()[0])["moves"] == []
    assert json.loads(loose.splitlines()[0])["moves"] == []
