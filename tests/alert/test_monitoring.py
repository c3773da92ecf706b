"""Prometheus' own tools judge what is shipped: the rules, and every query of the dashboard against a scraped worker."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from confluent_kafka import Producer
from prometheus_client import start_http_server

from kagent.contract.events import GroupEvent, TopicOffsets, encode
from kagent.contract.mute import MuteRecord
from kagent.embedded.broker import Broker, die_with_parent, free_port
from kagent.embedded.jars import cache
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import NewTopic
from kagent.kafka.topics import ensure
from kagent.pipeline.stream_metrics import Metrics as PipelineMetrics
from kagent.settings import Cluster, load

ROOT = Path(__file__).parents[2]
EVIL = "<script>alert(1)</script>"


def binary(name: str) -> str:
    found = shutil.which(name) or shutil.which(str(cache() / "debs" / "usr" / "bin" / name))
    return found or pytest.fail(f"{name} is missing: run `make debs`")


@pytest.mark.slow
def test_the_rules_fire_and_stay_quiet_as_their_tests_say() -> None:
    done = subprocess.run(
        [binary("promtool"), "test", "rules", "kagent.rules.test.yml"],
        cwd=ROOT / "deploy" / "prometheus",
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.kafka
@pytest.mark.slow
def test_a_real_prometheus_answers_every_query_of_the_dashboard_from_a_real_worker(
    own_broker: Callable[..., Broker], tmp_path: Path, eventually: Any
) -> None:
    broker, port, scraped, streamed = own_broker(), free_port(), free_port(), free_port()
    config = tmp_path / "kagent.yaml"
    values = {
        "clusters": {"main": {"bootstrap": broker.bootstrap}},
        "topics": {"partitions": 1},
        "worker": {"tick": 1, "sample": 1, "web_port": port, "web_host": "127.0.0.1", "data": str(tmp_path / "data")},
    }  # fmt: skip
    config.write_text(yaml.safe_dump(values))
    admin = Admin(Cluster(bootstrap=broker.bootstrap))
    ensure(admin, load(config).topics)
    assert not admin.create([NewTopic("orders", 1, 1)])
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(100):
        producer.produce("orders", b"x", partition=0)
    now = int(time.time() * 1000)
    for name in (EVIL, "plain"):
        commit = TopicOffsets("orders", None, [0], [40], [now], [1])
        event = GroupEvent("main", name, 0, now, [commit])
        producer.produce("kagent-group-events", encode(event), f"main/{name}", partition=0)
    producer.produce("kagent-group-events", b"not json", b"main/x", partition=0)
    mute = MuteRecord(until=now + 3_600_000, by="ada").to_bytes()
    producer.produce("kagent-mutes", mute, b"main/plain", partition=0)
    assert producer.flush(20) == 0
    prometheus = tmp_path / "prometheus.yml"
    jobs = [
        {
            "job_name": "kagent",
            "static_configs": [{"targets": [f"127.0.0.1:{port}", f"127.0.0.1:{streamed}"]}],
        }
    ]
    prometheus.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    commands = [
        [sys.executable, "-m", "kagent", "--config", str(config), "worker"],
        [
            binary("prometheus"),
            f"--config.file={prometheus}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{scraped}",
        ],
    ]
    exporter, _ = start_http_server(streamed, "127.0.0.1", PipelineMetrics("main").registry)
    with (tmp_path / "log").open("ab") as log:
        running = [subprocess.Popen(c, stdout=log, stderr=log, preexec_fn=die_with_parent) for c in commands]
    try:
        base = f"http://127.0.0.1:{port}"
        eventually("the worker is ready", lambda: _status(f"{base}/readyz") == 200)
        eventually("lag is shown", lambda: "kafka_consumergroup_lag{" in httpx.get(f"{base}/metrics").text)
        _pages(base)
        checked = subprocess.run(
            [binary("promtool"), "check", "metrics"],
            input=httpx.get(f"{base}/metrics").content,
            capture_output=True,
        )
        assert b"error" not in checked.stderr, checked.stderr

        def ask(query: str) -> Any:
            answer = httpx.get(f"http://127.0.0.1:{scraped}/api/v1/query", params={"query": query}).json()
            assert answer["status"] == "success", (query, answer)
            return answer["data"]["result"]

        lag = 'kafka_consumergroup_lag{consumergroup="plain"}'
        eventually("Prometheus has it", lambda: _up(scraped) and ask(lag))
        assert [float(sample["value"][1]) for sample in ask(lag)] == [60.0]
        assert ask(f'kafka_consumergroup_lag_sum{{consumergroup="{EVIL}"}}')
        assert ask("kagent_dead_letters_total")[0]["value"][1] == "1"
        panels = json.loads((ROOT / "deploy" / "grafana" / "kagent.json").read_text())["panels"]
        # nothing is open, no member is in the groups, no finding was dropped and no progress came
        silent = {
            "Open incidents",
            "Open incidents by severity",
            "Skew of the ten worst groups",
            "Lag by member of $group",
            "Findings not published, by reason",
            "Pipeline's delay",
            "Worker: age of the pipeline's progress",
        }

        empty: set[str] = set()

        def answered() -> bool:
            """Rates need two scrapes."""
            empty.clear()
            empty.update(p["title"] for p in panels for t in p["targets"] if not ask(_filled(t["expr"])))
            return empty <= silent

        eventually("every query of the dashboard has an answer", answered)
        (muted,) = ask('kagent_group_muted_until_seconds{group="plain"}')
        assert float(muted["value"][1]) == (now + 3_600_000) / 1000
        state = next(p["targets"][0]["expr"] for p in panels if p["type"] == "state-timeline")
        shown = {s["metric"]["group"]: s["value"][1] for s in ask(_filled(state))}
        assert shown == {EVIL: "3", "plain": "3"}  # without progress all are blind, which is worse than muted
        for name, label in (("cluster", "kagent_groups"), ("group", "kagent_group_blind")):
            found = httpx.get(
                f"http://127.0.0.1:{scraped}/api/v1/label/{name}/values", params={"match[]": label}
            )
            assert found.json()["data"], name
    finally:
        exporter.shutdown()
        for process in running:
            process.terminate()
        for process in running:
            process.wait(120)


def _filled(query: str) -> str:
    return query.replace("$group", ".*").replace("$cluster", ".*")


def _status(url: str) -> int:
    try:
        return httpx.get(url).status_code
    except httpx.HTTPError:
        return 0


def _up(port: int) -> bool:
    return _status(f"http://127.0.0.1:{port}/-/ready") == 200


def _pages(base: str) -> None:
    groups = orjson.loads(httpx.get(f"{base}/api/groups").content)["groups"]
    assert {g["group"] for g in groups} == {EVIL, "plain"}
    (one,) = orjson.loads(httpx.get(f"{base}/api/groups/plain").content)["groups"]
    assert [(p["partition"], p["committed"], p["lag"]) for p in one["partitions"]] == [(0, 40, 60)]
    assert httpx.get(f"{base}/api/groups/nobody").status_code == 404
    assert httpx.get(f"{base}/api/recommendations").json() == []
