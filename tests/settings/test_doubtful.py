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
    ("policy: {min_behind: 30000}", "policy.min_behind: 30000 without a unit is 8.3h; did you mean 30s? If not, write 30000s."),
    ("topics: {retention_hours: 86400000}", "topics.retention_hours: 86400000 without a unit is 3,600,000d; did you mean 1d? If not, write 86400000h."),
    ("worker: {keep_resolved_hours: 604800}", "worker.keep_resolved_hours: 604800 without a unit is 25,200d; did you mean 7d?"),
    ("groups: [{match: a, hold: 60000}]", "groups[0].hold: 60000 without a unit is 16.7h; did you mean 1m?"),
    ("clusters: {main: {bootstrap: b9092}}", "clusters.main.bootstrap: names no port, so b9092:9092 is used; did you mean b:9092?"),
    ("clusters: {main: {bootstrap: '10.0.0.1:9092,10.0.0.2'}}", "clusters.main.bootstrap: names no port, so 10.0.0.2:9092 is used."),
    ("clusters: {a: {bootstrap: 'b:1,c:1'}, d: {bootstrap: 'c:1,b:1'}}", "clusters.d.bootstrap: is the address of a too"),
    ("clusters: {a: {bootstrap: 'b:1'}, A: {bootstrap: 'c:1'}}", "clusters.A: a variable cannot tell this name from a"),
    ("clusters: {a-b: {bootstrap: 'b:1'}, a_b: {bootstrap: 'c:1'}}", "clusters.a_b: a variable cannot tell this name from a-b"),
    ("policy: {severity: {balanced: page}}", "policy.severity.balanced: no incident has the verdict balanced, so this has no effect"),
    ("alert: {destinations: {x: {type: alertmanager, url: 'https://x', only: {verdicts: [balanced]}}}}", "alert.destinations.x.only.verdicts[0]: no incident has the verdict balanced, so nothing is sent here"),
    ("policy: {update_every: 1h}", "policy.update_every: 1h is more than valid (15m)"),
    ("groups: [{match: a, valid: 1m, update_every: 2m}]", "groups[0].update_every: 2m is more than valid (1m)"),
    ("alert: {destinations: {x: {type: pagerduty, routing_key: /run/secrets/pd}}}", "alert.destinations.x.routing_key: is itself used, and looks like a path; for what stands in that file write routing_key_file."),
    ("worker: {http: {login: token, token: $TOKEN}}", "worker.http.token: looks like a variable, and none is replaced; set KAGENT_WORKER__HTTP__TOKEN or token_file."),
    ("clusters: {main: {bootstrap: 'a:9092,zk:2181'}}", "clusters.main.bootstrap: zk:2181 has the usual port of ZooKeeper"),
    ("worker: {advertised_host: localhost}", "worker.advertised_host: is this machine alone"),
    ("ignore: ['a', '*']", "ignore leaves out every group by '*', so none is judged."),
    ("worker: {http: {login: token, token: Bearer abc}}", "worker.http.token: begins with Bearer"),
    ("alert: {destinations: {x: {type: pagerduty, routing_key: 'https://x.example'}}}", "alert.destinations.x.routing_key: is an address; write the secret itself."),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x', secret: ''}}}", "alert.destinations.x.secret: is empty, as if it were not set"),
    ("{redact: [host], redact_salt: ''}", "redact_salt: is empty, as if it were not set"),
    ("{redact: [host], policy: {apply: auto}}", "policy.apply: auto can apply nothing here: with redact, member ids are hashes."),
    ("{policy: {stateful: true}, groups: [{match: a, apply: auto}]}", "groups[0].apply: auto can apply nothing here: with stateful: true"),
    ("groups: [{match: a, apply: auto, kind: streams}]", "groups[0].apply: auto can apply nothing here: only groups of kind consumer take plans so, not streams."),
    ("groups: [{match: a, apply: auto, ignore: true}]", "groups[0].apply: auto can apply nothing here: with ignore: true"),
    ("pipeline: {trigger: 500}", "pipeline.trigger: 500 without a unit is 8.3m; did you mean 500ms? If not, write 500s."),
    ("policy: {idle_after: 7}", "policy.idle_after: 7 without a unit is 7s; did you mean 7d? If not, write 7s."),
    ("policy: {cooldown: 0.5}", "policy.cooldown: 0.5 without a unit is 0.5s; did you mean 30m? If not, write 0.5s."),
    ("groups: [{match: orders.*}]", "groups[0].match: orders.* matches what begins with orders and a dot; for all that begins with orders write orders*. If not, write orders[.]*."),
    ("worker: {web_port: 08080}", "worker.web_port: 08080 is read as 8080; write it without the zero."),
    ("pipeline: {history_interval: 5s}", "pipeline.history_interval: has no effect without history"),
    ("pipeline: {metrics_host: 127.0.0.1}", "pipeline.metrics_host: has no effect without metrics_port"),
    ("worker: {sample: 1h}", "worker.sample: log ends that are up to 1h old do not show who is 1m late"),
]  # fmt: skip
RIGHT = [
    "worker: {web_host: 127.0.0.1}",
    "worker: {web_host: 0.0.0.0, http: {login: token, token: x}}",
    "pipeline: {metrics_port: 6067}",
    "pipeline: {metrics_port: 6066, metrics_host: 127.0.0.2}",
    "{redact_salt: abc, redact: [host]}",
    "{worker: {sample: 1m}, policy: {min_behind: 0}}",
    "policy: {idle_after: 604800, absent_after: 36000, hold: 1500, min_behind: 30000s}",
    "worker: {keep_resolved_hours: 2160}",
    "clusters: {a: {bootstrap: '[::1]:9092, b:9092'}, b: {bootstrap: 'c:9092'}}",
    "policy: {threshold: 1.2}",
    "{policy: {apply: auto}, groups: [{match: a, ignore: true}, {match: b, stateful: true}]}",
    "pipeline: {history_interval: 10s, trigger: 5, metrics_host: 0.0.0.0}",
    "groups: [{match: 'orders[.]*'}, {match: com.acme.*}]",
    "policy: {hold: 5, cooldown: 30, idle_after: 7s, owner: '007'}",
    "{ignore: ['*'], groups: [{match: 'a-*', ignore: false}]}",
    "pipeline: {options: {spark.sql.shuffle.partitions: 2, spark.speculation: true, spark.x: '${spark.y}'}}",
    "alert: {destinations: {x: {type: webhook, url: 'https://x.example', template: '{{ group }}'}}}",
    "policy: {labels: {run_file: 'https://wiki.example'}}",
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


def test_a_variable_that_is_near_another_is_noted(tmp_path: Path) -> None:
    text = "clusters: {eu-west: {bootstrap: 'b:1'}}"
    other = checked(text, tmp_path, KAGENT_CLUSTERS__EUWEST__BOOTSTRAP="c:1")
    same = checked(text, tmp_path, KAGENT_CLUSTERS__EU_WEST__BOOTSTRAP="c:1")
    unread = checked(text, tmp_path, KAGENTPOLICY__THRESHOLD="2", KAGENTISH="x")

    assert "adds a cluster euwest; variables of eu-west begin with KAGENT_CLUSTERS__EU_WEST__." in other
    assert "note:" not in same
    assert "KAGENTPOLICY__THRESHOLD is not read; did you mean KAGENT_POLICY__THRESHOLD?" in unread
    assert "KAGENTISH" not in unread


def test_an_address_without_a_port_is_noted_wherever_it_comes_from(tmp_path: Path) -> None:
    said = checked("home:", tmp_path, KAGENT_BOOTSTRAP="broker")
    of_a_cluster = checked("home:", tmp_path, KAGENT_CLUSTERS__MAIN__BOOTSTRAP="broker")

    assert "note: KAGENT_BOOTSTRAP: names no port, so broker:9092 is used." in said
    assert "note: KAGENT_CLUSTERS__MAIN__BOOTSTRAP: clusters.main.bootstrap: names no port" in of_a_cluster


def test_notes_about_what_is_right_are_printed_beside_mistakes(tmp_path: Path) -> None:
    said = checked(
        "worker: {web_port: six, web_host: 0.0.0.0}\n"
        "clusters: {main: {bootstrap: b, security: {protocol: SSL, ca_file: /nowhere/ca.pem}}}\n",
        tmp_path,
    )

    assert "worker.web_port: must be a whole number" in said
    assert "kagent.yaml:1: worker.web_host: 0.0.0.0 lets in all" in said
    assert "kagent.yaml:2: clusters.main.bootstrap: names no port" in said
    assert "kagent.yaml:2: clusters.main.security.ca_file: this machine has no file /nowhere/ca.pem" in said


def test_a_keystore_in_the_place_of_a_pem_file_is_noted(tmp_path: Path) -> None:
    security = "{protocol: SSL, ca_file: /x/trust.jks}"
    said = checked(f"clusters: {{main: {{bootstrap: 'b:1', security: {security}}}}}", tmp_path)

    assert "clusters.main.security.ca_file: must be a PEM file, and .jks is a keystore's name" in said


def test_a_note_that_rests_on_what_is_wrong_is_not_printed(tmp_path: Path) -> None:
    said = checked("worker: {web_host: 0.0.0.0, http: {login: tokn}}", tmp_path)

    assert "did you mean token?" in said
    assert "lets in all" not in said


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("clusters: {main: {bootstrap: 'b:1', security: {protocol: SASL_SSL, username: u, password_file: %s}}}", "password"),
        ("alert: {destinations: {x: {type: pagerduty, routing_key_file: %s}}}", "routing_key"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("secret", ["s3cr3t!", "R0123456789ABC", "AbC+/dEf=="])
def test_a_secret_in_the_place_of_its_file_is_not_repeated(
    text: str, meant: str, secret: str, tmp_path: Path
) -> None:
    said = checked(text % json.dumps(secret), tmp_path)

    assert secret not in said
    assert f"does not look like a path; a secret itself is written as {meant}." in said


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
