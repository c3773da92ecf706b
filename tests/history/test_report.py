"""The report stands by itself, shows what was said, and treats names as data."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import pytest
from plotly.offline import get_plotlyjs

from kagent.history import charts
from kagent.history.backtest import RESULT, _row
from kagent.history.past_evaluation import replay
from kagent.history.past_range import Range
from kagent.history.report import incidents, page, section
from kagent.offsets import decode
from kagent.policy import make_policy

EVIL = "</script><script>alert(1)</script>\x1b[2J"


def judged(past: Any, group: str) -> tuple[dict[str, Any], Range]:
    """The row of a group that went wrong, as a backtest gives it."""
    made = past(group=group)
    rows: list[dict[str, Any]] = []
    for raw in made.records():
        record = decode(raw["key"], raw["value"])
        base = {"source": 1, "source_offset": raw["offset"], "time": raw["timestamp"]}
        if record.type == 1 and record.value:
            about = {"kind": "lag", "topic": "t", "topic_id": None, "partition": record.key["partition"]}
            rows.append({**base, **about, "committed": record.value["offset"]})
        else:
            rows.append({**base, "kind": "changes", "message": orjson.dumps(record.to_json()).decode()})
    for end in made.ends():
        rows.append({**end, "kind": "ends", "log_start": 0, "stable_end": end["log_end"], "topic_id": None})
    within = Range(made.begin, made.begin + made.seconds * 1000)
    policy = make_policy({"settle": 30})
    (result,) = replay("main", group, rows, {"p": policy}, within.start, within.end, 10_000, 60_000)
    return dict(zip(RESULT.names, _row("main", group, result), strict=True)), within


@pytest.fixture(scope="module")
def evil(past: Any) -> tuple[dict[str, Any], Range]:
    """The row of a group with a name that would like to be markup."""
    return judged(past, EVIL)


def test_the_page_shows_each_figure_and_what_was_said_and_loads_nothing(evil: Any) -> None:
    row, within = evil
    heat = [(f"t-{p}", within.start + 60_000 * n, float(n * p)) for p in range(12) for n in range(5)]
    hot = {
        "topic": "t",
        "hot": [{"partition": 1, "times_mean": 2.0, "keys": [{"key_hex": "61", "share": 0.7}]}],
    }

    made = section(row, heat, 1.5, within, hot)
    html = page("Cluster main", within, [made])

    titles = [title for title, _ in made.figures]
    assert titles[:3] == ["Lag of each member", "Skew, threshold and incidents", "Lag by partition and time"]
    assert any(title.startswith("Before and after") for title in titles)
    assert titles[-1] == "Hot keys of t"
    assert made.messages[0]["status"] == "open"
    assert html.count('class="chart"') == len(titles)
    own = html.replace(get_plotlyjs(), "")
    assert "://" not in own


def test_a_group_named_like_markup_is_shown_not_run(evil: Any) -> None:
    row, within = evil

    html = page(EVIL, within, [section(row, [(f"{EVIL}-1", within.start, 1.0)], 1.5, within)])

    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert "&lt;/script&gt;" in html


@pytest.mark.slow
def test_the_figures_in_the_page_are_json_that_a_browser_reads(evil: Any) -> None:
    row, within = evil
    made = section(row, [], 1.5, within)

    html = page("x", within, [made])

    said = re.search(r"const figures = (.*);\n", html)
    assert said
    assert len(json.loads(said[1])) == len(made.figures)


def test_an_incident_lasts_from_open_to_resolved() -> None:
    said = [
        {"id": "a", "status": "open", "opened_at": 1, "as_of": 1, "verdict": "rebalance"},
        {"id": "a", "status": "updated", "opened_at": 1, "as_of": 3, "verdict": "rebalance"},
        {"id": "b", "status": "open", "opened_at": 4, "as_of": 4, "verdict": "stalled"},
        {"id": "b", "status": "superseded", "opened_at": 4, "as_of": 6, "verdict": "stalled"},
        {"id": "a", "status": "resolved", "opened_at": 1, "as_of": 9, "verdict": "rebalance"},
    ]

    assert [(i["start"], i["end"]) for i in incidents(said)] == [(1, 9), (4, None)]


def test_partitions_stand_in_their_order_and_nothing_is_no_figure() -> None:
    figure = charts.heat([("t-10", 0, 1.0), ("t-2", 0, 2.0)])

    assert figure is not None
    assert list(figure.data[0].y) == ["t-2", "t-10"]
    assert charts.heat([]) is None
    assert charts.member_lag([]) is None
    assert charts.skew([], 1.5, [], 0) is None
    assert charts.hot_keys([]) is None
    assert (
        page("empty", Range(0, 1000), []).count("No group has commits or recommendations in this time") == 1
    )
