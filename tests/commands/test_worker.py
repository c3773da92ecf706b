"""`kagent worker` hands over to Faust with a web port that can be used."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from faust.cli.base import LOGLEVELS

from kagent.cli import root
from kagent.embedded.broker import free_port
from kagent.errors import SetupError


class Replaced(Exception):
    """In place of the process that execve would have become."""


def test_port_0_is_a_free_port_and_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[list[str], dict[str, str]]] = []

    def replaced(path: str, arguments: list[str], environment: dict[str, str]) -> None:
        ran.append((arguments, environment))
        raise Replaced

    monkeypatch.setattr(os, "execve", replaced)
    given = {"KAGENT_BOOTSTRAP": "127.0.0.1:1", "KAGENT_WORKER__WEB_PORT": "0", "KAGENT_DATA": str(tmp_path)}
    answer = CliRunner(env=given).invoke(root, ["worker"])

    assert isinstance(answer.exception, Replaced), answer.output
    arguments, environment = ran[0]
    port = arguments[arguments.index("--web-port") + 1]
    assert int(port) > 0
    # Faust reads the argument, kagent's own app the variable.
    assert environment["KAGENT_WORKER__WEB_PORT"] == port
    assert answer.output == f"The worker's web port is {port}.\n"


def test_the_port_that_was_asked_for_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran, port = list[list[str]](), str(free_port())
    monkeypatch.setattr(os, "execve", lambda path, arguments, environment: ran.append(arguments))
    given = {"KAGENT_BOOTSTRAP": "127.0.0.1:1", "KAGENT_DATA": str(tmp_path)}

    answer = CliRunner(env=given).invoke(root, ["worker", "--web-port", port])

    assert ran[0][ran[0].index("--web-port") + 1] == port
    assert answer.output == ""


@pytest.mark.parametrize("level", ["debug", "info", "warning", "WARN", "error"])
def test_every_level_is_one_that_faust_takes(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = list[list[str]]()
    monkeypatch.setattr(os, "execve", lambda path, arguments, environment: ran.append(arguments))
    given = {"KAGENT_BOOTSTRAP": "127.0.0.1:1", "KAGENT_DATA": str(tmp_path)}

    CliRunner(env=given).invoke(root, ["worker", "--web-port", "0", "--loglevel", level])

    assert ran[0][ran[0].index("--loglevel") + 1].upper() in LOGLEVELS


@pytest.mark.parametrize(("asked", "quiet"), [([], True), (["--verbose"], False)])
def test_the_banner_is_printed_only_to_who_asks(
    asked: list[str], quiet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = list[list[str]]()
    monkeypatch.setattr(os, "execve", lambda path, arguments, environment: ran.append(arguments))
    given = {"KAGENT_BOOTSTRAP": "127.0.0.1:1", "KAGENT_DATA": str(tmp_path)}

    CliRunner(env=given).invoke(root, [*asked, "worker", "--web-port", "0"])

    # An option of Faust's own, which stands before its command.
    assert ("--quiet" in ran[0][: ran[0].index("worker")]) is quiet


@pytest.mark.skipif(not socket.has_ipv6, reason="this system has no IPv6")
def test_the_worker_may_listen_on_ipv6(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[list[str]]()
    monkeypatch.setattr(os, "execve", lambda path, arguments, environment: ran.append(arguments))
    given = {"KAGENT_BOOTSTRAP": "[::1]:1", "KAGENT_DATA": str(tmp_path), "KAGENT_WORKER__WEB_HOST": "::1"}

    answer = CliRunner(env=given).invoke(root, ["worker", "--web-port", "0"])

    assert ran, answer.output
    assert int(ran[0][ran[0].index("--web-port") + 1]) > 0


def test_a_web_host_that_is_no_address_is_named(tmp_path: Path) -> None:
    given = {
        "KAGENT_BOOTSTRAP": "127.0.0.1:1",
        "KAGENT_DATA": str(tmp_path),
        "KAGENT_WORKER__WEB_HOST": "no.such.host.invalid",
    }
    answer = CliRunner(env=given).invoke(root, ["worker"])

    assert isinstance(answer.exception, SetupError)
    assert str(answer.exception).startswith(
        "worker.web_host no.such.host.invalid is no address of this machine"
    )
