"""Every list can be had as a table, JSON lines, YAML and CSV, sorted and cut, and no line of a table is too wide."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from rich.cells import cell_len

from kagent.active_mutes import Mutes
from kagent.cli import root
from kagent.client.watch_table import Board
from kagent.commands import (
    assign,
    backtest,
    calibrate,
    keys,
    lag,
    mutes,
    output,
    plan,
    replay,
    topics,
    watch,
    worker_plan,
)
from kagent.commands.output import Format, ListColumns, print_rows
from kagent.contract.mute import MuteRecord
from kagent.errors import InputError
from kagent.history.backtest import RESULT
from kagent.history.calibrate import Proposal, Tried
from kagent.history.hot_keys import KeySample
from kagent.kafka.descriptions import GroupDescription
from kagent.kafka.group_lag import Row, ShownGroup
from kagent.kafka.topics import TopicCheck
from kagent.strategies.partitioner import partitions_for

LISTS = ("lag", "watch", "mutes", "topics", "plan", "assign", "backtest", "calibrate", "keys", "replay")
LONG = "payments-" + "x" * 51
SCENARIO = {
    "id": "orders",
    "partitions_per_topic": {"orders": 4},
    "members": [
        {"id": f"{LONG}-1", "topics": ["orders"], "owned": [["orders", 0], ["orders", 1], ["orders", 2]]},
        {"id": f"{LONG}-2", "topics": ["orders"], "owned": [["orders", 3]]},
    ],
    "lags": {"orders": [[0, 100], [1, 80], [2, 60], [3, 0]]},
}


@pytest.mark.parametrize("name", LISTS)
def test_every_list_takes_the_same_options(name: str) -> None:
    with click.Context(root) as ctx:
        command = root.get_command(ctx, name)
        assert command is not None
        given = {option for param in command.params for option in param.opts}

    assert {"--output", "-o", "--json", "--wide", "--sort", "--top"} <= given


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    file = tmp_path / "orders.jsonl"
    file.write_text(json.dumps(SCENARIO))
    return str(file)


def run(*arguments: str) -> str:
    answer = CliRunner().invoke(root, list(arguments), catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_a_plan_and_an_assignment_can_be_read_by_programs(scenario: str) -> None:
    (line,) = run("plan", scenario, "-o", "json").splitlines()
    rows = list(csv.DictReader(io.StringIO(run("plan", scenario, "-o", "csv"))))
    assert [(r["topic"], r["partition"], r["to"]) for r in rows] == [("orders", "0", f"{LONG}-2")]
    assert [r["partition"] for r in yaml.safe_load(run("plan", scenario, "-o", "yaml"))] == [0]
    assert json.loads(line)["moves"][0]["partition"] == 0

    best = yaml.safe_load(
        run("assign", scenario, "--strategy", "all", "-o", "yaml", "--sort", "-skew", "--top", "2")
    )
    assert [row["skew"] for row in best] == sorted(row["skew"] for row in best)
    members = list(csv.DictReader(io.StringIO(run("assign", scenario, "--strategy", "range", "-o", "csv"))))
    assert [json.loads(row["which"]) for row in members] == [
        ["orders-0", "orders-1"],
        ["orders-2", "orders-3"],
    ]


BACKTEST = {
    "cluster": "main", "group": LONG, "policy": "settings", "openings": 2, "flaps": 0, "by_itself": 1, "skew_hours": 1.25,
    "moves": 3, "saved": {"follow_plan": 120.0}, "dropped": {}, "ticks": [],
}  # fmt: skip


def wide_tables(monkeypatch: pytest.MonkeyPatch, width: int) -> list[str]:
    """The past's tables as a terminal of this width shows them."""
    out = io.StringIO()
    monkeypatch.setattr("kagent.commands.output.width", lambda wide=False: width)
    monkeypatch.setattr(click, "echo", lambda message="", **_: out.write(f"{message}\n"))
    tried = (Tried(1.25, 30.0, 5, 1, 4), Tried(1.5, 60.0, 1, 0, 0))
    proposal = Proposal("main", LONG, tried[1], tried)
    why = {
        "cluster": "main",
        "group": LONG,
        "chosen": {"threshold": 1.5, "min_behind": 60.0},
        "why": proposal.sentence(),
    }
    print_rows(backtest.COLUMNS, [backtest._cells(BACKTEST)])
    print_rows(calibrate.COLUMNS, [calibrate._cells(why)])
    hot = {"partition": 3, "times_mean": 3.75, "key": LONG, "key_hex": "", "share": 0.5}
    print_rows(keys.COLUMNS, [keys._cells(hot)])
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_pasts_tables_fit_and_keep_the_group(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    shown = wide_tables(monkeypatch, width)

    assert max(map(cell_len, shown)) <= width
    assert sum(line.startswith("payments-") for line in shown) == 2
    assert any("1m" in line for line in shown)  # min_behind with a unit, as the settings take it


def test_records_without_keys_are_not_called_even() -> None:
    skewed, even = np.array([100.0, 100.0, 800.0, 66.0]), np.array([10.0, 11.0, 10.0, 9.0])
    none = np.zeros(4)

    assert keys.without_hot_keys(skewed, skewed * [0.1, 0.1, 0.75, 0.1]).startswith(
        "Records without a key are 75% of the fullest partition:"
    )
    assert keys.without_hot_keys(skewed, none).startswith("No key stands out in the fullest partition:")
    assert keys.without_hot_keys(even, none) == "No partition has more than 1.2 times the mean."


def sampled(where: list[int], weight: list[float], keyless: list[float]) -> KeySample:
    """A topic of four partitions whose keys k0, k1, … were found there."""
    names = [f"k{n}".encode() for n in range(len(where))]
    arrays = (np.array(where, dtype=np.int64), np.array(weight), np.zeros(4), np.array(keyless))
    return KeySample("orders", 4, 3600.0, 1000, names, *arrays)


def answer(found: KeySample, capsys: pytest.CaptureFixture[str]) -> str:
    keys._print(found, (4, 8), "records", Format())
    return capsys.readouterr().out


def test_no_line_about_keys_contradicts_another_where_records_have_no_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    uneven = sampled([], [], [10.0, 10.0, 970.0, 10.0])
    shown = answer(uneven, capsys)

    assert "the fullest has 3.88 times the mean" in shown
    assert "Records without a key are 100% of the fullest partition" in shown
    assert "Only 28% of the load" in shown
    assert "PARTITIONS" not in shown  # it would say 1.00 for the number of partitions there is
    assert keys.as_document(uneven, (4, 8))["changes"] is None

    even = answer(sampled([], [], [250.0] * 4), capsys)
    assert "No partition has more than 1.2 times the mean." in even
    assert "PARTITIONS  MAX/MEAN LOAD" in even


def test_a_key_that_is_one_of_very_many_is_not_called_hot(capsys: pytest.CaptureFixture[str]) -> None:
    where = [int(p) for p in partitions_for([f"k{n}".encode() for n in range(3000)], 4)]
    crowd = sampled(where, [6.0 if p == 2 else 1.0 for p in where], [0.0] * 4)

    shown = answer(crowd, capsys)
    assert "No key stands out in the fullest partition" in shown
    assert "HOT PARTITION" not in shown

    heavy = sampled(where, [5000.0 if n == 7 else 1.0 for n in range(3000)], [0.0] * 4)
    assert answer(heavy, capsys).count("k7 ") == 1


def test_an_unknown_name_to_sort_by_is_answered_with_those_there_are() -> None:
    for records in ([{"group": "a", "lag": 1}], []):
        with pytest.raises(InputError, match="there are: group, lag"):
            Format(sort="lagg").chosen(records, ListColumns((), ("group", "lag")))


MODULES = (backtest, calibrate, keys, lag, mutes, replay, topics, watch)
LISTINGS = (assign.MEMBERS, assign.SIDE_BY_SIDE, plan.MOVES, *(module.LISTING for module in MODULES))


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_list_is_sorted_by_any_heading_and_any_field_as_they_are_typed(listing: ListColumns) -> None:
    records = [dict.fromkeys(listing.fields)]
    headings = [column.title for column in listing.columns]
    for name in (*listing.fields, *headings, *(h.lower().replace(" ", "-") for h in headings)):
        assert listing.sorted_by(name).removeprefix("-") in listing.fields
        assert Format(sort=name).chosen(records, listing) == records
        assert Format(sort=f"-{name}").chosen(records, listing) == records


def test_a_column_of_ages_is_sorted_for_the_longest_as_numbers_are() -> None:
    records = [{"group": "young", "opened_at": 2_000}, {"group": "old", "opened_at": 1_000}]

    def first(name: str) -> str:
        return str(Format(sort=name, top=1).chosen(records, watch.LISTING)[0]["group"])

    assert [first("OPEN FOR"), first("-open-for"), first("opened_at"), first("-opened_at")] == [
        "old",
        "young",
        "young",
        "old",
    ]


def test_the_header_of_csv_is_the_same_with_rows_and_without(rec: Any) -> None:
    message = rec("orders")
    lag_row = Row("g", "t", 0, 1, 0, 2, 1, 0, False, None, None, None, None)
    shown_group = ShownGroup(GroupDescription("g", "stable", "classic", "range", False), (lag_row,), 1.0)
    muted = Mutes({"main/orders": MuteRecord(until=2_000, by="ada")})
    tried = (Tried(1.25, 30.0, 0, 0, 0),)
    rows = (
        (watch.LISTING, Board().record(message, 0)),
        (replay.LISTING, replay._record(message, message.as_of)),
        (lag.LISTING, next(lag.records(shown_group))),
        (mutes.LISTING, next(mutes.mute_rows(muted, 1_000))),
        (topics.LISTING, asdict(TopicCheck("t", "ok"))),
        (calibrate.LISTING, calibrate.record(Proposal("main", "orders", tried[0], tried))),
        (backtest.LISTING, backtest._record(dict.fromkeys(RESULT.names, "{}"), with_messages=False)),
    )

    for listing, row in rows:
        assert sorted(row) == sorted(listing.fields)


def test_a_list_without_an_entry_is_a_header_in_csv() -> None:
    assert run("plan", "-o", "csv").splitlines() == ["id,topic,partition,lag,from,to"]
    assert run("assign", "--strategy", "range", "-o", "csv").splitlines() == [
        "id,member,partitions,lag,which"
    ]
    assert run("assign", "--strategy", "all", "-o", "csv").startswith("id,strategy,")


def test_a_plan_of_the_worker_has_the_moves_and_the_skew_of_the_story(rec: Any) -> None:
    moves = [{"topic": "t", "partition": p, "from": "m1", "to": "m2", "lag": 10} for p in (0, 1)]
    members = [
        {"member": "m1", "member_id": "1", "client_id": "c", "host": "h", "partitions": 4, "lag": 40, "work_now": 40.0, "work_after": 20.0},
        {"member": "m2", "member_id": "2", "client_id": "c", "host": "h", "partitions": 1, "lag": 0, "work_now": 0.0, "work_after": 20.0},
    ]  # fmt: skip
    message = rec("orders", moves=moves, move_count=2, members=members)
    story = {"group": "orders", "as_of": 5, "recommendation": message.model_dump(mode="json", by_alias=True)}
    found = worker_plan.document(story)

    assert (found["move_count"], found["skew"]) == (2, {"now": 2.5, "after": 1.1})
    assert [(m["from"], m["partition"]) for m in found["moves"]] == [("m1", 0), ("m1", 1)]
    assert found["greatest"]["now"] == 40.0
    assert worker_plan.held_after(found) == {"m1": 2, "m2": 3}


def test_a_plan_of_a_blind_group_says_that_it_is_not_judged_now(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "the pipeline is 56 records behind on __consumer_offsets-7"
    story = {"group": "orders", "as_of": 5, "verdict": "balanced", "skew": 1.0, "blind": reason}

    plan._print_judged(worker_plan.document(story), Format())

    said = capsys.readouterr().out
    assert f"kagent cannot judge this group now: {reason}." in said
    assert "not judged now: there is no plan" in said
    assert "balanced" not in said


def test_the_members_of_a_move_are_told_apart_from_all_others_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [f"dispatcher-consumer-{letter}-0123456789" for letter in "abc"]
    moves = [{"topic": "t" * 60, "partition": 1, "lag": 5, "from": members[0], "to": members[1]}]
    monkeypatch.setattr(output, "width", lambda wide=False: 60)

    plan._print_moves(moves, {member: member for member in members}, Format())

    row = capsys.readouterr().out.splitlines()[1]
    assert "…a-0123" in row
    assert "…b-0123" in row


def test_why_a_pair_is_proposed_is_said_without_a_riddle() -> None:
    none, some = Tried(1.25, 30.0, 0, 0, 0), Tried(1.25, 30.0, 3, 0, 0)

    assert (
        Proposal("main", "a", none, (none,)).sentence().endswith("that was tried would have opened nothing")
    )
    assert (
        "3 times, never for lateness that ended by itself" in Proposal("main", "a", some, (some,)).sentence()
    )
