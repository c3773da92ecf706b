"""The metrics: one table, one page, names from Kafka made harmless, series bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families as parsed
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from kagent.pipeline.stream_metrics import Metrics as PipelineMetrics
from kagent.worker.http.metrics import (
    METRICS,
    GroupSample,
    MemberSample,
    PartitionSample,
    SeriesLimits,
    WorkerView,
    exposition,
)
from kagent.worker.http.models import UsefulMembers
from kagent.worker.latency import BOUNDS, Delays, Histogram

ROOT = Path(__file__).parents[3]
EVIL = ["<script>alert(1)</script>", "a\x1b[2J\n} 1", 'a"b\\', "x" * 32_000, "x" * 31_999]


def group(name: str, partitions: int = 2) -> GroupSample:
    parts = [PartitionSample("orders", p, 10, 5 + p, 1.5, 0) for p in range(partitions)]
    member = MemberSample("client-1 /10.0.0.1", "client-1-abc", "client-1", "/10.0.0.1", 11.0)
    return GroupSample("main", name, parts, [member], 1.5, "rebalance", False, ("rebalance", "ticket"), 0.1)


def samples(view: WorkerView, limits: SeriesLimits | None = None) -> list[tuple[str, dict[str, str], float]]:
    text = exposition(view, limits).decode()
    return [(s.name, s.labels, s.value) for family in parsed(text) for s in family.samples]


def bare(name: str) -> str:
    """A histogram's own name."""
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return base if base in METRICS and METRICS[base].kind == "histogram" else name


def test_every_metric_of_the_table_is_shown_with_its_labels_and_no_other() -> None:
    view = WorkerView(
        [
            replace(
                group("g"),
                set_aside="its judgement failed",
                as_of_ms=1_000,
                muted_until_ms=1_760_000_000_000,
                useful=UsefulMembers(4, 4, "spread"),
            )
        ],
        {"main": 2.0},
        3.0,
        True,
        7,
        1,
        {"unconfirmed": 2},
        5,
        {"event": Histogram()},
        {("main", "opened"): 3},
        {("event", "not_json"): 1},
        {("lag", "missing_field"): 1},
        {("main", "learning"): 3},
        {"main": 1_760_000_000_000},
        {"main": 0.5},
        applied={"applied": 1},
    )
    found = samples(view)

    labels = {bare(name): tuple(sorted(set(said) - {"le"})) for name, said, _ in found}
    assert labels == {about.name: tuple(sorted(about.labels)) for about in METRICS.values()}


def test_lag_is_found_under_the_names_dashboards_ask_for() -> None:
    found = samples(WorkerView([group("g")]))

    lag = [(s["partition"], v) for name, s, v in found if name == "kafka_consumergroup_lag"]
    assert lag == [("0", 5), ("1", 6)]
    assert [v for name, _, v in found if name == "kafka_consumergroup_group_sum_lag"] == [11]


def test_hostile_names_stay_apart_and_harmless() -> None:
    found = samples(WorkerView([group(name) for name in EVIL]))

    names = [s["group"] for name, s, _ in found if name == "kagent_group_skew"]
    assert len(set(names)) == len(EVIL)
    assert all(name.isprintable() and len(name) < 300 for name in names)


def test_the_page_is_written_as_prometheus_client_writes_it() -> None:
    page = exposition(
        WorkerView([group(name) for name in EVIL], {"main": 0.1 + 0.2}, 1e22, True, 2**53)
    ).decode()

    class Read(Collector):
        def collect(self) -> Iterator[Metric]:
            return iter(parsed(page))

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Read())
    assert sorted(generate_latest(registry).decode().splitlines()) == sorted(page.splitlines())


@given(st.floats() | st.integers(0, 2**62))
@example(999_999.5)
@example(1_000_000)
def test_numbers_are_written_as_prometheus_client_writes_them(value: float) -> None:
    page = exposition(WorkerView(tick_age=value)).decode()

    (line,) = (x for x in page.splitlines() if x.startswith("kagent_last_tick_age_seconds "))
    assert line.partition(" ")[2] == floatToGoString(value)  # type: ignore[no-untyped-call]


def test_series_are_bounded_and_what_is_left_out_is_counted() -> None:
    found = samples(WorkerView([group(f"g{i}") for i in range(100)]), SeriesLimits(series=90))

    assert sum(name == "kafka_consumergroup_lag" for name, _, _ in found) == 20
    assert sum(name == "kagent_group_skew" for name, _, _ in found) == 100
    assert [v for name, _, v in found if name == "kagent_series_left_out"] == [90 * 9]


def test_of_too_many_groups_those_that_matter_are_shown() -> None:
    groups = [GroupSample("main", f"g{i}", [PartitionSample("t", 0, 1, i, 0.0)]) for i in range(50)]
    groups.append(GroupSample("main", "sick", incident=("stalled", "page")))

    found = samples(WorkerView(groups), SeriesLimits(groups=3))

    assert [s["group"] for name, s, _ in found if name == "kagent_group_blind"] == ["sick", "g49", "g48"]
    assert [v for name, _, v in found if name == "kagent_groups_left_out"] == [48]
    assert [v for name, _, v in found if name == "kagent_groups"] == [51]


def test_delays_are_counted_by_stage_and_never_negative() -> None:
    delays = Delays()
    for milliseconds in (-50, 100, 101, 4_000, 9_999_999):
        delays.add("event", milliseconds)

    found = [
        (s, v)
        for name, s, v in samples(WorkerView(delays=delays.stages))
        if name == "kagent_delay_seconds_bucket"
    ]
    event = {s["le"]: v for s, v in found if s["stage"] == "event"}

    assert [float(bound) for bound in event] == [*BOUNDS, float("inf")]
    assert (event["0.1"], event["0.25"], event["5.0"], event["3600.0"], event["+Inf"]) == (2, 3, 4, 4, 5)
    assert all(v == 0 for s, v in found if s["stage"] == "whole")


@pytest.mark.parametrize("file", ["deploy/prometheus/kagent.rules.yml", "deploy/grafana/kagent.json"])
def test_rules_and_dashboard_ask_for_metrics_that_exist(file: str) -> None:
    text = (ROOT / file).read_text()
    if file.endswith(".json"):
        queries = [t["expr"] for p in json.loads(text)["panels"] for t in p["targets"]]
    else:
        queries = [r["expr"] for g in yaml.safe_load(text)["groups"] for r in g["rules"]]

    asked = {bare(name) for query in queries for name in re.findall(r"\b(?:kagent|kafka)_\w+", query)}

    assert any(name.startswith("kagent_pipeline_") for name in asked)
    assert asked <= set(METRICS) | pipeline_metrics()


def pipeline_metrics() -> set[str]:
    registry = PipelineMetrics("main").registry
    return {sample.name for family in registry.collect() for sample in family.samples}


def test_only_what_is_muted_has_the_metric_of_mutes() -> None:
    groups = [group("open"), replace(group("silent"), muted_until_ms=1_760_000_000_000)]
    found = samples(WorkerView(groups))

    assert [(s["group"], v) for name, s, v in found if name == "kagent_group_muted_until_seconds"] == [
        ("silent", 1_760_000_000.0)
    ]


def test_the_dashboard_filters_by_cluster_and_group_and_links_to_the_page() -> None:
    dashboard = json.loads((ROOT / "deploy/grafana/kagent.json").read_text())
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    linked = [p["title"] for p in dashboard["panels"] if p["fieldConfig"]["defaults"].get("links")]

    assert set(variables) == {"datasource", "cluster", "group", "page"}
    assert "$cluster" in variables["group"]["query"]
    assert {p["type"] for p in dashboard["panels"]} >= {"stat", "state-timeline", "table", "timeseries"}
    assert len(linked) >= 5
    by_group = [p for p in dashboard["panels"] if "by (cluster, group" in p["targets"][0]["expr"]]
    assert all("$cluster" in p["targets"][0]["expr"] for p in by_group)


def test_no_two_panels_lie_on_each_other() -> None:
    dashboard = json.loads((ROOT / "deploy/grafana/kagent.json").read_text())
    cells = [
        (x, y)
        for at in (p["gridPos"] for p in dashboard["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
