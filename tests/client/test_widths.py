"""What a person sees at 80, 120 and 200 columns, with names of 60 characters: files under ``snapshots`` hold it.

``KAGENT_SNAPSHOTS=write`` is not read on purpose: after a change that is meant, remove the file and run the test twice.
"""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from kagent.client.watch_table import Board
from kagent.commands.lag import COLUMNS, _cells
from kagent.contract.mute import MuteRecord
from kagent.contract.recommendation import State
from kagent.kafka.group_lag import Row
from kagent.text_table import lines
from tests.fixtures.snapshots import held

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (80, 120, 200)
NOW = 1_760_000_000_000
MINUTE = 60_000
LONG = "payments-settlement-reconciliation-processor-eu-central-1-v2"
HOST = "10.20.30.40"


def member(name: str, behind: float, lag: int) -> dict[str, Any]:
    return {"member": name, "partitions": 5, "lag": lag, "seconds_behind": behind, "work_now": behind}


@pytest.fixture
def board(rec: Any, monkeypatch: pytest.MonkeyPatch) -> Board:
    monkeypatch.setattr("kagent.client.watch_table.clock", lambda ms: "21:40")
    monkeypatch.setattr("kagent.client.incident_text.clock", lambda ms: "21:40")
    board = Board()
    state = {
        "cluster": "main",
        "version": "1",
        "time": NOW,
        "status": "watching",
        "judged": 14,
        "learning": 12,
    }
    board.take(
        State.model_validate(state | {"learning_until": NOW, "muted": 1, "ignored": 3, "open": 3, "blind": 1})
    )
    follow = {
        "type": "follow_plan",
        "how": "Let the group follow the plan: move orders-2 to consumer-2.",
        "feasible": "yes",
    }
    restart = {"type": "restart_member", "how": f"Restart the consumer {LONG}-3.", "feasible": "unknown"}
    board.take(
        rec(LONG, opened_at=NOW - 125 * MINUTE, as_of=NOW - 4 * MINUTE, severity="page", verdict="stuck_member", actions=[restart],
            members=[member(f"{LONG}-3/{HOST}", 7500.0, 1_250_000), member("b", 0.0, 10)], owner="team-payments")
    )  # fmt: skip
    board.take(
        rec("orders", opened_at=NOW - 5 * MINUTE, as_of=NOW - 5 * MINUTE, actions=[follow], skew={"now": 3.87, "after": 1.33},
            members=[member("orders-1/10.0.0.7", 900.0, 36_000), member("orders-2/10.0.0.8", 12.0, 480)])
    )  # fmt: skip
    board.take(
        rec("reports", opened_at=NOW - 30_000, as_of=NOW - 30_000, stale=True, members=[], skew={"now": None})
    )
    board.mutes.take("main/orders", MuteRecord(until=NOW + MINUTE, by="ada").to_bytes())
    return board


def screen(board: Board, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(board.screen(NOW, width, 40))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("width", WIDTHS)
def test_watch(board: Board, width: int) -> None:
    text = screen(board, width)

    assert max(map(cell_len, text.splitlines())) <= width
    held(SNAPSHOTS, f"watch-{width}", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_width_answers_who_is_late_by_how_much_and_what_to_do_first(board: Board, width: int) -> None:
    header, first, *_ = [
        line for line in screen(board, width).splitlines() if line.startswith(("GROUP", "payments"))
    ]

    assert all(title in header for title in ("GROUP", "WHY", "BEHIND", "FIRST ACTION"))
    assert all(words in first for words in ("2 h", "stuck member", "restart a member"))


@pytest.mark.parametrize("width", WIDTHS)
def test_lag(width: int) -> None:
    usual: Any = {"log_start": 0, "lost": 0, "void": False, "instance_id": None}
    rows = [
        Row(LONG, f"{LONG}-events", 11, 1_234_567, log_end=1_999_999, lag=765_432, member_id=f"{LONG}-3-2f0e2d6c", client_id=f"{LONG}-3", host=f"/{HOST}", **usual),
        Row(LONG, "orders", 0, None, log_end=5, lag=None, member_id=None, client_id=None, host=None, **usual),
    ]  # fmt: skip
    text = "\n".join(lines(COLUMNS, [_cells(asdict(row)) for row in rows], width)) + "\n"

    assert max(map(cell_len, text.splitlines())) <= width
    held(SNAPSHOTS, f"lag-{width}", text)
