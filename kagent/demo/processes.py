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

from kagent.embedded.broker import Broker, die_with_parent
from kagent.errors import SetupError

STOP_WITHIN = 15.0


@dataclass(slots=True)
class Processes:
    """Started by name; ended in the opposite order."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ending: set[str] = field(default_factory=set)
    """Those that may end, if they end well."""
    broker: Broker | None = None
    """Watched once it runs; the code that started it ends it."""

    def log(self, name: str) -> Path:
        """Where this process's output goes."""
        return self.folder / f"{name}.log"

    def run(self, name: str, *arguments: str) -> None:
        """Start ``python ARGUMENTS``, which ends by itself: with another exit code than 0, :meth:`check` raises."""
        self.start(name, *arguments)
        self.ending.add(name)

    def start(self, name: str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        """Start ``python ARGUMENTS`` as a process group of its own."""
        with self.log(name).open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                # A group of its own: Ctrl-C reaches the demo alone, which then ends the others in order.
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def check(self) -> None:
        """Raises SetupError if one has ended by itself, with its last line and its log's place."""
        if self.broker is not None and self.broker.pid is None:
            raise SetupError(f"the broker ended by itself (log: {self.broker.log}).")
        for name, process in self.running.items():
            code = process.poll()
            if code is not None and not (code == 0 and name in self.ending):
                raise SetupError(
                    f"{name} {_ended(code)}{_last_words(self.log(name))} (log: {self.log(name)})."
                )

    @property
    def printed_bytes(self) -> int:
        """Bytes that all of them have printed: it grows while they work."""
        return sum(log.stat().st_size for name in self.running if (log := self.log(name)).exists())

    def stop(self) -> None:
        """SIGTERM to all, and SIGKILL to the group of each that does not go."""
        # Worker and pipeline end before the consumers and the producer that they watch.
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


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"


def _last_words(log: Path) -> str:
    """The last line that says something; frames of tables do not."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        if any(letter.isalnum() for letter in line):
            return f"; its last line: {line.strip().rstrip('.')}"
    return "; it printed nothing"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait(5)
