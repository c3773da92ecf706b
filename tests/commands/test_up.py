"""What `kagent up` runs side by side."""

from __future__ import annotations

import pytest

from kagent.commands.up import programs
from kagent.settings import load


def names() -> list[str]:
    return [p.name.strip() for p in programs(load(bootstrap="here:9092"), "main", "local[1]")]


def test_pipeline_and_worker_and_the_history_where_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names() == ["pipeline", "worker"]
    monkeypatch.setenv("KAGENT_PIPELINE__HISTORY", "/var/lib/kagent/history")

    assert names() == ["pipeline", "worker", "history"]
    assert programs(load(bootstrap="here:9092"), "main", "local[1]")[-1].argv[-2:] == ["history", "write"]
