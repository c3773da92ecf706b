"""The demo's processes: each with a log file of its own, all ended whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kagent.errors import SetupError
from kagent.kafka.broker import Broker, die_with_parent

STOP_WITHIN = 15.0


@dataclass(slots=True)
class Processes:
    """Started by name; ended in the opposite order."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    broker: Broker | None = None
    """Watched once it runs; whoever started it ends it."""

    def log(self, name: str) -> Path:
        """Where this process's output goes."""
        return self.folder / f"{name}.log"

    def start(self, name: str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        """Start ``python ARGUMENTS`` as a process group of its own."""
        with self.log(name).open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def check(self) -> None:
        """Raises SetupError if one has ended by itself, with its last line and its log's place."""
        if self.broker is not None and self.broker.pid is None:
            raise SetupError(f"the broker ended by itself (log: {self.broker.log}).")
        for name, process in self.running.items():
            code = process.poll()
            if code is not None:
                lines = [
                    line for line in self.log(name).read_text(errors="replace").splitlines() if line.strip()
                ]
                last = lines[-1].strip().rstrip(".") if lines else "it said nothing"
                raise SetupError(f"{name} ended with exit code {code}: {last} (log: {self.log(name)}).")

    def stop(self) -> None:
        """SIGTERM to all, and SIGKILL to the group of each that does not go."""
        processes = list(reversed(self.running.values()))
        for process in processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + STOP_WITHIN
        for process in processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                _kill_group(process)
        self.running.clear()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait(5)
