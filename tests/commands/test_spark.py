"""Long work: Spark's lines go to a file, and what can be refused is refused before Spark starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kagent.cli import root
from kagent.commands.spark import log_path, stderr_to
from kagent.settings import Settings


def test_processes_started_meanwhile_write_to_the_log_and_later_ones_do_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "spark.log"
    speak = [sys.executable, "-c", "import sys; sys.stderr.write('noise')"]

    with stderr_to(log):
        subprocess.run(speak, check=True)
    assert (log.read_text(), capfd.readouterr().err) == ("noise", "")

    subprocess.run(speak, check=True)
    assert capfd.readouterr().err == "noise"


def test_the_log_lies_in_the_data_folder_or_where_it_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert log_path(Settings(data=str(tmp_path / "data"))) == tmp_path / "data" / "spark.log"
    assert log_path(Settings(data=str(tmp_path / "file"))).name == "kagent-spark.log"


@pytest.mark.parametrize("command", ["backtest", "calibrate", "report"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "No history is kept: set pipeline.history"), (("--path", "/nowhere"), "/nowhere does not exist"),
     (("--dump", "/nowhere.json"), "/nowhere.json does not exist")],
)  # fmt: skip
def test_what_is_missing_is_said_before_spark_starts(
    command: str, arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kagent.pipeline.spark_session.java", lambda: pytest.fail("Spark is being started"))

    answer = CliRunner().invoke(root, [command, *arguments])

    assert said in str(answer.exception)
