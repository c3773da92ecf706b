"""One description of a cluster becomes what each client wants."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kagent.errors import SettingsError
from kagent.kafka import clients
from kagent.settings import Cluster

if TYPE_CHECKING:
    from tests.fixtures.certificates import Certificates

SASL = Cluster.model_validate(
    {
        "bootstrap": "a:1,b:2",
        "security": {
            "protocol": "SASL_SSL",
            "mechanism": "SCRAM-SHA-512",
            "username": "u",
            "password": 'p"w\\',
        },
    }
)


def test_every_client_gets_the_same_login() -> None:
    assert clients.confluent(SASL)["sasl.password"] == 'p"w\\'
    assert clients.aiokafka(SASL)["sasl_plain_password"] == 'p"w\\'
    assert clients.aiokafka(SASL)["ssl_context"].check_hostname
    url, credentials = clients.faust_broker(SASL)
    assert (url, credentials.username, credentials.password) == ("kafka://a:1;kafka://b:2", "u", 'p"w\\')


def test_a_password_cannot_break_out_of_the_jaas_line() -> None:
    jaas = clients.spark(SASL)["kafka.sasl.jaas.config"]

    assert jaas.endswith('scram.ScramLoginModule required username="u" password="p\\"w\\\\";')


def test_the_password_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    raw = {"protocol": "SASL_PLAINTEXT", "username": "u", "password_file": str(tmp_path / "secret")}

    assert (
        clients.confluent(Cluster.model_validate({"bootstrap": "a:1", "security": raw}))["sasl.password"]
        == "hunter2"
    )


def test_a_missing_authority_is_one_sentence(tmp_path: Path) -> None:
    raw = {"protocol": "SSL", "ca_file": str(tmp_path / "none.pem")}

    with pytest.raises(SettingsError, match=r"none\.pem of security\.ca_file cannot be read"):
        clients.aiokafka(Cluster.model_validate({"bootstrap": "a:1", "security": raw}))


def test_secrets_do_not_show() -> None:
    assert 'p"w' not in str(clients.masked({**clients.spark(SASL), **clients.confluent(SASL)}))


@pytest.mark.parametrize("setting", ["ca_file", "cert_file"])
def test_a_tls_file_that_is_missing_is_named_by_every_client(setting: str) -> None:
    security = {"protocol": "SSL", setting: "/nowhere/file.pem"}
    if setting == "cert_file":
        security["key_file"] = "/nowhere/file.pem"
    cluster = Cluster.model_validate({"bootstrap": "a:1", "security": security})

    for made in (clients.confluent, clients.aiokafka, clients.faust_broker):
        with pytest.raises(SettingsError, match=rf"/nowhere/file.pem of security.{setting} cannot be read"):
            made(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["confluent", "aiokafka", "faust_broker"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ca_file": "garbage"}, r"garbage of security\.ca_file holds no certificate"),
        ({"cert_file": "garbage", "key_file": "garbage"}, r"security\.cert_file and key_file cannot be used"),
        ({"cert_file": "certificate", "key_file": "locked"}, r"security\.key_password where the key has one"),
    ],
)
def test_a_file_that_is_no_certificate_is_a_sentence(
    tmp_path: Path, certificates: Certificates, client: str, given: dict[str, str], said: str
) -> None:
    (tmp_path / "garbage").write_text("no certificate")
    made = certificates.made("IP:127.0.0.1")
    (tmp_path / "certificate").write_text(made.read_text())
    locked = [
        "openssl",
        "pkey",
        "-in",
        str(made),
        "-aes256",
        "-passout",
        "pass:x",
        "-out",
        str(tmp_path / "locked"),
    ]
    subprocess.run(locked, check=True, capture_output=True)
    security = {"protocol": "SSL", **{name: str(tmp_path / file) for name, file in given.items()}}

    with pytest.raises(SettingsError, match=said):
        getattr(clients, client)(Cluster.model_validate({"bootstrap": "a:1", "security": security}))
