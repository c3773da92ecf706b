"""Real receivers for what kagent sends: an Alertmanager, a local HTTP server that can be down, and recommendations."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from kagent.advice.recommendation import Recommendation
from kagent.kafka.broker import die_with_parent, free_port
from kagent.kafka.jars import cache


def wait_for(what: str, check: Callable[[], Any], deadline: float = 40.0) -> Any:
    until = time.monotonic() + deadline
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > until:
            pytest.fail(f"not within {deadline:.0f} s: {what} (last seen: {found!r})")
        time.sleep(0.1)


@pytest.fixture
def eventually() -> Callable[..., Any]:
    return wait_for


def made(group: str = "orders", **said: Any) -> Recommendation:
    """A recommendation; ``at``: seconds from now when it was judged."""
    at = said.pop("at", 1)
    now = int(time.time() * 1000)
    usual = {
        "id": f"{group}-1",
        "cluster": "main",
        "group": group,
        "status": "open",
        "verdict": "rebalance",
        "severity": "ticket",
        "confidence": "high",
        "reason": f"{group}: one member is far behind.",
        "group_kind": "classic_python",
        "opened_at": now,
        "as_of": now + at * 1000,
        "valid_until": now + 600_000,
        "skew": {"now": 2.5, "after": 1.1},
        "basis": {"generation": 1, "digest": "d"},
    }
    return Recommendation.model_validate(usual | said)


@pytest.fixture
def rec() -> Callable[..., Recommendation]:
    return made


def binary(name: str) -> str:
    """A tool of Debian's Prometheus packages, installed or from the cache."""
    found = shutil.which(name) or shutil.which(str(cache() / "debs" / "usr" / "bin" / name))
    return found or pytest.fail(f"{name} is missing: run `make debs`")


@dataclass
class Alerts:
    """A running Alertmanager."""

    url: str

    def now(self, group: str) -> list[dict[str, Any]]:
        """The alerts about a group that are firing."""
        query = {"filter": f'group="{group}"', "active": "true"}
        found: list[dict[str, Any]] = httpx.get(f"{self.url}/api/v2/alerts", params=query).json()
        return found

    def groups(self) -> list[str]:
        """The groups about which an alert is firing."""
        return [alert["labels"]["group"] for alert in httpx.get(f"{self.url}/api/v2/alerts").json()]


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alerts]:
    folder = tmp_path_factory.mktemp("alertmanager")
    config = folder / "alertmanager.yml"
    config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    port = free_port()
    arguments = [
        f"--config.file={config}",
        f"--storage.path={folder}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [binary("prometheus-alertmanager"), *arguments],
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,
        )
    running = Alerts(f"http://127.0.0.1:{port}")
    try:
        wait_for("Alertmanager is ready", lambda: _ready(f"{running.url}/-/ready"))
        yield running
    finally:
        process.terminate()
        process.wait(20)


def _ready(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.HTTPError:
        return False


@dataclass
class Receiver:
    """A local HTTP server; ``status`` is what it answers, and only what it answered 200 to counts as received."""

    status: int = 200
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    tried: int = 0
    url: str = ""

    def bodies(self) -> list[dict[str, Any]]:
        return [orjson.loads(body) for _, body in self.received]

    def events(self, group: str) -> list[str]:
        return [body["event"] for body in self.bodies() if body["group"] == group]


@contextmanager
def listening(certificate: Path | None = None) -> Iterator[Receiver]:
    """A local server, by TLS with a certificate."""
    about = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            about.tried += 1
            if about.status == 200:
                about.received.append((dict(self.headers), body))
            self.send_response(about.status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    about.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield about
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as about:
        yield about


@pytest.fixture
def by_tls() -> Iterator[Callable[[Path], Receiver]]:
    """Starts local servers by TLS."""
    with ExitStack() as stack:
        yield lambda certificate: stack.enter_context(listening(certificate))


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path
