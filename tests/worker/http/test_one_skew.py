"""One skew: list, explanation, detail, metrics and message of one judgement have the same numbers and the same moves."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.contract.recommendation import Recommendation, from_bytes
from kagent.worker.http.own import Own
from kagent.worker.http.server import own, view
from tests.worker.http.scene import Load, made

UNEVEN = Load("orders", 3, [400.0, 400.0, 400.0, 40.0, 40.0, 40.0], capacity=500.0)


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "unused:1")


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
