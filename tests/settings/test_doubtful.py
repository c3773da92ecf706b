"""Settings that are right by themselves and likely not meant have a note in `kagent settings`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kagent.cli import root
from tests.settings.test_forty_mistakes import checked

DOUBTFUL = [
    ("worker: {web_host: 0.0.0.0}", "worker.web_host: 0.0.0.0 lets in all who reach port 6066"),
    ("pipeline: {metrics_port: 6066}", "pipeline.metrics_port: 6066 is worker.web_port too"),
    ("redact_salt: abc", "redact_salt: has no effect without redact"),
    (
        "topics: {prefix: ''}",
        "topics.prefix: is empty, so kagent owns topics named mutes; the default is kagent-",
    ),
    ("worker: {sample: 1h}", "worker.sample: log ends that are up to 1h old do not show who is 1m late"),
]
RIGHT = [
    "worker: {web_host: 127.0.0.1}",
    "worker: {web_host: 0.0.0.0, http: {login: token, token: x}}",
    "pipeline: {metrics_port: 6067}",
    "pipeline: {metrics_port: 6066, metrics_host: 127.0.0.2}",
    "{redact_salt: abc, redact: [host]}",
    "{worker: {sample: 1m}, policy: {min_behind: 0}}",
]


@pytest.mark.parametrize(("text", "said"), DOUBTFUL)
def test_what_is_likely_not_meant_is_noted_with_its_line_and_right(
    text: str, said: str, tmp_path: Path
) -> None:
    note, right = checked(text, tmp_path).splitlines()

    assert note.startswith("note: ")
    assert f"kagent.yaml:1: {said}" in note
    assert right.startswith("The settings are right")


@pytest.mark.parametrize("text", RIGHT)
def test_what_may_be_meant_as_it_is_has_no_note(text: str, tmp_path: Path) -> None:
    assert "note:" not in checked(text, tmp_path)


def test_what_a_variable_opens_is_noted_by_its_name(tmp_path: Path) -> None:
    said = checked("home:", tmp_path, KAGENT_WORKER__WEB_HOST="::")

    assert "note: KAGENT_WORKER__WEB_HOST: worker.web_host: :: lets in all" in said


def test_a_cluster_that_no_filter_can_mean_is_named_though_the_destination_is_wrong_otherwise(
    tmp_path: Path,
) -> None:
    only = "only: {clusters: [mian, 5, '/(/']}"
    said = checked(
        "clusters: {main: {bootstrap: 'a:1'}}\nalert:\n  destinations:\n"
        f"    x: {{type: alertmanager, url: 'http://am:9093', {only}}}\n",
        tmp_path,
    )

    assert (
        "kagent.yaml:4: alert.destinations.x.only.clusters[0]: no cluster is named 'mian'; did you mean main?"
        in said
    )


def test_a_wrong_name_is_reported_at_its_own_line(tmp_path: Path) -> None:
    said = checked("clusters:\n  east coast:\n    bootstrap: a:1\n", tmp_path)

    assert "kagent.yaml:2: clusters.east coast: " in said


def test_what_a_section_lacks_is_reported_at_the_variable_that_made_it(tmp_path: Path) -> None:
    said = checked("clusters: {main: {bootstrap: 'a:1'}}", tmp_path, KAGENT_CLUSTERS__OTHER__CLUSTER_ID="x")

    assert "KAGENT_CLUSTERS__OTHER__CLUSTER_ID: clusters.other.bootstrap: is missing" in said
    assert "kagent.yaml:1: clusters.other" not in said


def test_a_variable_that_is_no_setting_is_suggested_in_capitals() -> None:
    answer = CliRunner().invoke(root, ["settings", "--check"], env={"kagent_config": "x"})

    said = f"{answer.output}{answer.exception or ''}"
    assert "kagent_config: is written in capitals; did you mean KAGENT_CONFIG?" in said


def test_beside_the_name_of_a_service_the_settings_of_its_type_are_listed(tmp_path: Path) -> None:
    said = checked("alert: {destinations: {x: {type: email, to: a@b}}}", tmp_path)

    assert "did you mean apprise, with url: mailto://…?" in said
    assert "x.to: there is no setting to; there are: only, retry_most, timeout, type, url, url_file" in said


@pytest.mark.parametrize(
    "template",
    [
        "{{ team | default('') }}{{ labels.team }}",
        "{% if team is defined %}{{ team }}{% endif %}",
        "{% for name, value in labels.items() %}{{ name }}={{ value }}{{ loop.index }}{% endfor %}",
        "{% set x = group %}{{ x | tojson }}{{ range(3) | list }}{{ skew_now is none }}",
    ],
)
def test_a_template_whose_names_are_its_own_or_may_be_missing_is_right(template: str, tmp_path: Path) -> None:
    hook = {"type": "webhook", "url": "https://x.example", "template": template}

    assert "settings are right" in checked(json.dumps({"alert": {"destinations": {"x": hook}}}), tmp_path)
