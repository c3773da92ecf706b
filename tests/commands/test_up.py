"""What `kagent up` runs side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from kagent.client.incident_text import clock
from kagent.commands.up import introduction, log_file, programs, state, writer
from kagent.contract.recommendation import State
from kagent.errors import KagentError
from kagent.policy import Policy
from kagent.settings import load


def names() -> list[str]:
    return [p.name.strip() for p in programs(load(bootstrap="here:9092"), "main", "local[1]")]


def test_pipeline_and_worker_and_the_history_where_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names() == ["pipeline", "worker"]
    monkeypatch.setenv("KAGENT_PIPELINE__HISTORY", "/var/lib/kagent/history")

    assert names() == ["pipeline", "worker", "history"]
    assert programs(load(bootstrap="here:9092"), "main", "local[1]")[-1].argv[-2:] == ["history", "write"]


def test_it_says_where_everything_is_and_what_to_do_next(tmp_path: Path) -> None:
    settings = load(bootstrap="here:9092")
    _, cluster = settings.cluster()
    lines = dict(
        line.split(None, 1) for line in introduction(settings, "main", cluster, None, tmp_path / "up.log")
    )

    assert lines["cluster"] == "main at here:9092"
    assert lines["page"] == "http://127.0.0.1:6066/"
    assert lines["metrics"] == "http://127.0.0.1:6066/metrics"
    assert lines["data"] == settings.data
    assert lines["log"] == str(tmp_path / "up.log")
    assert lines["next"] == "kagent watch -b here:9092"


def test_banners_go_to_the_log_and_problems_to_the_terminal(tmp_path: Path) -> None:
    printed: list[str] = []
    with log_file(tmp_path / "data") as (path, log):
        write = writer(log, False, printed.append)
        for line in (
            "worker   | +ƒaµS† v0.15",
            "pipeline | WARN NativeCodeLoader",
            "pipeline | ERROR disk full",
            "worker   | [ERROR] Topic kagent-lag-changelog not found in cluster metadata",
            "worker   | [ERROR] [^---ConsumerThread]: Thread keepalive is not responding...",
            "pipeline | WARNING: Using incubator modules: jdk.incubator.vector",
            "worker   | [WARNING] Got error produce response, retrying",
            "pipeline | 2026-11-22 INFO kagent.pipeline: Reading",
            "pipeline | 2026-11-22 WARNING kagent.pipeline: The stream stopped",
        ):
            write(line)

        writer(log, False, printed.append, lambda: True)("pipeline | ERROR the task was interrupted")

    assert printed == [
        "pipeline | ERROR disk full",
        "pipeline | 2026-11-22 WARNING kagent.pipeline: The stream stopped",
    ]
    assert len(path.read_text().splitlines()) == 10


def test_what_is_waited_for_at_the_start_is_no_fault() -> None:
    about = {
        "cluster": "main",
        "version": "1",
        "status": "blind",
        "reason": "no progress has come",
        "judged": 0,
    }
    early, late = (State.model_validate(about | {"time": 1_000_000 + at}) for at in (60_000, 600_000))

    assert "waits for the pipeline" in state(early, 1_000_000, Policy())
    assert "waits for the pipeline" in state(
        early.model_copy(update={"oldest_progress": 999_000}), 1_000_000, Policy()
    )
    assert "main is blind" in state(
        early.model_copy(update={"oldest_progress": 1_001_000}), 1_000_000, Policy()
    )
    assert "main is blind: no progress has come" in state(late, 1_000_000, Policy())


def test_new_groups_are_not_called_healthy() -> None:
    learning = State.model_validate(
        {
            "cluster": "main",
            "version": "1",
            "status": "watching",
            "judged": 3,
            "learning": 3,
            "time": 1_000_000,
        }
        | {"oldest_progress": 1_000_000, "learning_until": 4_600_000}
    )

    assert "3 groups judged (all learning until " in state(learning, 900_000, Policy())
    assert "reports incidents only on more evidence" in state(learning, 900_000, Policy())


def test_the_first_verdicts_are_announced_until_their_time_is_over() -> None:
    about = {"cluster": "main", "version": "1", "status": "watching", "judged": 3, "learning": 3}
    times = {"oldest_progress": 1_000_000, "learning_until": 4_600_000}
    early, late = (State.model_validate(about | times | {"time": time}) for time in (1_000_000, 1_700_000))

    assert f"First verdicts are expected by {clock(1_600_000)}." in state(early, 900_000, Policy())
    assert "First verdicts" not in state(late, 900_000, Policy())
    assert "First verdicts" not in state(early.model_copy(update={"open": 1}), 900_000, Policy())


def test_a_data_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(KagentError, match="set `data` or KAGENT_DATA"), log_file(tmp_path / "file"):
        pass


@pytest.mark.parametrize("old", [True, False])
def test_data_lies_in_one_folder_unless_an_older_kagent_kept_it_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAGENT_DATA", "/var/lib/kagent")
    if old:
        (tmp_path / "kagent-checkpoint").mkdir()

    settings = load()

    assert settings.pipeline.checkpoint == ("kagent-checkpoint" if old else "/var/lib/kagent/checkpoint")
    assert settings.worker.data == "/var/lib/kagent/worker"
