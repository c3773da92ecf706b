"""Settings: file, variables, and sentences for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kagent.cli import root
from kagent.errors import SettingsError
from kagent.settings import Cluster, load, loaded_from


def test_a_variable_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("clusters: {main: {bootstrap: 'a:1'}}\npipeline: {trigger: 5, driver_memory: 2g}\n")
    monkeypatch.setenv("KAGENT_PIPELINE__TRIGGER", "2")
    monkeypatch.setenv("KAGENT_CLUSTERS__MAIN__BOOTSTRAP", "b:2")

    settings = load(file)

    assert (settings.pipeline.trigger, settings.pipeline.driver_memory) == (2.0, "2g")
    assert settings.cluster()[1].bootstrap == "b:2"


def test_a_variable_gives_a_setting_of_a_name_with_dashes_and_capitals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("clusters: {eu-west: {bootstrap: 'a:1'}, Prod: {bootstrap: 'b:1'}}\n")
    monkeypatch.setenv("KAGENT_CLUSTERS__EU_WEST__BOOTSTRAP", "c:1")
    monkeypatch.setenv("KAGENT_CLUSTERS__PROD__CLUSTER_ID", "abc")

    loaded = loaded_from(file)

    clusters = loaded.settings.clusters
    assert {name: cluster.bootstrap for name, cluster in clusters.items()} == {
        "eu-west": "c:1",
        "Prod": "b:1",
    }
    assert clusters["Prod"].cluster_id == "abc"
    assert loaded.given.named(("clusters", "eu-west", "bootstrap")) == "KAGENT_CLUSTERS__EU_WEST__BOOTSTRAP"


@pytest.mark.parametrize(
    ("given", "whole"),
    [("kafka", "kafka:9092"), ("a:1, b", "a:1,b:9092"), ("[::1]", "[::1]:9092"), ("[::1]:7", "[::1]:7")],
)
def test_an_address_without_a_port_gets_kafka_s_for_every_client(given: str, whole: str) -> None:
    assert Cluster(bootstrap=given).bootstrap == whole


TWO = "clusters: {main: {bootstrap: 'a:1', security: {protocol: SSL}}, other: {bootstrap: 'b:2'}}\n"


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_given_address_is_that_of_the_named_cluster(
    by_variable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text(TWO)
    if by_variable:
        monkeypatch.setenv("KAGENT_BOOTSTRAP", "c")
        monkeypatch.setenv("KAGENT_CLUSTER", "other")
    settings = load(file) if by_variable else load(file, "c", "other")

    assert settings.cluster("other")[1].bootstrap == "c:9092"
    assert list(settings.clusters) == ["other"]


def test_a_given_address_leaves_the_login_and_the_cluster_of_kagent_s_topics(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text(f"{TWO}home: other\n")

    settings = load(file, "c")

    assert settings.clusters["main"].bootstrap == "c:9092"
    assert settings.clusters["main"].security.protocol == "SSL"
    assert settings.home_cluster("main").bootstrap == "b:2"


@pytest.mark.parametrize("has_file", [False, True])
@pytest.mark.parametrize("given", ["::1", "http://a:1", "a:99999"])
def test_a_given_address_that_is_none_is_one_sentence(given: str, has_file: bool, tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text(TWO)

    answer = CliRunner().invoke(
        root, ["-b", given, *(["--config", str(file)] if has_file else []), "settings"]
    )

    assert isinstance(answer.exception, SettingsError)
    assert str(answer.exception).startswith("-b or KAGENT_BOOTSTRAP: must be host:port")


@pytest.mark.parametrize("given", ["::1", "::1:9092", "2001:db8::7", "a:1,::1"])
def test_an_ipv6_address_without_brackets_gets_an_example(given: str) -> None:
    with pytest.raises(ValueError, match=r"an IPv6 address stands in brackets, as in \[::1\]:9092"):
        Cluster(bootstrap=given)


def test_the_source_of_an_address_is_what_set_it(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text(f"{TWO}home: other\n")

    printed = CliRunner().invoke(root, ["settings", "--config", str(file), "-b", "c:3"]).output

    assert "bootstrap: c:3  # --bootstrap-server" in printed
    assert f"bootstrap: b:2  # {file}:1" in printed


def test_each_setting_of_a_group_is_a_line_with_its_source(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("groups:\n  - owner: team-a\n    match: a-*\n  - {match: b, ignore: true}\n")

    printed = CliRunner().invoke(root, ["settings", "--config", str(file)]).output

    assert f"groups:\n  - match: a-*  # {file}:3\n    owner: team-a  # {file}:2\n  - match: b" in printed
    assert yaml.safe_load(printed)["groups"] == [
        {"match": "a-*", "owner": "team-a"},
        {"match": "b", "ignore": True},
    ]


def test_an_address_and_the_login_of_one_cluster_come_from_two_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text("clusters: {eu-1: {security: {protocol: SASL_SSL, username: u}}}\n")
    monkeypatch.setenv("KAGENT_CLUSTERS__EU_1__SECURITY__PASSWORD", "p")

    found = load(file, bootstrap="b:9093")

    assert list(found.clusters) == ["eu-1"]
    assert found.clusters["eu-1"].bootstrap == "b:9093"
    assert found.clusters["eu-1"].security.secret() == "p"
    with pytest.raises(SettingsError, match="bootstrap: is missing"):
        load(file)


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


def test_commands_in_advice_name_the_settings_file_else_the_address(tmp_path: Path) -> None:
    file = tmp_path / "my kagent.yaml"
    file.write_text("clusters: {east: {bootstrap: 'a:1'}}")

    assert load(file).command_options("east") == f"--config '{file}' --cluster east"
    assert load(bootstrap="a:1").command_options("main") == "-b a:1 --cluster main"


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
