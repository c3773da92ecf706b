"""One file with forty different mistakes: each is named with its line, and with a suggestion where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kagent.cli import root

FORTY = [
    ("clusters:", None),
    ("  main:", None),
    ("    bootstrap: “broker:9092”", "U+201C (left double quotation mark): write 'broker:9092'"),
    ("    security:", None),
    ("      protocol: SASL_SSl", "did you mean SASL_SSL?"),
    ("      mechanism: SCRAM-SHA256", "did you mean SCRAM-SHA-256?"),
    ("      user_name: kagent", "did you mean username?"),
    ("      passwordfile: /run/x", "did you mean password_file?"),
    ("  west: {bootstrap: east:9092, clusterid: abc}", "did you mean cluster_id?"),
    ("  east: {bootstrap: east:9092}", None),
    ("  east: {bootstrap: east:9093}", "is given twice (first at line 10)"),
    ("home: maine", "did you mean main?"),
    ("topics:", None),
    ("  replicas: 3", "did you mean replication?"),
    ("  retention_hours: 36h30m", "did you mean 2190m?"),
    ("pipeline:", None),
    ("  trigger: 1 000 ms", "did you mean 1s?"),
    ("  driver_memory: 1,5g", "did you mean 1536m?"),
    ("  master: yarn-client", "did you mean yarn?"),
    ("  metrics_port: 9100/tcp", "did you mean 9100?"),
    ("  historyinterval: 10", "did you mean history_interval?"),
    ("  max_offsets_per_trigger: 2M", "did you mean 2000000?"),
    ("worker:", None),
    ("  tick: 10 s.", "did you mean 10s?"),
    ("  sample: 2 minuets", "did you mean 2m?"),
    ("  store: rocksdb:/var/lib", "did you mean rocksdb:///var/lib?"),
    ("  web_port: ':6066'", "did you mean 6066?"),
    ("  web_host: 0.0.0.0:6066", "did you mean 0.0.0.0?"),
    ("  http: {token_flie: /x}", "did you mean token_file?"),
    ("policy:", None),
    ("  threshold: 1.5x", "did you mean 1.5?"),
    ("  min_gain: 0,2", "did you mean 0.2?"),
    ("  max_move: 3", "did you mean max_moves?"),
    ("  hold: 60_000ms", "did you mean 1m?"),
    ("  evidence: high", "the default is 1"),
    ("  severity: {slow_members: page}", "did you mean slow_member?"),
    ("  labels: team=orders", "write {team: orders}"),
    ("  kind: librdkafka", "did you mean classic_librdkafka?"),
    ("  stateful: 'no, thanks'", "the default is false"),
    ("  runbook_url: wiki.example/kagent", "did you mean https://wiki.example/kagent?"),
    ("  min_behind: −5", "U+2212 (minus sign): write -5"),
    ("  thrеshold: 2", "U+0435 (cyrillic small letter ie)"),
    ("groups:", None),
    ("  - {match: '/orders-(?<n>[0-9]+)/'}", "did you mean (?P<…>?"),
    ("  - {match: '/orders-[0-9+/'}", "unterminated character set"),
    ("redact: [clientid]", "did you mean client_id?"),
    ("alert:", None),
    ("  destinations:", None),
    ("    pd: {type: pagerduty, integration_key: k}", "did you mean routing_key?"),
    ("    am: {type: alertmanager, urls: ['https://am']}", "did you mean url?"),
    ("    wh: {type: webhook, url: 'https://x', severity: page}", "it belongs in only.severity"),
]


def checked(text: str, tmp_path: Path, **variables: str) -> str:
    file = tmp_path / "kagent.yaml"
    file.write_text(text, encoding="utf-8")
    answer = CliRunner().invoke(root, ["--config", str(file), "settings", "--check"], env=variables)
    return f"{answer.output}{answer.exception or ''}"


def test_each_of_forty_mistakes_is_named_once_with_its_line_and_what_was_meant(tmp_path: Path) -> None:
    wrong = {line: said for line, (_, said) in enumerate(FORTY, 1) if said}
    first, *lines = checked("\n".join(text for text, _ in FORTY), tmp_path).splitlines()
    named = {int(line.split("kagent.yaml:")[1].split(":")[0]): line for line in lines}

    assert len(wrong) == 40
    assert first == "The settings have 40 mistakes:"
    assert [line for line, said in wrong.items() if said not in named.get(line, "")] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy:\n  threshold: 2\n  min_behind:30s\n", ":3:3 is not YAML (while scanning a simple key"),
        ("ignore:\n  - \"test-*\n\n\n", ":2:5 is not YAML (while scanning a quoted scalar"),
        ("pipeline:\n  trigger: 1s\n  master: \tx\n  data:\ty: z\n", "is not YAML (a tab; write spaces)"),
        ("# settings\n\n- home: main\n", ":3 must hold names and values; take out the dashes"),
        ("policy:\n  owner: \"C:\\path\"\n", ":2:14 is not YAML (while scanning a double-quoted scalar, found unknown escape"),
        ("policy: {hold: ${HOLD:-5m}}\n", "variables such as ${NAME} are not replaced"),
        ("policy: {threshold: 2}}\n", ": a } too many"),
        ("policy:\n  trigger = 1s\n", "policy: must hold names and values, not 'trigger = 1s'"),
        ("pipeline:\n  trigger = 1s\n", "write {trigger: 1s}"),
        ("pipeline: {master: 'local[2'}", "did you mean local[2]?"),
        ("clusters: {main: {bootstrap: '{{ broker }}'}}", "variables are not replaced in the file"),
        ("groups:\n", ":1: groups: must be a list, and is empty: leave it out"),
        ("groups: [{match: '^orders-[0-9]+$'}]", "a regular expression stands between slashes: '/^orders-[0-9]+$/'"),
        ("groups: [{match: '/orders/i'}]", "flags stand at the beginning of a regular expression: '/(?i)orders/'"),
        ("groups: [{match: 'orders, payments'}]", "is one pattern, comma included"),
        ("policy: {owner: ‘team’}", ":1: the quotes around owner are none to YAML"),
        ("[general]\npidfile = \"x\"\n", ":1 is not YAML: a [section] is of TOML, INI or properties"),
        ("# Kafka\n\nbootstrap.servers=a:1\n", ":3 is not YAML: name = value is of TOML, INI or properties"),
        ("alert: {destinations: {x: {type: apprise, url: slack://a:b: c}}}", "a text with a colon and a space must stand in quotes"),
        ("policy: {threshold: 2}\n---\nhome: main\n", ":2:1 is not YAML (expected a single document"),
        ("home: main\n---\ndata: x\n", "three dashes begin a second document: put all in one"),
        ("policy:\u00a0{threshold: 2}", "it holds U+00A0 (no-break space)"),
    ],
)  # fmt: skip
def test_the_form_of_the_file_is_named_where_it_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    assert said in checked(text, tmp_path)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("KAGENT_WORKER__HTTP_LOGIN", "token", "did you mean KAGENT_WORKER__HTTP__LOGIN?"),
        ("KAGENT_GROUPS__0__MATCH", "a", "a list is JSON in one variable, such as KAGENT_GROUPS='[…]'"),
        ("KAGENT_GROUPS", "[{'match': 'a'}]", """must hold JSON; write '[{"match": "a"}]'"""),
        ("KAGENT_ALERT__DESTINATIONS", "{'x': {'type': 'a'}}", "must hold JSON, whose texts stand in double quotes"),
        ("KAGENT_BOOTSTRAP", "http://a", "did you mean a:9092?"),
        ("KAGENT_CLUSTER", "east-1", "No cluster named 'east-1' is configured; there are: east; did you mean east?"),
    ],
)  # fmt: skip
def test_a_variable_is_named_with_what_was_meant(
    variable: str, value: str, said: str, tmp_path: Path
) -> None:
    shown = checked("clusters: {east: {bootstrap: 'a:1'}}\n", tmp_path, **{variable: value})

    assert said in shown
    assert not shown.endswith("?.")


def test_what_is_missing_repeats_no_secret_that_stands_beside_it(tmp_path: Path) -> None:
    shown = checked("alert: {destinations: {pager: {routing_key: s3cret}}}\n", tmp_path)
    by_variable = checked("", tmp_path, KAGENT_ALERT__DESTINATIONS__PAGER__ROUTING_KEY="s3cret")

    assert "type is missing" in shown
    assert "type is missing" in by_variable
    assert "s3cret" not in shown + by_variable
