"""Logins and TLS of the web port: settings that contradict themselves are refused, and files that cannot be used are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kagent.errors import SettingsError
from kagent.settings import HttpSettings
from kagent.worker.http.security import allowed, server_tls


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"login": "token"}, "token"),
        ({"token": "x"}, "protect nothing"),
        ({"cert_file": "a.pem"}, "belong together"),
        ({"login": "basic"}, "login"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        HttpSettings(**values)


def test_a_token_file_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    settings = HttpSettings(login="token", token_file=file)
    assert allowed(settings, "/api/v1/status", {"Authorization": "Bearer one"})

    file.write_text("two\n")

    assert not allowed(settings, "/api/v1/status", {"Authorization": "Bearer one"})
    assert allowed(settings, "/api/v1/status", settings.login_headers())


def test_an_empty_token_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    settings = HttpSettings(login="token", token_file=tmp_path / "token")

    assert not allowed(settings, "/api/v1/status", {"Authorization": "Bearer "})


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    settings = HttpSettings(cert_file=tmp_path / "cert.pem", key_file=tmp_path / "cert.pem")

    with pytest.raises(SettingsError, match=r"cert\.pem"):
        server_tls(settings)
    with pytest.raises(SettingsError, match="ca_file"):
        HttpSettings(cert_file="a", key_file="b", ca_file=tmp_path / "none.pem").client_tls()


async def test_a_worker_with_a_certificate_speaks_tls_to_those_who_trust_its_authority() -> None:
    data = Path(__file__).parents[2] / "alert" / "data"
    here = data / "here.pem"
    settings = HttpSettings(cert_file=here, key_file=here, ca_file=data / "ca.pem")
    strangers = HttpSettings(cert_file=here, key_file=here)
    server = TestServer(web.Application(), scheme="https", host="127.0.0.1")
    await server.start_server(ssl=server_tls(settings))
    async with server, aiohttp.ClientSession() as session:
        async with session.get(server.make_url("/"), ssl=settings.client_tls() or True) as answer:
            assert answer.status == 404
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(server.make_url("/"), ssl=strangers.client_tls() or True)
