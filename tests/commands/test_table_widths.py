"""The tables of commands at 80, 120 and 200 columns with names of 60 characters: files under ``snapshots`` hold them.

A snapshot that is missing is written and the test fails once, so that somebody looks at it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from kagent.cli import root
from kagent.commands import backtest, calibrate, keys, mutes, output, replay
from kagent.commands.output import Format
from kagent.history.hot_keys import KeySample
from kagent.kafka.topics import TopicCheck
from kagent.planner import comparison
from kagent.strategies import STRATEGIES, assign_answer
from kagent.strategies.partitioner import partition_for
from tests.fixtures.snapshots import held

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (80, 120, 200)
LONG = "payments-settlement-reconciliation-processor-eu-central-1-v2"
TOPIC = "payments-settlement-reconciliation-requests-eu-central-1-v02"
SCENARIO: dict[str, Any] = {
    "id": LONG,
    "lags": {TOPIC: [[p, lag] for p, lag in enumerate([1_250_000, 980_000, 40_000, 35_000, 30_000, 9_000])]},
    "members": [
        {"id": f"{LONG}-1", "topics": [TOPIC], "owned": [[TOPIC, 0], [TOPIC, 1], [TOPIC, 2]]},
        {"id": f"{LONG}-2", "topics": [TOPIC], "owned": [[TOPIC, 3], [TOPIC, 4]]},
        {"id": f"{LONG}-3", "topics": [TOPIC], "owned": [[TOPIC, 5]]},
    ],
}


@pytest.fixture(autouse=True)
def a_few_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest names and every kind of answer: one strategy more or less changes no snapshot."""
    # Not taken out of STRATEGIES itself: a command that is imported meanwhile would keep the short list in its help.
    few = ("range", "sticky", "lag", "constrained-cooperative-sticky", "kip848-uniform")
    kept = {name: strategy for name, strategy in STRATEGIES.items() if name in few}
    for asks in (assign_answer, comparison):
        monkeypatch.setattr(asks, "STRATEGIES", kept)


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A terminal of this many columns, as rich finds it."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(request.param))
    chosen: int = request.param
    return chosen


def tables(text: str) -> list[str]:
    """The lines of tables and titles; sentences and notes wrap as text does."""
    return [line for line in text.splitlines() if not line.startswith(("rebalance: ", "note: ", "one: "))]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("plan", ["plan"]),
        ("assign-range", ["assign", "--strategy", "range"]),
        ("assign-all", ["assign", "--strategy", "all"]),
    ],
)
def test_no_table_is_wrapped(name: str, arguments: list[str], width: int) -> None:
    answer = CliRunner().invoke(root, arguments, input=json.dumps(SCENARIO) + "\n")

    assert answer.exit_code == 0, answer.output
    assert max(map(cell_len, tables(answer.stdout))) <= width
    held(SNAPSHOTS, f"{name}-{width}", answer.stdout)


def test_what_was_replayed_is_not_wrapped(rec: Any, width: int, capsys: pytest.CaptureFixture[str]) -> None:
    messages = [
        rec(LONG, as_of=1_760_000_000_000, reason=f"{LONG}-1 holds 97 % of the group's backlog and is 12 min behind."),
        rec("orders", as_of=1_760_000_060_000, status="resolved", resolution="drained"),
    ]  # fmt: skip

    output.print_list(Format(), replay.LISTING, [replay._record(m, m.as_of) for m in messages], replay._cells)

    text = capsys.readouterr().out
    assert max(map(cell_len, text.splitlines())) <= width
    held(SNAPSHOTS, f"replay-{width}", text)


LISTS: dict[str, tuple[Any, Any, list[dict[str, Any]]]] = {
    "mutes": (
        mutes.LISTING,
        lambda record: mutes._cells(record, 1_760_000_000_000),
        [
            {"group": LONG, "until": 1_760_003_600_000, "by": "ada.lovelace", "why": "migration of the settlement service", "groups": 1},
            {"group": "payments-*", "until": 1_760_090_000_000, "by": "", "why": "", "groups": 12},
        ],
    ),
    "backtest": (
        backtest.LISTING,
        backtest._cells,
        [
            {"group": LONG, "policy": "settings", "openings": 3, "by_itself": 1, "flaps": 0, "skew_hours": 12.5, "moves": 4,
             "saved": {"constrained-cooperative-sticky": 1250.0, "lag": 900.0}},
            {"group": "orders", "policy": "quieter.yaml", "openings": 0, "by_itself": 0, "flaps": 0, "skew_hours": 0.0, "moves": 0, "saved": {}},
        ],
    ),
    "calibrate": (
        calibrate.LISTING,
        calibrate._cells,
        [
            {"group": LONG, "chosen": {"threshold": 1.5, "min_behind": 120.0},
             "why": "this pair would have opened 3 times; threshold 1.5 with 60 s 9 times, 6 of them for lateness that ended by itself, with 2 flaps"},
            {"group": "orders", "chosen": None, "why": "no pair fits"},
        ],
    ),
    "keys": (
        keys.LISTING,
        keys._cells,
        [
            {"partition": 11, "times_mean": 7.53, "key": f"{LONG}/customer-0000000001", "share": 0.93},
            {"partition": 3, "times_mean": 1.5, "key": "a", "share": 0.011},
        ],
    ),
}  # fmt: skip
"""Command → its columns, how it shows a record, and records with names of 60 characters."""


@pytest.mark.parametrize("name", LISTS)
def test_no_list_is_wrapped(name: str, width: int, capsys: pytest.CaptureFixture[str]) -> None:
    columns, cells, records = LISTS[name]

    output.print_list(Format(), columns, records, cells)

    text = capsys.readouterr().out
    assert max(map(cell_len, text.splitlines())) <= width
    held(SNAPSHOTS, f"{name}-{width}", text)


def sampled(by_hash: bool) -> KeySample:
    """Of a topic whose heaviest key is most of a partition; keys lie where their hash says, or elsewhere."""
    names = [f"{LONG}/customer-{n:010}".encode() for n in range(40)]
    places = [partition_for(name, 4) if by_hash else (partition_for(name, 4) + 1) % 4 for name in names]
    weight = np.array([5000.0, *39 * [10.0]])
    return KeySample(TOPIC, 4, 3600.0, 1_250_000, names, np.array(places), weight, np.zeros(4), np.zeros(4))


@pytest.mark.parametrize("partitioner", ["default", "own"])
def test_nothing_of_what_keys_prints_is_wider_than_the_terminal(
    partitioner: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    keys._print(sampled(partitioner == "default"), (4, 8, 16), "records", Format())

    text = capsys.readouterr().out
    assert max(map(cell_len, text.splitlines())) <= width
    held(SNAPSHOTS, f"keys-of-the-{partitioner}-partitioner-{width}", text)


def test_a_command_that_mends_a_topic_is_whole_at_every_width(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mend = "kafka-configs.sh --bootstrap-server broker-1.example.com:9092 --alter --entity-type topics --entity-name kagent-lag --add-config cleanup.policy=compact"
    findings = [
        TopicCheck("kagent-group-events", "created"),
        TopicCheck("kagent-lag", "wrong", f"has cleanup.policy=delete: run `{mend}`"),
        TopicCheck("kagent-recommendations", "ok"),
    ]
    monkeypatch.setattr("kagent.kafka.reach.refuse_absent", lambda bootstrap: None)
    monkeypatch.setattr("kagent.kafka.topics.ensure", lambda *_: findings)

    answer = CliRunner().invoke(root, ["-b", "127.0.0.1:1", "topics"])

    assert answer.exit_code == 1
    held(SNAPSHOTS, "topics", answer.stdout)
    assert mend in answer.stdout
