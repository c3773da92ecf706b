"""TLS that does not fit is one sentence, at once and in every command: from real handshakes with certificates made here."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kagent.cli import main
from kagent.embedded.broker import free_port
from kagent.errors import KafkaError, Misconfigured
from kagent.kafka import reach
from kagent.kafka.reach import ANSWER_WITHIN_S, API_VERSIONS, check, listens, refuse_absent
from kagent.settings import Cluster
from tests.fixtures.certificates import Certificates
from tests.fixtures.waiting import PATIENCE_S

COMMANDS = [
    "lag",
    "watch --open",
    "status",
    "check",
    "topics --check",
    "alert",
    "pipeline",
    "mutes",
    "keys orders",
    "explain orders",
    "plan orders",
    "assign --group orders",
    "apply orders",
    "mute orders --for 1h --why load",
    "capture FOLDER orders",
    "history write --path FOLDER",
]
"""All that ask a cluster but `worker`, which ends its process, and `up`, which starts it."""


@contextlib.contextmanager
def answering(answers: Callable[[socket.socket, int], object]) -> Iterator[int]:
    """The port of a server that does this with each connection (and its number)."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve() -> None:
        number = 0
        while not stopped.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    if not stopped.is_set():
                        answers(connection, number)
                        number += 1

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        stopped.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 1).close()
        thread.join()
        listener.close()


def listening(certificate: Path | None) -> contextlib.AbstractContextManager[int]:
    """The port of a server that speaks TLS with this certificate, or reads and closes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate:
        context.load_cert_chain(certificate)

    def answer(connection: socket.socket, number: int) -> None:
        connection.settimeout(5)
        if certificate:
            with context.wrap_socket(connection, server_side=True) as encrypted:
                encrypted.recv(1)
        elif connection.recv(100)[:5] == API_VERSIONS[:5]:
            connection.sendall(b"\0\0\0\6\0\0\0\1\0\0")

    return answering(answer)


def cluster(port: int, protocol: str, ca: Path | None = None) -> Cluster:
    security = {"protocol": protocol, **({"ca_file": str(ca)} if ca else {})}
    return Cluster.model_validate({"bootstrap": f"127.0.0.1:{port}", "security": security})


@pytest.mark.parametrize(
    ("served", "asked", "said"),
    [
        (lambda c: c.made("DNS:elsewhere"), lambda p, c: cluster(p, "SSL", c.authority), "for another name than 127.0.0.1"),
        (lambda c: c.made("IP:127.0.0.1"), lambda p, c: cluster(p, "SSL", c.other), "an authority that is not known"),
        (lambda c: c.made("IP:127.0.0.1"), lambda p, c: cluster(p, "PLAINTEXT"), "speaks TLS, and the settings say plaintext"),
        (lambda c: None, lambda p, c: cluster(p, "SSL", c.authority), "speaks? (plaintext|TLS)"),
    ],
    ids=["wrong host name", "unknown authority", "plaintext to TLS", "TLS to plaintext"],
)  # fmt: skip
@pytest.mark.slow
def test_what_does_not_fit_is_named(
    certificates: Certificates,
    served: Callable[[Certificates], Path | None],
    asked: Callable[[int, Certificates], Cluster],
    said: str,
) -> None:
    with listening(served(certificates)) as port, pytest.raises(Misconfigured, match=said):
        check(asked(port, certificates))


@pytest.mark.slow
def test_an_expired_certificate_is_named(certificates: Certificates, tmp_path: Path) -> None:
    expired = certificates.made("IP:127.0.0.1", "-days", "-1")

    with listening(expired) as port, pytest.raises(Misconfigured, match=r"not valid now .*: have it renewed"):
        check(cluster(port, "SSL", certificates.authority))


def as_http_server(connection: socket.socket, number: int) -> None:
    """Waits for a whole line, as most HTTP servers do."""
    with contextlib.suppress(TimeoutError):
        connection.settimeout(ANSWER_WITHIN_S + 2)
        request = b""
        while b"\n" not in request:
            request += connection.recv(100)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def as_ssh_server(connection: socket.socket, number: int) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    connection.recv(100)


@pytest.mark.parametrize("served", [as_http_server, as_ssh_server])
def test_a_server_that_speaks_another_protocol_is_named_at_once(
    served: Callable[[socket.socket, int], None],
) -> None:
    began = time.monotonic()
    with answering(served) as port, pytest.raises(Misconfigured, match="does not speak Kafka's protocol"):
        check(cluster(port, "PLAINTEXT"))
    assert time.monotonic() - began < ANSWER_WITHIN_S


def test_what_fits_and_what_is_away_is_no_error(certificates: Certificates) -> None:
    with listening(certificates.made("IP:127.0.0.1")) as port:
        check(cluster(port, "SSL", certificates.authority))
    check(cluster(port, "SSL", certificates.authority))
    with listening(None) as port:
        check(cluster(port, "PLAINTEXT"))
    assert not check(Cluster(bootstrap="no-such-host.invalid:9092"))


@pytest.mark.parametrize(
    ("bootstrap", "why"),
    [
        ("127.0.0.1:{closed}", "check the address and that a broker listens"),
        ("127.0.0.1:{closed},no-such-host.invalid:9092", "the name no-such-host.invalid has no address"),
    ],
)
def test_where_every_address_refuses_a_person_is_told_at_once(bootstrap: str, why: str) -> None:
    with pytest.raises(KafkaError, match=f"cannot be reached: {why}"):
        refuse_absent(bootstrap.format(closed=free_port()))


def test_where_one_address_may_still_answer_the_client_is_left_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reach, "CONNECT_WITHIN_S", 0.2)
    with listening(None) as port:
        refuse_absent(f"127.0.0.1:{free_port()},127.0.0.1:{port}")
        assert listens(f"127.0.0.1:{free_port()},127.0.0.1:{port}", PATIENCE_S)
    # A queue of connections that is full: the next one gets no answer, as from a firewall that drops it.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as held:
        address = full.getsockname()
        for _ in range(8):
            knocking = held.enter_context(socket.socket())
            knocking.setblocking(False)
            knocking.connect_ex(address)
        silent = f"127.0.0.1:{address[1]}"
        refuse_absent(f"127.0.0.1:{free_port()},{silent}")
        assert not listens(silent, 0.2)


def test_a_broker_that_does_not_answer_in_time_is_no_error(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "ANSWER_WITHIN_S", 0.1)

    with answering(lambda connection, number: time.sleep(0.3)) as port:
        check(cluster(port, "SSL", certificates.authority))


def test_a_broker_that_restarts_within_a_handshake_is_no_error(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "AGAIN_AFTER_S", 0.0)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.made("IP:127.0.0.1"))

    def answers(connection: socket.socket, number: int) -> None:
        connection.settimeout(5)
        if number >= 2:  # the handshake, and the question whether it speaks plaintext, were ended
            context.wrap_socket(connection, server_side=True).close()

    with answering(answers) as port:
        check(cluster(port, "SSL", certificates.authority))


def test_a_server_that_ends_each_handshake_and_answers_no_plaintext_is_named(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "AGAIN_AFTER_S", 0.0)

    with (
        answering(lambda connection, number: connection.recv(1)) as port,
        pytest.raises(Misconfigured, match="ends the TLS handshake"),
    ):
        check(cluster(port, "SSL", certificates.authority))


def written(folder: Path, wrong: Cluster) -> Path:
    """A settings file for this cluster."""
    values: dict[str, Any] = {
        "clusters": {"main": wrong.model_dump(mode="json", exclude_none=True)},
        "alert": {"destinations": {"hook": {"type": "webhook", "url": "http://127.0.0.1:1/"}}},
        "worker": {"data": str(folder / "data"), "web_port": free_port()},
    }
    path = folder / "kagent.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.slow
def test_every_command_says_it_in_one_sentence(
    command: str, certificates: Certificates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(certificates.made("DNS:elsewhere")) as port:
        config = written(tmp_path, cluster(port, "SSL", certificates.authority))

        with pytest.raises(SystemExit) as left:
            main(["--config", str(config), *command.replace("FOLDER", str(tmp_path / "made")).split()])

    assert left.value.code == 2
    assert "for another name than 127.0.0.1: use a name that is in it." in capsys.readouterr().err


@pytest.mark.slow
def test_a_worker_ends_with_the_sentence(certificates: Certificates, tmp_path: Path) -> None:
    with listening(certificates.made("DNS:elsewhere")) as port:
        config = written(tmp_path, cluster(port, "SSL", certificates.authority))
        command = [sys.executable, "-m", "kagent", "--config", str(config), "worker"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    assert ended.returncode == 2
    assert "for another name than 127.0.0.1: use a name that is in it." in ended.stderr
    assert "Traceback" not in ended.stderr
