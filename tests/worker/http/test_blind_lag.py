"""The lag of a group to which kagent is blind is of the time at which its commits were last known, everywhere, and says so."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from kagent.incident.explanation_text import lines
from kagent.worker.http.metrics import exposition
from kagent.worker.http.server import own, view
from tests.worker.http.scene import Load, Scene, made

BLIND_S = 300.0


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")


@pytest.fixture
async def stopped() -> tuple[Scene, Any, float]:
    """A group that is caught up, its row when its pipeline stopped, and the time of that, s; log ends are read on for five minutes."""
    scene = made([Load("orders", 2, [18.0, 18.0])], minutes=35)
    for _ in range(60):
        await scene.step()
    row, at_s = scene.worker.desk.live.rows[0]["main/orders"], scene.clock_s
    scene.heard = False
    while scene.clock_s < at_s + BLIND_S:
        await scene.step()
    return scene, row, at_s


async def lags(scene: Scene) -> dict[str, float]:
    """The metrics of one group that have one series."""
    body = exposition(await view(scene.worker.desk, True)).decode()
    return {
        s.name: s.value for family in parsed(body) for s in family.samples if "group" in "".join(s.labels)
    }


async def test_the_row_keeps_the_lag_and_says_of_when_it_is(stopped: tuple[Scene, Any, float]) -> None:
    scene, before, at_s = stopped
    row = scene.worker.desk.live.rows[0]["main/orders"]

    assert (row.condition, row.seconds_behind) == ("blind", None)
    assert row.lag_records == before.lag_records
    assert row.as_of_ms == pytest.approx(at_s * 1000, abs=1000)


async def test_the_metrics_keep_the_lag_and_say_of_when_it_is(stopped: tuple[Scene, Any, float]) -> None:
    scene, before, at_s = stopped
    found = await lags(scene)

    assert found["kafka_consumergroup_group_sum_lag"] == before.lag_records
    assert found["kafka_consumergroup_group_max_lag_seconds"] < 60
    assert found["kagent_group_as_of_seconds"] == pytest.approx(at_s, abs=1)


async def test_the_explanation_says_how_old_its_figures_are(stopped: tuple[Scene, Any, float]) -> None:
    scene, before, _ = stopped
    (found,) = (await own(scene.worker.desk, [0], "orders")).partitions[0]
    story: dict[str, Any] = orjson.loads(orjson.dumps(found["story"]))

    assert sum(topic["lag"] for topic in story["topics"]) == before.lag_records
    assert any(line.endswith(" What follows is as it was 5 min ago.") for line in lines(story))


async def test_once_it_is_seen_again_the_lag_is_of_now(stopped: tuple[Scene, Any, float]) -> None:
    scene, _, at_s = stopped
    scene.heard = True
    for _ in range(10):
        await scene.step()

    assert "kagent_group_as_of_seconds" not in await lags(scene)
    assert (scene.worker.desk.live.rows[0]["main/orders"].as_of_ms or 0) > (at_s + BLIND_S) * 1000
