"""The table of open incidents: what is open, in what order, in colour, whatever its names are."""

from __future__ import annotations

import functools
import io
import json
import re
import time
from typing import Any

import pytest
from rich.console import Console

from kagent.client.incident_text import headline, skew_numbers, story
from kagent.client.watch_table import Board
from kagent.commands.output import Format
from kagent.commands.watch import _chosen, _json, _lines
from kagent.contract.admission import IncidentRow
from kagent.contract.mute import MuteRecord
from kagent.contract.recommendation import State
from kagent.text import shown
from kagent.worker.http.group_list import page
from kagent.worker.status import most_urgent

MINUTE = 60_000
ACTION = {"type": "follow_plan", "how": "Let the group follow the plan.", "feasible": "yes"}


def now() -> int:
    return int(time.time() * 1000)


def screen(board: Board, width: int = 140, height: int = 40, colours: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=colours, width=width, color_system="standard" if colours else None
    )
    console.print(board.screen(now(), width, height))
    return out.getvalue()


def state(**said: Any) -> State:
    usual = {"cluster": "main", "version": "1", "time": now(), "status": "watching", "judged": 7}
    return State.model_validate(usual | said)


def test_a_row_says_all_that_a_person_wants_first(rec: Any) -> None:
    board = Board()
    board.take(state())
    board.take(rec("orders", opened_at=now() - 5 * MINUTE, actions=[ACTION]))

    row = next(line for line in screen(board).splitlines() if "orders" in line)

    assert [cell.strip() for cell in row.split("  ") if cell.strip()] == [
        "orders", "ticket", "uneven work", "?", "?", "follow the plan", "5 min", "0 s ago", "2.50 → 1.10", "Let the group follow the plan."
    ]  # fmt: skip


def test_a_stuck_partition_of_a_member_that_does_well_is_late_and_has_a_holder(rec: Any) -> None:
    member = {
        "member": "m",
        "member_id": "m",
        "client_id": "m",
        "host": "h",
        "partitions": 2,
        "seconds_behind": 0.0,
        "work_now": 0.0,
    }
    members = [member | {"lag": 0}, member | {"member": "holder", "lag": 1220}]
    board = Board()
    board.take(
        rec("orders", verdict="stalled", members=members, evidence={"stands_s": 320}, actions=[ACTION])
    )

    row = next(line for line in screen(board).splitlines() if "orders" in line)

    assert "5 min" in row
    assert "holder" in row


def test_a_member_whose_records_stand_is_behind_by_them_though_they_are_no_work(rec: Any) -> None:
    stands = {**behind(268.0, lag=3634), "work_now": 0.0}
    message = rec(
        "one",
        verdict="stuck_member",
        members=[{**behind(0.0, lag=0), "work_now": 0.0}, stands],
        work_unit="seconds",
    )

    told = story(message)
    assert [line for line in told if "partitions" in line] == [
        "  m: 2 partitions, 3,634 records behind",
        "  m: 2 partitions, 0 s to process its lag",
    ]


def test_numbers_of_an_earlier_moment_are_called_so(rec: Any) -> None:
    board = Board()
    board.take(state())
    board.take(rec("old", at=-14 * 60, owner="team-a"))
    board.take(rec("young"))

    shown_lines = screen(board, width=80).splitlines()
    assert "old (owner: team-a, text from 14 min ago)" in shown_lines
    assert "young" in shown_lines
    assert "14 min ago" in next(line for line in screen(board, width=200).splitlines() if "old" in line)


def test_a_muted_incident_is_marked_at_80_columns_beside_the_longest_action(rec: Any) -> None:
    board = Board()
    board.take(state())
    longest = {"type": "add_partitions_or_rekey", "how": "Add partitions.", "feasible": "yes"}
    board.take(rec("x" * 60, actions=[longest]))
    board.take(rec("muted-one", actions=[longest]))
    board.mutes.take("main/muted-one", MuteRecord(until=now() + MINUTE, by="ada").to_bytes())

    row = next(line for line in screen(board, width=80).splitlines() if line.startswith("muted-one"))
    assert row.endswith(" muted")
    assert "uneven work" in row


def behind(seconds: float, lag: int = 5) -> dict[str, Any]:
    return {"member": "m", "partitions": 2, "lag": lag, "seconds_behind": seconds, "work_now": 1.0}


def test_the_urgent_come_first_and_what_ended_goes_below(rec: Any) -> None:
    board = Board()
    for message in (
        rec("late", opened_at=500, members=[behind(60.0)]),
        rec("young", severity="page"),
        rec("later", opened_at=1_000, members=[behind(300.0)]),
        rec("over"),
        rec("over", status="resolved", resolution="drained"),
        rec("never-open", status="resolved"),
    ):
        board.take(message)

    text = screen(board)

    assert [r.group for r in board.ranked()] == ["young", "later", "late"]
    assert (
        text.index("young")
        < text.index("later ")
        < text.index("late ")
        < text.index("ENDED")
        < text.index("over")
    )
    assert "drained" in text
    assert "never-open" not in text


def test_how_an_incident_ended_is_shown_whatever_the_name_and_the_width(rec: Any) -> None:
    board, name = Board(), "payments-settlement-reconciliation-processor-eu-central-1-v2"
    board.take(rec(name))
    board.take(rec(name, status="resolved", resolution="group_changed"))

    shown_lines = screen(board, width=80).splitlines()

    row = next(line for line in shown_lines if line.startswith("payments-"))
    assert "uneven work" in row
    assert "group changed" in row
    assert max(map(len, shown_lines)) <= 80


def test_severity_has_a_colour_on_a_terminal_and_none_elsewhere(rec: Any) -> None:
    board = Board()
    board.take(rec("a", severity="page"))

    assert "\x1b[1;31m" in screen(board, colours=True)
    assert "\x1b" not in screen(board)


def test_no_color_leaves_the_table_and_takes_the_colours(rec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board()
    board.take(state())
    board.take(rec("orders", severity="page"))
    shown_as = {}
    monkeypatch.setenv("TERM", "xterm-256color")
    for no_color in ("", "1"):
        monkeypatch.setenv("NO_COLOR", no_color)
        out = io.StringIO()
        Console(file=out, force_terminal=True, width=140).print(board.screen(now(), 140, 40))
        shown_as[no_color] = out.getvalue()

    assert re.search(r"\x1b\[[0-9;]*3[0-7]m", shown_as[""])
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown_as["1"])
    assert "uneven work" in shown_as["1"]


@pytest.mark.parametrize(
    "name", ["<script>[bold]", "x\x1b[2J\x1b]0;owned\x07", "n" * 32_000, "[/]", "\u202etxt", "a\nb\r"]
)
def test_a_name_is_shown_and_obeyed_by_nothing(rec: Any, name: str) -> None:
    board = Board()
    board.take(rec(name, cluster="main", reason=f"{name} is late", id="1"))

    text = screen(board, width=300, height=400)
    plain = [headline(board.ranked()[0], now()), *(shown(line, 4000) for line in story(board.ranked()[0]))]

    assert all(char.isprintable() or char == "\n" for char in text)
    assert all(line.isprintable() for line in plain)
    assert max(map(len, text.splitlines())) <= 300
    assert len(text) < 6_000
    assert shown(name, 64)[:12] in text


def test_what_does_not_fit_is_counted(rec: Any) -> None:
    board = Board()
    for n in range(500):
        board.take(rec(f"g{n}", id=str(n)))

    lines = screen(board, width=80, height=24).splitlines()

    assert len(lines) <= 24
    assert any(line.startswith("… and 4") for line in lines)


def test_the_most_urgent_are_told_in_words_with_their_whole_names(rec: Any) -> None:
    board = Board()
    name = "payments-settlement-reconciliation-processor-eu-central-1-v2"
    how = "Restart the consumer " + "with a rather long name, " * 30
    board.take(state())
    board.take(rec(name, severity="page", reason="c-1 is 15 min behind.", owner="team-payments",
                   actions=[ACTION | {"how": how}]))  # fmt: skip
    for n in range(50):
        board.take(rec(f"g{n}", id=str(n)))

    text = [line.rstrip() for line in screen(board, width=80, height=24).splitlines()]

    at = text.index(name)
    assert text[at + 1 : at + 4] == [
        "  owner: team-payments",
        "  c-1 is 15 min behind.",
        "  Do first: Restart the consumer with a rather long name, with a rather long",
    ]
    assert text[-1].endswith("…")
    assert len(text) == 23  # and the cursor's line: none is left empty
    assert any(line.startswith("… and ") for line in text)


def test_a_narrow_table_says_how_old_its_numbers_are(rec: Any) -> None:
    board = Board()
    board.take(state())
    board.take(rec("orders-and-payments-of-the-north", as_of=now() - 10 * MINUTE))

    text = screen(board, width=76, height=24)

    assert "Numbers are up to 10 min old; `kagent explain GROUP` has newer ones." in text
    assert "AS OF" in screen(board, width=200, height=24)
    assert "Numbers are up to" not in screen(board, width=200, height=24)


def test_a_command_in_the_words_is_not_broken(rec: Any) -> None:
    how = "Let the group follow the plan: orders-3 to orders-b-4/127.0.0.1. Run `kagent apply billing --cluster main`."
    board = Board()
    board.take(rec("orders", actions=[ACTION | {"how": how}]))

    assert any(
        "`kagent apply billing --cluster main`" in line for line in screen(board, width=80).splitlines()
    )


@pytest.mark.parametrize("width", [80, 120])
def test_of_what_kagent_cannot_see_it_promises_no_newer_numbers(rec: Any, width: int) -> None:
    board, seen_at = Board(), now() - 20_000
    board.take(state())
    for name in ("x" * 60, "y" * 60):
        board.take(rec(name, id=name, as_of=now() - 14 * MINUTE))
    # The latest state message before the cluster became blind: later than the messages.
    board.take(
        state(incidents=[{"id": n * 60, "as_of": seen_at, "seconds_behind": 30, "lag": 1} for n in "xy"])
    )
    board.take(state(status="blind", reason="the pipeline stopped", incidents=[]))

    text = screen(board, width)
    assert "Numbers are up to" not in text
    assert "text from 14 min ago" in text
    assert "30 s" in row_of(board, "xx", width)

    two_min = 2 * MINUTE
    later = "\n".join(str(line) for line in board.table(now() + two_min, 80))
    assert "Numbers are up to 2 min old; kagent has no newer ones now." in later
    assert "explain" not in later


def test_where_some_groups_are_blind_newer_numbers_are_promised_of_the_others(rec: Any) -> None:
    board = Board()
    board.take(state())
    board.take(rec("seen", as_of=now() - 5 * MINUTE))
    board.take(rec("blind", as_of=now() - 14 * MINUTE, stale=True))

    note = "Numbers are up to 14 min old; unless blind, see `kagent explain GROUP`."
    assert note in screen(board, width=80)


WORDS = ("page", "ticket", "muted", "blind", "stale")


def words(row: str) -> set[str]:
    return {word for word in WORDS if re.search(rf"\b{word}\b", row)}


LONGEST_ACTION = {"type": "add_partitions_or_rekey", "how": "Add partitions.", "feasible": "no"}


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("end", ["x", "-eu-central-1-v2"])
@pytest.mark.parametrize("verdict", ["rebalance", "blocked_by_transaction"])
def test_every_row_says_by_a_word_whether_it_pages_is_muted_and_is_blind(
    rec: Any, width: int, end: str, verdict: str
) -> None:
    board, names = Board(), {letter: (letter * 60)[: 60 - len(end)] + end for letter in "abc"}
    board.take(state())
    member = {
        "member": f"{'m' * 60}/10.0.0.1",
        "partitions": 2,
        "lag": 12_345_678,
        "seconds_behind": 900.0,
        "work_now": 1.0,
    }
    more = {"actions": [LONGEST_ACTION], "verdict": verdict, "members": [member]}
    board.take(rec(names["a"], severity="page", **more))
    board.take(rec(names["b"], severity="ticket", **more))
    board.take(rec(names["c"], severity="page", stale=True, **more))
    board.mutes.take(f"main/{names['b']}", MuteRecord(until=now() + MINUTE, by="ada").to_bytes())

    assert max(map(len, screen(board, width).splitlines())) <= width
    rows = {letter: row_of(board, letter * 3, width) for letter in "abc"}
    assert [words(rows[letter]) for letter in "abc"] == [{"page"}, {"ticket", "muted"}, {"page", "blind"}]
    for row in rows.values():
        assert "15 min" in row
        assert "add partitions or re-key (not feasible)" in row

    board.take(state(status="blind", reason="the pipeline stopped"))
    assert [words(row_of(board, letter * 3, width)) for letter in "abc"] == [
        {"page", "blind"},
        {"ticket", "muted", "blind"},
        {"page", "blind"},
    ]
    board.take(state(time=now() - 10 * MINUTE))
    assert words(row_of(board, "aaa", width)) == {"page", "stale"}
    assert board.record(board.open[f"main/{names['a']}"], now())["blind"]


@pytest.mark.parametrize("width", [120, 200])
def test_until_when_a_group_is_muted_costs_neither_severity_nor_member(rec: Any, width: int) -> None:
    board = Board()
    board.take(state())
    member = {"member": "m-1/10.0.0.1", "partitions": 2, "lag": 9, "seconds_behind": 900.0, "work_now": 1.0}
    for name in ("orders", "payments"):
        board.take(rec(name, actions=[ACTION], members=[member]))
    before = screen(board, width).splitlines()[2]
    board.mutes.take("main/orders", MuteRecord(until=now() + MINUTE, by="ada").to_bytes())

    header = screen(board, width).splitlines()[2]

    assert {"GROUP", "WHY", "BEHIND", "WHO", "ACTION", "NOTE"} <= set(header.split())
    assert "ticket" in row_of(board, "orders", width)
    assert set(header.split()) - {"NOTE", "SEV"} <= set(before.split())
    assert "muted until" in row_of(board, "orders", width)


def test_muted_incidents_are_told_after_all_others(rec: Any) -> None:
    board = Board()
    board.take(state())
    board.take(rec("orders", severity="page", reason="orders-1 is 15 min behind."))
    board.take(rec("payments", reason="payments-1 is 15 min behind."))
    board.mutes.take("main/orders", MuteRecord(until=now() + MINUTE, by="ada").to_bytes())

    text = screen(board, 80)

    assert [r.group for r in board.ranked()] == ["orders", "payments"]
    assert text.index("payments-1 is") < text.index("orders-1 is")
    assert re.search(r"^orders \(muted until \d\d:\d\d\)", text, re.MULTILINE)


def test_incidents_in_words_fill_the_lines_that_are_free(rec: Any) -> None:
    board = Board()
    board.take(state())
    command = "`kagent apply parcels-b --config /etc/kagent/settings.yaml --cluster main`"
    for n in range(5):
        name = f"service-customer-{'abcde'[n]}-{'z' * 34}-eu-we{n}"
        how = f"Let the group follow the plan: parcels-3 to parcels-b-4/127.0.0.1 and 1 more. Run {command}."
        member = {"member": "m", "partitions": 2, "lag": 9, "seconds_behind": 900.0 - n, "work_now": 1.0}
        reason = "parcels-b-1/127.0.0.1 holds 96% of the group's backlog and is 26 s behind (skew 3.85)."
        board.take(rec(name, id=str(n), actions=[ACTION | {"how": how}], members=[member], reason=reason))
    names = [rec.group for rec in board.ranked()]

    for height in range(18, 60):
        text = [line.rstrip() for line in screen(board, 80, height).splitlines()]
        assert len(text) < height
        told = [at for at, line in enumerate(text) if line in names]
        assert [text[at] for at in told] == names[: len(told)]
        # Whole but for the last one, and no more than a line with the blank one before it is left.
        assert sum(command in line for line in text) >= len(told) - 1
        assert len(told) == 5 or height - 1 - len(text) <= 2
    assert (len(told), sum(command in line for line in text)) == (5, 5)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_wide_shortens_and_leaves_out_nothing_on_a_narrow_terminal(rec: Any, width: int) -> None:
    board = Board()
    board.take(state())
    name, how = "n" * 59, "Add partitions, " * 30 + "and so on."
    member = {
        "member": f"{'m' * 50}-1/10.0.0.1",
        "partitions": 2,
        "lag": 12_345,
        "seconds_behind": 900.0,
        "work_now": 1.0,
    }
    more = {"owner": "team-payments", "members": [member], "actions": [LONGEST_ACTION | {"how": how}]}
    for end in "ab":
        board.take(rec(name + end, as_of=now() - 2 * MINUTE, **more))

    out = io.StringIO()
    Console(file=out, width=width).print(board.screen(now(), width, 100, wide=True))
    text = [line.rstrip() for line in out.getvalue().splitlines()]
    whole = " ".join(" ".join(text).split())

    assert max(map(len, text)) <= width
    assert "…" not in whole
    for told in (
        name + "a",
        name + "b",
        "m" * 50,
        how,
        "team-payments",
        "12,345",
        "2 min ago",
        "15 min",
        "skew: 2.50",
    ):
        assert told in whole


def test_wide_is_the_table_where_it_has_room_and_counts_what_does_not_fit(rec: Any) -> None:
    board = Board()
    board.take(state())
    for n in range(30):
        board.take(rec(f"g{n}", id=str(n)))

    def wide(width: int, height: int) -> list[str]:
        out = io.StringIO()
        Console(file=out, width=width).print(board.screen(now(), width, height, wide=True))
        return out.getvalue().splitlines()

    assert wide(200, 40)[2].startswith("GROUP")
    narrow = wide(40, 24)
    assert len(narrow) < 24
    assert narrow[-1].startswith("… and 2")


def test_silence_is_not_taken_for_health(rec: Any) -> None:
    board = Board()
    assert "No state message has come" in screen(board)

    board.take(state(time=now() - 10 * MINUTE))
    assert "no worker has reported for 10 min" in screen(board)

    board.take(state(status="blind", reason="the pipeline stopped"))
    assert "main is blind: the pipeline stopped" in screen(board)


def test_lines_tell_that_kagent_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    show = _lines(Console(width=300))
    for message in (state(time=now() - 10 * MINUTE), state(), state(), state(status="blind", reason="why")):
        show(message)

    said = capsys.readouterr().out.splitlines()
    assert ["no worker has reported" in said[0], "is watched" in said[1], "is blind: why" in said[2]] == [
        True,
        True,
        True,
    ]
    assert len(said) == 3


def test_before_the_topic_is_read_to_its_end_nothing_is_claimed(rec: Any) -> None:
    board = Board(is_read=False)
    board.take(rec("late"))

    assert screen(board).strip() == "Reading what is open now …"


def test_a_first_action_is_told_whole_where_the_screen_has_room(rec: Any) -> None:
    classes = [f"org.apache.kafka.clients.consumer.{name}Assignor" for name in ("RoundRobin", "Range")]
    how = f"Set partition.assignment.strategy={','.join(classes)} in every consumer, and restart them one by one."
    board = Board()
    board.take(rec("orders", actions=[ACTION | {"how": how}]))

    text = screen(board, width=80)

    assert all(name in text.replace("\n  ", "") for name in classes)
    assert "one by one." in text
    assert "…" not in text


@pytest.mark.parametrize("name", ["stands_s", "behind_s"])
def test_a_group_without_rows_of_members_is_as_late_as_its_evidence_says(rec: Any, name: str) -> None:
    board = Board()
    board.take(rec("orders", members=[], evidence={name: 320}, actions=[ACTION]))

    assert "5 min" in next(line for line in screen(board).splitlines() if "orders" in line)


def test_a_line_says_how_old_its_numbers_are_and_what_is_beside_them(rec: Any) -> None:
    message = rec("orders")

    assert "numbers from" not in headline(message, message.as_of + 59_000)
    assert headline(message, message.as_of + 20 * 60_000, "muted until 01:59").endswith(
        ", numbers from 20 min ago, muted until 01:59"
    )


def numbers(rec: Any, as_of: int, behind: float | None, lag: int | None = 5) -> dict[str, Any]:
    return {"id": rec.id, "as_of": as_of, "seconds_behind": behind, "lag": lag}


def row_of(board: Board, group: str, width: int = 200) -> str:
    return next(line for line in screen(board, width).splitlines() if line.startswith(group))


def test_the_newest_of_message_and_state_says_how_late_a_group_is(rec: Any) -> None:
    board, published = Board(), now() - 8 * MINUTE
    member = {"member": "m", "partitions": 2, "lag": 900, "seconds_behind": 28.0, "work_now": 1.0}
    message = rec("orders", opened_at=published, as_of=published, actions=[ACTION], members=[member])
    board.take(message)
    board.take(state(incidents=[numbers(message, published - MINUTE, 5.0)]))
    assert "28 s" in row_of(board, "orders")
    assert "Numbers are up to 8 min old" in screen(board, 60)

    board.take(state(incidents=[numbers(message, now(), 139.7, 4_321)]))
    row = row_of(board, "orders")
    assert "2 min " in row
    assert "4,321" in row
    assert "0 s ago" in row
    assert "Numbers are up to" not in screen(board, 60)
    assert "orders (text from 8 min ago)" in screen(board, 60)
    record = board.record(message, now())
    assert (record["seconds_behind"], record["backlog"]) == (139.7, 4_321)
    assert now() - record["as_of"] < MINUTE
    assert board.line_note(message, now()) == "now 2 min behind"


def test_a_state_of_an_older_release_leaves_the_messages_numbers(rec: Any) -> None:
    board = Board()
    board.take(state())
    board.take(message := rec("orders", as_of=now(), actions=[ACTION]))

    assert board.newest(message).as_of == message.as_of
    assert board.line_note(message, now()) == ""


@pytest.mark.parametrize("width", [80, 120, 200])
def test_an_action_that_may_not_be_feasible_says_so_at_every_width(rec: Any, width: int) -> None:
    board, action = (
        Board(),
        {"type": "add_partitions_or_rekey", "how": "Add partitions.", "feasible": "unknown"},
    )
    board.take(state())
    board.take(rec("payments-settlement-reconciliation-processor-eu-central-1-v2", actions=[action]))

    assert "(perhaps)" in row_of(board, "payments", width)


@pytest.mark.parametrize(
    ("action", "skew", "shown_skew"),
    [
        ({"type": "follow_plan"}, {"now": 2.95, "after": 1.52}, "2.95 → 1.52"),
        ({"type": "follow_plan"}, {"now": 2.99, "after": 3.0}, "2.99"),
        ({"type": "restart_member"}, {"now": 2.95, "after": 1.52}, "2.95"),
        ({"type": "switch_assignor", "params": {"strategy": "sticky"}}, {"now": 2.95, "after": 1.1}, "2.95 → 1.52"),
        ({"type": "switch_assignor", "params": {"strategy": "range"}}, {"now": 2.95, "after": 1.1}, "2.95"),
    ],
)  # fmt: skip
def test_the_skew_after_is_that_of_the_first_action(
    rec: Any, action: dict[str, Any], skew: dict[str, float], shown_skew: str
) -> None:
    options = [{"strategy": "sticky", "skew": 1.52, "moves": 4}]
    first = {"how": "Do it.", "feasible": "yes", **action}

    assert skew_numbers(rec("orders", skew=skew, actions=[first], alternatives=options)) == shown_skew


def test_without_an_action_the_skew_is_that_of_now(rec: Any) -> None:
    assert skew_numbers(rec("orders", skew={"now": 2.95, "after": 1.52}, actions=[])) == "2.95"


def test_json_says_until_when_an_incident_is_muted(rec: Any, capsys: pytest.CaptureFixture[str]) -> None:
    board, until = Board(), now() + 60 * MINUTE
    board.mutes.take("main/orders", MuteRecord(until=until, by="ada").to_bytes())
    show = _json(board)
    for message in (rec("orders"), rec("payments"), state()):
        show(message)

    orders, payments, said = map(json.loads, capsys.readouterr().out.splitlines())
    assert (orders["muted_until"], payments["muted_until"]) == (until, None)
    assert said["type"] == "state"


@pytest.mark.parametrize(
    ("sort", "top", "expected"),
    [
        (None, None, ["late", "later", "latest-but-a-ticket"]),
        (None, 1, ["late"]),
        ("behind", None, ["latest-but-a-ticket", "later", "late"]),
        ("-seconds_behind", 2, ["late", "later"]),
        ("group", 1, ["late"]),
    ],
)
def test_the_order_and_the_number_asked_for_hold_while_the_table_is_live(
    rec: Any, sort: str | None, top: int | None, expected: list[str]
) -> None:
    board = Board()
    board.choose = functools.partial(_chosen, board, Format(sort=sort, top=top))
    board.take(state())
    board.take(rec("later", members=[behind(120.0)], severity="page" if sort is None else "ticket"))
    board.take(rec("latest-but-a-ticket", members=[behind(900.0)]))
    board.take(rec("late", members=[behind(240.0 if sort is None else 60.0)], severity="page"))

    assert [r.group for r in board.ranked()] == expected
    rows = [line.split()[0] for line in screen(board).splitlines()[3 : 3 + len(expected)]]
    assert rows == expected


def test_the_table_the_state_message_and_the_list_of_groups_have_one_order(rec: Any) -> None:
    """Severity, then delay by the newest numbers, then the backlog."""
    board = Board()
    given = {
        "a": ("ticket", 900.0, 5),
        "b": ("page", 10.0, 5),
        "c": ("page", 60.0, 5),
        "d": ("page", 60.0, 50),
        "e": ("info", 5.0, 5),
    }
    for name, (severity, *_) in given.items():
        board.take(rec(name, id=name, severity=severity, as_of=now() - MINUTE, members=[behind(1.0)]))
    rows = [IncidentRow(name, severity, now(), s, lag) for name, (severity, s, lag) in given.items()]
    board.take(state(incidents=[numbers_of(row) for row in rows]))
    listed = [
        {
            "cluster": "main",
            "group": row.id,
            "condition": "open",
            "incident": {"severity": row.severity},
            "seconds_behind": row.seconds_behind,
            "lag_records": row.lag,
        }
        for row in rows
    ]

    expected = ["d", "c", "b", "a", "e"]
    assert [r.group for r in board.ranked()] == expected
    assert [row.id for row in most_urgent(rows)] == expected
    assert [row["group"] for row in page(listed, 0, 9)] == expected


def numbers_of(row: IncidentRow) -> dict[str, Any]:
    return {"id": row.id, "as_of": row.as_of, "seconds_behind": row.seconds_behind, "lag": row.lag}


def test_advice_for_a_group_that_has_changed_since_says_so_at_every_width(rec: Any) -> None:
    board = Board()
    board.take(rec("orders", status="superseded", actions=[ACTION]))
    board.take(state())

    assert all("superseded" in screen(board, width) for width in (80, 120, 200))
    assert "its advice no longer applies" in screen(board, 200)


def test_no_command_of_superseded_advice_is_printed(rec: Any) -> None:
    """The record has been passed: to skip it now would set the group back."""
    skip = {
        **ACTION,
        "type": "skip_or_fix_record",
        "how": "kafka-consumer-groups.sh --to-offset 23856 --execute",
    }
    moves = [{"topic": "t", "partition": 0, "from": "a", "to": "b"}]
    ended = rec("orders", status="superseded", actions=[skip], moves=moves, move_count=1)
    board = Board()
    board.take(ended)
    board.take(state())
    printed = "\n".join(
        [headline(ended, now()), *story(ended), *(screen(board, width) for width in (80, 200))]
    )

    assert "advice no longer applies" in headline(ended, now())
    assert "do not act on this any more" in story(ended)[0]
    assert "--execute" not in printed
    assert "move t-0" not in printed
