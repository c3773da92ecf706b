"""Faults of `benchmarks/faults.py` that are in one process alone, by a library in C that it loads before the others: clocks and name servers."""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults_made import Fault, Faults, Made, Stage

from kagent.embedded.broker import HOST, Broker, free_port
from tests.worker.soak import Soak


@contextmanager
def clock(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """The clocks of ``--of`` jump by ``--jump`` seconds, one after the other, and back at the end of each."""
    files = {name: folder / f"clock-{name}" for name in ("worker", "pipeline", "broker", "clients")}
    for file in files.values():
        _tell(file, 0)
    library = _compiled(folder, "wall_clock")
    settable = {name: {"LD_PRELOAD": library, "WALL_CLOCK_AHEAD": str(files[name])} for name in options.of}
    before = dict(os.environ)
    os.environ |= settable.get("broker", {})
    broker = Broker(folder / "broker").start()
    os.environ.clear()
    os.environ |= before
    clients = ("skewed-1", "skewed-2", "load-orders")
    processes = {"worker": ("worker",), "pipeline": ("pipeline",), "broker": (), "clients": clients}
    environments = {process: settable[name] for name in options.of for process in processes[name]}

    def fault(file: Path, seconds: int) -> Fault:
        @contextmanager
        def jumped(_: Soak) -> Iterator[None]:
            _tell(file, seconds)
            yield
            _tell(file, 0)

        return jumped

    try:
        yield (
            Stage(broker, environments=environments),
            {
                f"{name} {seconds:+d} s": fault(files[name], seconds)
                for name in options.of
                for seconds in options.jump
            },
        )
    finally:
        broker.stop()


def _compiled(folder: Path, name: str) -> str:
    """A library that processes load before the others."""
    if shutil.which("cc") is None:
        raise SystemExit(f"{name}.c is compiled with cc: apt-get install gcc libc6-dev.")
    to = folder / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(to), str(source)], check=True)
    return str(to)


def _tell(file: Path, seconds: int) -> None:
    """In place: the processes have mapped it."""
    with file.open("r+b" if file.exists() else "wb") as told:
        told.write(struct.pack("=q", seconds))


NAME = "broker.example"


@contextmanager
def slow_names(folder: Path, options: argparse.Namespace) -> Iterator[tuple[Stage, Faults]]:
    """The name server answers pipeline and worker after 20 s, or not at all: while all are connected, and while the broker restarts."""
    own, named = free_port(), free_port()
    extra = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,NAMED:PLAINTEXT",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{own},NAMED://{NAME}:{named}",
    }
    broker = Broker(folder / "broker", own, extra=extra, listeners={"NAMED": named}).start()
    file = folder / "names"
    _tell(file, 0)
    there = {
        "KAGENT_CLUSTERS__MAIN__BOOTSTRAP": f"{NAME}:{named}",
        "LD_PRELOAD": _compiled(folder, "slow_names"),
        "SLOW_NAMES": str(file),
        "SLOW_NAME": NAME,
    }

    def fault(seconds: int, restart: bool) -> Fault:
        @contextmanager
        def slow(_: Soak) -> Iterator[None]:
            _tell(file, seconds)
            if restart:
                broker.kill()
                broker.start()
            yield
            _tell(file, 0)

        return slow

    try:
        yield (
            Stage(broker, environments={"pipeline": there, "worker": there}),
            {
                f"{said}{' and the broker restarts' if restart else ''}": fault(seconds, restart)
                for restart in (False, True)
                for said, seconds in (("20 s", 20), ("no answer, 5 s", -5))
            },
        )
    finally:
        broker.stop()


FAULTS: dict[str, Made] = {"clock": clock, "slow-names": slow_names}
