"""What kagent adds to Faust's rebalances."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import faust
import pytest
from faust.types import TP

from kagent.settings import Settings
from kagent.worker.faust_app import faust_app

ASSIGNED = {TP("kagent-group-events", 1), TP("kagent-verdicts-changelog", 1)}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate(
        {"clusters": {"main": {"bootstrap": "nowhere:1"}}, "worker": {"data": str(tmp_path)}}
    )


def test_a_worker_without_partitions_fetches_nothing_of_new_ones_before_it_has_taken_them_over(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[set[TP]] = []

    async def rebalanced(*_: Any) -> None:
        """Faust gives the partitions their streams."""

    async def scenario() -> None:
        app = faust_app(settings, settings.home_cluster("main"))
        consumer: Any = app.consumer
        assert consumer.flow_active, "as Faust leaves it where nothing was revoked"

        async def take_over(partitions: Iterable[int]) -> None:
            fetched.append(consumer._get_active_partitions() if consumer.flow_active else set())

        monkeypatch.setattr(app.outbox, "take_over", take_over)
        await consumer.on_partitions_assigned(ASSIGNED, 1)
        consumer._thread.thread_loop.close()  # of the thread that was never started

    monkeypatch.setattr(faust.App, "_on_partitions_assigned", rebalanced)
    asyncio.run(scenario())

    assert fetched == [set()]
