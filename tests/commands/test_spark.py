"""Long work: Spark's lines go to a file, and what can be refused is refused before Spark starts."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from rich.cells import cell_len
from rich.console import Console

from kagent.cli import root
from kagent.commands.spark import bar, describe, log_path, output_to
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic
from kagent.settings import Cluster, Settings


def test_processes_started_meanwhile_write_to_the_log_and_later_ones_do_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "spark.log"
    speak = [sys.executable, "-c", "import sys; sys.stderr.write('noise'); print('more', flush=True)"]

    with output_to(log):
        subprocess.run(speak, check=True)
    assert (log.read_text(), *capfd.readouterr()) == ("noisemore\n", "", "")

    subprocess.run(speak, check=True)
    assert tuple(capfd.readouterr()) == ("more\n", "noise")


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


def test_a_folder_without_a_history_is_named_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kagent.pipeline.spark_session.java", lambda: pytest.fail("Spark is being started"))

    for command in (["backtest"], ["history", "maintain"]):
        answer = CliRunner().invoke(root, [*command, "--path", str(tmp_path)])
        assert f"There is no history at {tmp_path}" in str(answer.exception)


@pytest.mark.parametrize(("name", "why"), [("", "is a directory"), ("none/r.html", "does not exist")])
def test_a_report_that_cannot_be_written_is_refused_before_spark_starts(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kagent.pipeline.spark_session.java", lambda: pytest.fail("Spark is being started"))
    (tmp_path / "lag").mkdir()

    answer = CliRunner().invoke(root, ["report", "--path", str(tmp_path), "-o", str(tmp_path / name)])

    assert why in answer.output + str(answer.exception)


def test_how_long_it_takes_still_fits_beside_a_long_name_at_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **_: Console(file=out, force_terminal=True, width=80, color_system=None),
    )
    with bar(f"Measuring {60 * 'o'}") as progress:
        progress.refresh()
        describe(progress, f"Sampling {60 * 'o'}")
        progress.update(progress.task_ids[0], completed=1234, total=9876)
        progress.refresh()

    lines = out.getvalue().replace("\x1b[2K", "\n").splitlines()
    for begins, tasks in (("Measuring", "0 of 1 tasks"), ("Sampling", "1234 of 9876 tasks")):
        line = next(line for line in lines if begins in line)
        assert cell_len(re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", line)) <= 80
        assert tasks in line
        assert "0:00:00" in line


@pytest.mark.parametrize(
    ("done", "estimate"), [(0, r"\d:\d\d:\d\d\s*$"), (3, r"\d:\d\d:\d\d \d:\d\d:\d\d\s*$")]
)
def test_the_time_left_is_shown_only_once_it_can_be_estimated(
    done: int, estimate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    with bar("Measuring") as progress:
        progress.update(progress.task_ids[0], total=4)
        for completed in range(done + 1):
            progress.update(progress.task_ids[0], completed=completed)
        shown = "".join(segment.text for segment in console.render(progress.get_renderable()))

    assert "-:--:--" not in shown
    assert re.search(estimate, shown.splitlines()[0])


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
def test_ctrl_c_while_spark_works_ends_the_command_without_a_stack_trace(broker: str, tmp_path: Path) -> None:
    admin = Admin(Cluster(bootstrap=broker))
    topic = f"ctrl-c-{tmp_path.name}"  # of its own at every try
    assert not admin.create([NewTopic(topic, 1, 1)])
    producer = Producer({"bootstrap.servers": broker})
    for n in range(1000):
        producer.produce(topic, b"x", key=str(n % 7))
    assert producer.flush(30) == 0
    environment = os.environ | {"TERM": "xterm", "KAGENT_BOOTSTRAP": broker, "KAGENT_DATA": str(tmp_path)}
    ours, theirs = pty.openpty()
    try:
        program = [sys.executable, "-m", "kagent", "keys", topic]
        running = subprocess.Popen(program, env=environment, stderr=theirs, stdout=subprocess.DEVNULL)
        os.close(theirs)
        said = read_until(ours, "Sampling")
        running.send_signal(signal.SIGINT)
        said += read_to_the_end(ours)
        code = running.wait(60)
    finally:
        os.close(ours)

    assert "Traceback" not in said
    assert code == 130, said


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize(
    ("command", "started"),
    [(("history", "write", "--path", "history"), "Writing the history"), (("pipeline",), "Reading __consumer_offsets")],
    ids=["history", "pipeline"],
)  # fmt: skip
def test_ctrl_c_ends_a_stream_in_order(
    command: tuple[str, ...], started: str, broker: str, cast: Any, tmp_path: Path
) -> None:
    environment = os.environ | {"TERM": "xterm", "KAGENT_BOOTSTRAP": broker, "KAGENT_DATA": str(tmp_path)}
    if "orders" not in cast.admin.topic_names():
        cast.topic("orders", 1, 1)
    cast.commit("billing", "orders", 0)  # the pipeline waits until a first group has committed
    assert CliRunner().invoke(root, ["-b", broker, "topics"]).exit_code == 0
    ours, theirs = pty.openpty()
    try:
        program = [sys.executable, "-m", "kagent", *command, "--master", "local[1]"]
        # A process group of its own, all of which gets the signal, as from a terminal.
        running = subprocess.Popen(
            program,
            env=environment,
            cwd=tmp_path,
            stderr=theirs,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        said = read_until(ours, started)
        os.killpg(running.pid, signal.SIGINT)
        said += read_to_the_end(ours)
        code = running.wait(60)
    finally:
        os.close(ours)

    assert "Traceback" not in said
    assert "ERROR" not in said
    assert code == 0


FIRST_LINE = """
import sys
from kagent.cli import main

class Heavy:
    def find_spec(self, name, path=None, target=None):
        if name in {"aiokafka", "confluent_kafka", "numpy", "pyarrow", "pyspark"}:
            sys.exit("loads " + name)

sys.meta_path.insert(0, Heavy())
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("report", "-o", "/dev/null"),
        ("backtest",),
        ("calibrate",),
        ("history", "maintain"),
        ("keys", "orders"),
    ],
)
def test_the_first_line_of_progress_comes_before_anything_heavy(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "lag").mkdir()
    arguments = [*command, *([] if command[0] == "keys" else ["--path", str(tmp_path)])]
    environment = os.environ | {
        "TERM": "xterm",
        "KAGENT_BOOTSTRAP": "localhost:1",
        "KAGENT_DATA": str(tmp_path),
    }
    ours, theirs = pty.openpty()
    try:
        program = [sys.executable, "-c", FIRST_LINE, *arguments]
        running = subprocess.Popen(program, env=environment, stderr=theirs, stdout=subprocess.DEVNULL)
        os.close(theirs)
        said = read_to_the_end(ours)
        assert running.wait(60) != 0
    finally:
        os.close(ours)

    first, _, after = said.partition("loads ")
    assert "Measuring orders" in first if command[0] == "keys" else "Starting Spark" in first
    assert after


def read_until(terminal: int, words: str) -> str:
    found = ""
    while words not in found:
        try:
            found += os.read(terminal, 4096).decode(errors="replace")
        except OSError:
            pytest.fail(f"ended before {words}: {found[-500:]}")
    return found


def read_to_the_end(terminal: int) -> str:
    """What is written to this terminal until nobody holds its other side."""
    found = b""
    while True:
        try:
            found += os.read(terminal, 4096) or b""
        except OSError:  # Linux: the last holder of the other side closed it
            return found.decode(errors="replace")
