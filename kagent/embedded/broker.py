"""The embedded broker: a real Kafka of one node (KRaft, combined mode) for the demo and the tests. Nothing else.

It keeps its folder and port over restarts, can be killed like a power cut, and dies with the process that started it.
"""

from __future__ import annotations

import base64
import os
import random
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from kagent.embedded.jars import BROKER, broker_jars
from kagent.embedded.java import java
from kagent.embedded.machine import slowness
from kagent.errors import SetupError
from kagent.process_tree import end_with_parent

HOST = "127.0.0.1"

DEFAULTS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    # 50 by default: logs that one node with a few groups does not need.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Three seconds by default, so that a starting group rebalances once (KIP-134); a test need not wait.
    "group.initial.rebalance.delay.ms": "0",
    # Six seconds by default: a dead member would be noticed late.
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "auto.create.topics.enable": "false",
    "log.retention.check.interval.ms": "5000",
    # Retention first runs 30 s after the start by default.
    "log.initial.task.delay.ms": "1000",
}

LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")

PORTS = range(15_000, 32_000)
_untried: list[int] = []
"""In an order of chance: what one caller was given and has not opened yet, no other is given before all have been."""


def free_port() -> int:
    """A port that was free a moment ago, and that no client's outgoing connection can take meanwhile.

    Systems give outgoing connections ports from 32768 (Linux) or 49152 on. A server that is killed and started anew on
    such a port may find it taken, even by a client that tries to reach it and meets itself.
    """
    for _ in range(100):
        if not _untried:
            # Not the seeded generator: tests that set the same seed would try the same ports.
            _untried.extend(random.SystemRandom().sample(PORTS, len(PORTS)))
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port := _untried.pop()))
            return port
    raise SetupError(
        f"No free port was found between {PORTS.start} and {PORTS.stop}: stop what listens there."
    )


def die_with_parent() -> None:
    """In a child, before exec: be killed when the parent is gone, however it went (Linux)."""
    end_with_parent(signal.SIGKILL)


@dataclass(slots=True)
class Broker:
    """One broker in a folder. ``extra``: further server properties; ``listeners``: further ones, name → port;
    ``plugins``: further jars on its class path; ``kafka``: the coordinates of another version."""

    folder: Path
    port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    extra: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, int] = field(default_factory=dict)
    heap: str = "512m"
    plugins: Sequence[Path] = ()
    kafka: str = BROKER
    _process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self, deadline: float = 60.0) -> Broker:
        """Start and wait until it answers, at most ``deadline`` seconds of a quiet machine. Raises SetupError with the log's place."""
        if _taken(self.port):
            raise SetupError(f"Port {self.port} is in use: stop what listens there or choose another port.")
        self.folder.mkdir(parents=True, exist_ok=True)
        # Formatted once: a broker that was killed has to find its cluster id and logs again.
        if not (self.folder / "data" / "meta.properties").exists():
            self._format()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java(), "kafka.Kafka", str(self.folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A test run that is killed leaves no broker behind.
                preexec_fn=die_with_parent,
                start_new_session=True,
            )
        self._wait(deadline)
        return self

    def kill(self) -> None:
        """As a power cut would: SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, deadline: float = 20.0) -> None:
        """SIGTERM, and SIGKILL if it has not gone in time."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _java(self) -> list[str]:
        path = os.pathsep.join(str(jar) for jar in (*broker_jars(self.kafka), *self.plugins))
        # A small heap on a shared machine: the serial collector is enough, and starts no threads of its own.
        return [java(), f"-Xmx{self.heap}", "-XX:+UseSerialGC", *LOGGING, "-cp", path]

    def _format(self) -> None:
        self._write_properties()
        # A cluster id is a URL-safe base64 UUID; one that begins with a dash would be read as an option of the tool.
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "a")
        command = [
            "kafka.tools.StorageTool",
            "format",
            "-t",
            name,
            "-c",
            str(self.folder / "server.properties"),
        ]
        answer = subprocess.run(
            [*self._java(), *command], capture_output=True, text=True, check=False, timeout=120 * slowness()
        )
        if answer.returncode:
            raise SetupError(
                f"The broker's folder {self.folder} could not be formatted: {_reason(answer.stdout)}."
            )

    def _write_properties(self) -> None:
        more = {name: f"{name}://{HOST}:{port}" for name, port in self.listeners.items()}
        own = f"PLAINTEXT://{HOST}:{self.port}"
        properties = {
            **DEFAULTS,
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": ",".join([own, f"CONTROLLER://{HOST}:{self.controller_port}", *more.values()]),
            "advertised.listeners": ",".join([own, *more.values()]),
            "log.dirs": str(self.folder / "data"),
            **self.extra,
        }
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (self.folder / "server.properties").write_text(text)

    def _wait(self, deadline: float) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        assert self._process is not None
        quiet: dict[str, str | int | float] = {
            "bootstrap.servers": self.bootstrap,
            "log_level": 0,
            # librdkafka's default of 10 s is longer than a broker takes to start.
            "reconnect.backoff.max.ms": 200,
        }
        began = time.monotonic()
        while time.monotonic() - began < deadline * slowness():
            if self._process.poll() is not None:
                reason = _reason(self.log.read_text(errors="replace"))
                raise SetupError(f"The broker ended at start: {reason} (log: {self.log}).")
            # A client that is refused once waits longer at its next attempt: first see that the port listens.
            if not _taken(self.port):
                time.sleep(0.1)
                continue
            try:
                if AdminClient({**quiet, **self._client()}).list_topics(timeout=5).brokers:
                    return
            except KafkaException:
                continue
        self.kill()
        raise SetupError(f"The broker did not answer in time (log: {self.log}).")

    def _client(self) -> dict[str, str]:
        return {}


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def _reason(text: str) -> str:
    """Why a broker ended, from its log: the innermost cause, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # What it logs while it shuts down comes after the reason.
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return [*lines[-1:], *causes][-1].rstrip(".") if lines else "its log is empty"
