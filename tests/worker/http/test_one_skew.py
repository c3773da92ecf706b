"""One skew: list, explanation, detail, metrics and message of one judgement have the same numbers and the same moves."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from kagent.cli import root
from kagent.client.incident_text import headline
from kagent.client.watch_table import Board
from kagent.contract.recommendation import Recommendation, from_bytes
from kagent.worker.http.own import Own
from kagent.worker.http.server import own, view
from kagent.worker.status import state_message
from tests.worker.http.scene import Load, made

UNEVEN = Load("orders", 3, [400.0, 400.0, 400.0, 40.0, 40.0, 40.0], capacity=500.0)


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")


async def published() -> tuple[Any, Recommendation]:
    """A worker in the moment in which it publishes its first recommendation, and that message."""
    scene = made([UNEVEN], minutes=60)
    for _ in range(240):
        await scene.step()
        for _, value in scene.sent:
            message = from_bytes(value) if value else None
            if isinstance(message, Recommendation):
                return scene.worker, message
    pytest.fail("nothing was published within 40 minutes of the scene")


async def test_all_show_the_skew_and_the_moves_of_the_message() -> None:
    worker, message = await published()
    desk = worker.desk
    (row,) = desk.live.rows[0].values()
    (found,) = (await own(desk, [0], "orders")).partitions[0]
    (sample,) = (await view(desk, True)).groups
    detail = (await Own(desk, lambda: {0}).answer("group", {"group": "orders"}))["details"][0]
    explained, draft = found["story"]["recommendation"], detail.draft

    assert message.skew.now is not None
    assert message.skew.now > 1.5
    assert [row.skew, found["story"]["skew"], explained["skew"]["now"], draft["skew"]["now"]] == [
        message.skew.now
    ] * 4
    assert [round(sample.skew or 0.0, 3), round(found["skew"], 3)] == [message.skew.now] * 2
    assert [explained["skew"]["after"], draft["skew"]["after"]] == [message.skew.after] * 2
    moves = [move.model_dump(by_alias=True) for move in message.moves]
    assert moves
    assert explained["moves"] == moves
    assert draft["moves"] == moves


async def test_the_state_message_carries_the_numbers_of_now() -> None:
    worker, message = await published()
    (row,) = worker.desk.live.rows[0].values()
    summary = worker.desk.live.summaries["main", 0]
    (numbers,) = state_message("main", [summary], 1, summary.time, 10).incidents

    assert (numbers.id, numbers.as_of) == (message.id, summary.time)
    assert (numbers.seconds_behind, numbers.lag) == (row.seconds_behind, row.lag_records)
    assert numbers.lag


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command where a worker answers with this story."""

    def run(story: dict[str, Any], *arguments: str) -> str:
        answered = orjson.loads(orjson.dumps(story, default=str))
        monkeypatch.setattr("kagent.commands.explain.worker_story", lambda *_: answered)
        answer = CliRunner().invoke(root, ["-b", "127.0.0.1:1", *arguments])
        assert answer.exit_code == 0, answer.exception
        return answer.output

    return run


async def test_the_commands_print_the_skew_and_the_moves_of_the_message(printed: Any) -> None:
    worker, message = await published()
    (found,) = (await own(worker.desk, [0], "orders")).partitions[0]
    story, board = found["story"], Board()
    board.take(message)
    now, after = message.skew.now, message.skew.after
    assert now is not None
    assert after is not None
    both = f"{now:.2f} → {after:.2f}"

    plan = json.loads(printed(story, "plan", "orders", "--json"))
    assert plan["skew"] == {"now": now, "after": after}
    assert plan["moves"] == [move.model_dump(by_alias=True) for move in message.moves]
    assert plan["move_count"] == message.move_count
    assert f"skew {both}" in printed(story, "plan", "orders")

    explained = json.loads(printed(story, "explain", "orders", "--json"))["recommendation"]
    assert (explained["skew"]["now"], explained["skew"]["after"]) == (now, after)
    assert both in printed(story, "explain", "orders")

    (row,) = (board.record(rec, message.as_of) for rec in board.ranked())
    assert row["skew"] == now
    assert both in headline(message, message.as_of)
