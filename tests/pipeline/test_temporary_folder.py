"""Temporary files of Spark and Java lie in one folder per process, which goes with it or at the next start."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kagent.errors import SetupError
from kagent.pipeline import temporary_folder
from kagent.pipeline.spark_session import with_temporary_folder
from kagent.pipeline.stream_service import Pipeline
from kagent.pipeline.temporary_folder import own_folder, temporary_files_in
from kagent.settings import load

HOLDS = """
import sys
from kagent.pipeline.temporary_folder import own_folder

print(own_folder(), flush=True)
(own_folder() / "spark-1").mkdir()
(own_folder() / "spark-1" / "file").touch()
print("there", flush=True)
sys.stdin.read()
"""
WORKS = """
import itertools, sys
from kagent.pipeline.spark_session import session
from kagent.pipeline.temporary_folder import own_folder
from kagent.settings import load

spark = session(load(bootstrap="127.0.0.1:1").pipeline, "local[1]")
print(own_folder(), flush=True)
for _ in itertools.chain(["at once"], sys.stdin):
    print(spark.range(100).repartition(2).count(), flush=True)
spark.stop()
"""


class Running:
    """A process that has told of its folder, and of having put something there; it ends when its input does."""

    def __init__(self, program: str, temporary: Path) -> None:
        environment = os.environ | {"TMPDIR": str(temporary)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, text=True, start_new_session=True, **pipes
        )

    @property
    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()
        return self.line

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(60)

    def kill(self) -> None:
        """With all that it has started, Java too, so that none can remove its own files."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        psutil.wait_procs(family, 60)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The system's temporary folder for what the test starts; one with a blank in its name, which Java's options split at."""
    folder = tmp_path / "system temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def run(temporary: Path) -> Iterator[Callable[[str], Running]]:
    started: list[Running] = []

    def start(program: str) -> Running:
        started.append(Running(program, temporary))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.kill()
        running.close()


@pytest.mark.slow
def test_the_folder_of_a_killed_process_is_removed_at_the_next_start_and_a_living_ones_is_not(
    run: Callable[[str], Running], temporary: Path
) -> None:
    killed, living = run(HOLDS), run(HOLDS)
    left, kept = Path(killed.line), Path(living.line)
    assert (killed.line, living.line) == ("there", "there")
    killed.kill()
    assert left.exists()

    new = Path((starting := run(HOLDS)).line)

    assert not left.exists()
    assert (kept / "spark-1" / "file").exists()
    assert starting.line == "there"
    assert living.end() == starting.end() == 0
    assert not kept.exists()
    assert not new.exists()
    assert [path.name for path in temporary.rglob("*")] == [f"kagent-{os.getuid()}"]


def test_nobody_else_can_look_into_it(run: Callable[[str], Running], temporary: Path) -> None:
    (temporary / f"kagent-{os.getuid()}").mkdir(mode=0o755)

    folder = Path(run(HOLDS).line)

    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert folder.parent == temporary / f"kagent-{os.getuid()}"


def test_where_another_has_taken_the_name_nothing_is_put_or_removed(
    run: Callable[[str], Running], temporary: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "precious").mkdir(parents=True)
    (temporary / f"kagent-{os.getuid()}").symlink_to(other)

    running = run(HOLDS)
    folder = Path(running.line)
    assert running.line == "there"

    assert folder.parent == temporary
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in other.iterdir()] == ["precious"]
    assert running.end() == 0
    assert not folder.exists()


def test_a_temporary_folder_that_cannot_be_made_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    with pytest.raises(SetupError, match=r"No temporary folder can be made \(No such file .* set TMPDIR"):
        own_folder.__wrapped__()


def test_python_makes_its_temporary_files_there_within_the_block_only(tmp_path: Path) -> None:
    before = tempfile.gettempdir()

    with temporary_files_in(tmp_path):
        assert Path(tempfile.mkdtemp()).parent == tmp_path

    assert tempfile.gettempdir() == before


@pytest.mark.parametrize("own", ["-Xss4m -Djava.io.tmpdir=/fast", "-Djava.io.tmpdir=/fast"])
def test_a_folder_that_the_users_options_of_java_name_is_taken(own: str) -> None:
    assert with_temporary_folder(own, Path("/tmp/x")) == own
    assert with_temporary_folder("-Xss4m", Path("/tmp/x")) == '-Xss4m "-Djava.io.tmpdir=/tmp/x"'


def test_java_that_does_not_end_keeps_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(temporary_folder, "JAVA_WITHIN_S", 0.1)
    deaf = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE)
    try:
        monkeypatch.setattr(temporary_folder, "_java_process", lambda: deaf)
        monkeypatch.setattr(temporary_folder, "quiet_about_java", lambda: None)  # holds for all that follows
        temporary_folder._remove_own(tmp_path)
        assert tmp_path.exists()
    finally:
        deaf.kill()
        deaf.wait()
    temporary_folder._remove_own(tmp_path)
    assert not tmp_path.exists()


def test_the_place_of_a_replay_lies_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places: list[str] = []

    def seen(_: object, place: str) -> None:
        places.append(place)
        raise LookupError

    monkeypatch.setattr("kagent.pipeline.stream_service.own_folder", lambda: tmp_path)
    monkeypatch.setattr("kagent.pipeline.stream_service.Checkpoint", seen)
    settings = load(bootstrap="127.0.0.1:1")
    nothing: Any = None

    with pytest.raises(LookupError):
        Pipeline(settings, "main", settings.clusters["main"], replay=True).run_on(nothing, nothing)

    assert [Path(place).parent.parent for place in places] == [tmp_path]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.slow
def test_nothing_of_a_killed_spark_is_left_after_the_next_start_and_one_that_runs_goes_on(
    run: Callable[[str], Running], temporary: Path
) -> None:
    killed, living = run(WORKS), run(WORKS)
    left, kept = Path(killed.line), Path(living.line)
    assert (killed.line, living.line) == ("100", "100")
    for kind in ("spark-*", "blockmgr-*", "artifacts-*"):
        assert list(left.glob(kind)), kind
    before = {path for path in kept.rglob("*") if path.is_file()}
    killed.kill()
    assert left.exists()

    starting = run(WORKS)
    new = Path(starting.line)

    assert not left.exists()
    assert before <= set(kept.rglob("*"))
    assert (starting.line, living.asked()) == ("100", "100")
    assert {path.parent for path in (kept, new)} == set(temporary.iterdir())
    assert living.end() == starting.end() == 0
    assert list(temporary.rglob("*")) == [kept.parent]
