"""Settings: file, variables, and sentences for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kagent.cli import root
from kagent.errors import SettingsError
from kagent.settings import Cluster, load


def test_a_variable_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("clusters: {main: {bootstrap: 'a:1'}}\npipeline: {trigger: 5, driver_memory: 2g}\n")
    monkeypatch.setenv("KAGENT_PIPELINE__TRIGGER", "2")
    monkeypatch.setenv("KAGENT_CLUSTERS__MAIN__BOOTSTRAP", "b:2")

    settings = load(file)

    assert (settings.pipeline.trigger, settings.pipeline.driver_memory) == (2.0, "2g")
    assert settings.cluster()[1].bootstrap == "b:2"


@pytest.mark.parametrize(
    ("given", "whole"),
    [("kafka", "kafka:9092"), ("a:1, b", "a:1,b:9092"), ("[::1]", "[::1]:9092"), ("[::1]:7", "[::1]:7")],
)
def test_an_address_without_a_port_gets_kafka_s_for_every_client(given: str, whole: str) -> None:
    assert Cluster(bootstrap=given).bootstrap == whole


def test_a_wrong_field_is_named(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL}}}\n")

    with pytest.raises(SettingsError, match=r"clusters\.main\.security: .*needs username"):
        load(file)


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("cluster: x\n")

    with pytest.raises(
        SettingsError, match=r"kagent\.yaml:1: there is no setting cluster; did you mean clusters\?"
    ):
        load(file)


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "KAGENT_CLUSTERS",
        '{"main": {"bootstrap": "a:1", "security": {"protocol": "SASL_SSL", "username": "u", "password": "hunter2"}}}',
    )

    result = CliRunner().invoke(root, ["settings"])

    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert "**********" in result.output


def test_the_salt_of_hidden_names_is_a_secret_from_a_variable_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "salt"
    file.write_text("pepper\n")
    monkeypatch.setenv("KAGENT_REDACT", '["host"]')
    monkeypatch.setenv("KAGENT_REDACT_SALT_FILE", str(file))
    assert (load().redact, load().salt()) == (["host"], "pepper")

    monkeypatch.delenv("KAGENT_REDACT_SALT_FILE")
    monkeypatch.setenv("KAGENT_REDACT_SALT", "chili")
    assert load().salt() == "chili"
    assert "chili" not in load().model_dump_json()


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ({}, "--bootstrap-server a:1"),
        ({"command_config": "/etc/my kafka.properties"}, "--bootstrap-server a:1 --command-config '/etc/my kafka.properties'"),
        ({"security": {"protocol": "SSL"}}, "--bootstrap-server a:1 --command-config client.properties"),
    ],
)  # fmt: skip
def test_advice_names_the_cluster_and_the_login_file_of_kafkas_tools(
    said: dict[str, Any], options: str
) -> None:
    assert Cluster.model_validate({"bootstrap": "a:1", **said}).tool_options() == options
