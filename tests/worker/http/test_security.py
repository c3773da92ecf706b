"""Logins and TLS of the web port: settings that contradict themselves are refused, and files that cannot be used are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
