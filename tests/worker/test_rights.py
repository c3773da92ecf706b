"""The whole job with three logins, over TLS, on a broker that refuses whatever was not allowed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import yaml

from kagent.client.client import current
from kagent.kafka.acls import Rule, rules
from kagent.settings import Cluster, load
from tests.conftest import JAVA_OPTIONS, encrypted_broker
from tests.worker.conftest import Same

if TYPE_CHECKING:
    from tests.conftest import Guarded
    from tests.fixtures.certificates import Certificates

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow(minutes=3)]
LOGGED_IN = {"pipeline": "pipeline", "worker": "worker", "alert": "alert", "history": "owner"}
"""Process → its user. The history has no printed rights: here it is let read what it keeps."""
ONCE = ("lag", "check --for 6 idle", "status", "mutes", "explain idle")
"""Commands that end, each as a user who may ask for all."""


def as_user(guarded: Guarded, name: str) -> dict[str, str]:
    """Variables that log a process in as this user."""
    given = guarded.security | {"username": name, "password": guarded.password}
    login = {f"KAGENT_CLUSTERS__MAIN__SECURITY__{key.upper()}": value for key, value in given.items()}
    return {"KAGENT_BOOTSTRAP": guarded.bootstrap, **login}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Guarded]:
    # A password that nothing else on this machine holds: wherever it is found, these processes put it.
    made = encrypted_broker(tmp_path_factory.mktemp("encrypted"), certificates, f"pw-{uuid.uuid4()}")
    yield made
    made.broker.stop()


@pytest.fixture(scope="module")
def running(kagent: Callable[..., Any], guarded: Guarded) -> Any:
    """Pipeline and worker that watch, each with its own login and the printed rights."""
    made = kagent(broker=guarded.broker)
    written = below(made.folder)
    made.logins |= {name: as_user(guarded, user) | written for name, user in LOGGED_IN.items()}
    topics = load(made.config).topics
    for role, rights in rules(topics).items():
        guarded.allow(role, rights)
    everything = [Rule("describe", "topic", "*"), Rule("describe", "group", "*")]
    kept = [Rule("read", "topic", name) for name in (topics.events, topics.recommendations, topics.mutes)]
    guarded.allow("owner", [*kept, *everything, Rule("read", "group", f"{topics.app}-history", "prefixed")])
    made.topic("orders", 2)
    made.produce("orders", {0: 9, 1: 3})
    made.commit("idle", {("orders", 0): 4, ("orders", 1): 1})
    hook = {"TYPE": "webhook", "URL": "http://127.0.0.1:9/", "SECRET": f"hook-{guarded.password}"}
    made.logins["alert"] |= {f"KAGENT_ALERT__DESTINATIONS__hook__{key}": value for key, value in hook.items()}
    with made.ended_if_it_fails():
        made.start_pipeline()
        made.start_worker()
        made.start("alert", "alert")
        made.start("history", "history", "write", "--path", str(made.folder / "history"))
        made.wait_until_watching()
        made.eventually("the history is written", lambda: any((made.folder / "history").rglob("*.parquet")))
    return made


def below(folder: Path) -> dict[str, str]:
    """Variables with which all that a process writes is below this folder."""
    temporary = folder / "tmp"
    temporary.mkdir()
    return {
        "TMPDIR": str(temporary),
        "SPARK_LOCAL_DIRS": str(temporary),
        "JAVA_TOOL_OPTIONS": f"{JAVA_OPTIONS} -Djava.io.tmpdir={temporary}",
    }


@pytest.fixture(scope="module")
def up(kagent: Callable[..., Any], guarded: Guarded) -> Any:
    """``kagent up`` with topics of its own: pipeline, worker and history as one process tree with one login."""
    made = kagent(broker=guarded.broker, topic_settings={"prefix": "up-"})
    settings = yaml.safe_load(made.config.read_text())
    settings["pipeline"]["history"] = str(made.folder / "history")
    made.config.write_text(yaml.safe_dump({**settings, "data": str(made.folder / "kagent")}))
    topics = load(made.config).topics
    mine = [rule for role in ("pipeline", "worker") for rule in rules(topics)[role]]
    kept = [Rule("read", "topic", name) for name in (topics.events, topics.recommendations, topics.mutes)]
    history = Rule("read", "group", f"{topics.app}-history", "prefixed")
    guarded.allow("owner", list(dict.fromkeys([*mine, *kept, history])))  # roles share some
    made.topic("parcels", 1)
    made.produce("parcels", {0: 9})
    made.commit("resting", {("parcels", 0): 4})
    made.logins["up"] = as_user(guarded, "owner") | below(made.folder)

    def watches() -> bool:
        found = asyncio.run(current(Cluster(bootstrap=guarded.root), topics.recommendations)).get("main")
        return found is not None and found.status == "watching"

    with made.ended_if_it_fails():
        made.start("up", "up")
        made.eventually("kagent up watches", watches)
        made.eventually("the history is written", lambda: any((made.folder / "history").rglob("*.parquet")))
    return made


def test_pipeline_worker_and_subscriber_need_no_right_but_those_that_are_printed(
    running: Any, guarded: Guarded
) -> None:
    running.assert_table_equals_admin(["idle", "resting"])
    heard = asyncio.run(current(guarded.cluster("subscriber")))

    assert heard["main"].status == "watching"
    said = running.log("pipeline") + running.log("worker")
    assert "uthorization" not in said, (
        "a refused request that is survived is one right too few, or one wish too many"
    )


@pytest.mark.parametrize("how", ["running", "up"])
def test_the_password_is_in_no_command_line_and_no_environment_but_where_it_was_given(
    how: str, request: pytest.FixtureRequest, guarded: Guarded
) -> None:
    made = request.getfixturevalue(how)
    seen = [
        process
        for process in processes(made)
        if guarded.password in " ".join(asked(process.cmdline, []))
        or (not is_kagent(process) and guarded.password in str(asked(process.environ, {})))
    ]

    assert any("java" in asked(process.name, "") for process in processes(made))
    assert (
        sum(map(is_kagent, processes(made))) == 4
    )  # each process that logs in, and the one that starts them
    assert not seen, [process.cmdline()[:4] for process in seen]


@pytest.mark.parametrize("command", ONCE)
def test_a_command_that_ends_hands_the_password_to_nobody(
    running: Any, guarded: Guarded, command: str
) -> None:
    words = [sys.executable, "-m", "kagent", "--config", str(running.config), *command.split()]
    env = {**os.environ, **as_user(guarded, "owner"), "TMPDIR": str(running.folder / "tmp")}
    seen: list[str] = []

    def answers() -> Same:
        """Whether it found kagent watching; where it is starved of processor time, `status` says that it catches up."""
        started = subprocess.Popen(
            words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        while started.poll() is None:
            with suppress(psutil.NoSuchProcess):
                children = psutil.Process(started.pid).children(recursive=True)
                seen.extend(" ".join(child.cmdline()) + str(child.environ()) for child in children)
            time.sleep(0.1)
        said, _ = started.communicate()
        seen.append(said)
        return Same((started.returncode in (0, 1), said), (True, said))

    running.eventually(f"kagent {command} answers", answers)
    assert guarded.password not in "".join(seen)


def test_the_password_is_in_no_file_that_kagent_up_wrote(up: Any, guarded: Guarded) -> None:
    written = dict(contents(up.folder))

    assert {"up.log", "kagent", "tmp", "checkpoint", "history"} <= {
        path.relative_to(up.folder).parts[0] for path in written
    }
    assert [path for path, content in written.items() if guarded.password.encode() in content] == []


def test_the_password_is_in_no_file_that_was_written(running: Any, guarded: Guarded) -> None:
    written = dict(contents(running.folder))

    assert {"worker.log", "alert.log", "history.log", "tmp", "checkpoint", "history"} <= {
        path.relative_to(running.folder).parts[0] for path in written
    }
    assert [path for path, content in written.items() if guarded.password.encode() in content] == []


def test_the_settings_command_masks_the_password(running: Any, guarded: Guarded) -> None:
    command = [sys.executable, "-m", "kagent", "--config", str(running.config), "settings"]
    shown = subprocess.run(
        command, env={**os.environ, **as_user(guarded, "worker")}, capture_output=True, text=True, check=True
    )

    assert "***" in shown.stdout
    assert guarded.password not in shown.stdout + shown.stderr


@pytest.mark.parametrize("how", ["running", "up"])
def test_nothing_listens_beyond_loopback(how: str, request: pytest.FixtureRequest) -> None:
    places = {place for process in processes(request.getfixturevalue(how)) for place in listening(process)}

    assert places, "the worker's own port at least"
    assert [place for place in places if not loopback(place.ip)] == []


def listening(process: psutil.Process) -> set[Any]:
    """The addresses on which it listens."""
    found = asked(lambda: process.net_connections("tcp"), [])
    return {connection.laddr for connection in found if connection.status == psutil.CONN_LISTEN}


def processes(running: Any) -> list[psutil.Process]:
    """What is logged in, with all that it started."""
    roots = [psutil.Process(started.pid) for started in running.processes.values()]
    children = [child for root in roots for child in root.children(recursive=True)]
    gone = psutil.STATUS_ZOMBIE
    return [process for process in roots + children if asked(process.status, gone) != gone]


def asked(ask: Callable[[], Any], otherwise: Any) -> Any:
    """What a process answers; ``otherwise`` where it has ended meanwhile, as Spark's workers in Python do."""
    try:
        return ask()
    except psutil.NoSuchProcess:
        return otherwise


def is_kagent(process: psutil.Process) -> bool:
    """Whether it is a command of kagent's, which logs in by itself; Java and Spark's Python workers are not."""
    return asked(process.cmdline, [])[1:3] in (["-m", "kagent"], ["-m", "faust"])


def loopback(address: str) -> bool:
    found = ip_address(address)
    return bool((getattr(found, "ipv4_mapped", None) or found).is_loopback)


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # Spark replaces files of its checkpoint
            if path.is_file():
                yield path, path.read_bytes()
