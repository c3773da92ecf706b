"""One self-contained HTML page about a group or a cluster: its past, what was (or would have been) published, and the gain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
from jinja2 import Environment, PackageLoader

from kagent.contract.words import verdict_words
from kagent.history import charts
from kagent.history.backtest import readable
from kagent.history.past_range import Range
from kagent.text import partition_name, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# About as many columns as a chart has room for, however long the range is.
BUCKETS = 200
MOST_PARTITIONS = 200
MOST_RECOMMENDATIONS = 6
Cell = tuple[str, int, float]


@dataclass(frozen=True, slots=True)
class Section:
    """One group of the page. ``figures``: title and Plotly JSON."""

    group: str
    facts: Sequence[str]
    messages: Sequence[Mapping[str, str]]
    figures: Sequence[tuple[str, str]] = field(default_factory=tuple)


def cells(rows: DataFrame, within: Range, groups: Sequence[str]) -> dict[str, list[Cell]]:
    """Group → (partition, time, greatest lag in that stretch), the partitions with the most lag."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    width = max(1, (within.end - within.start) // BUCKETS)
    lag = rows.where(rows["group"].isin(list(groups))).where("kind = 'lag' AND committed IS NOT NULL")
    ends = rows.where(rows["group"].isin(list(groups))).where("kind = 'ends'")
    bucket = f"CAST((time - {within.start}) div {width} AS int) AS bucket"
    inside = f"time BETWEEN {within.start} AND {within.end}"
    by = ["group", "topic", "partition", "bucket"]
    committed = lag.where(inside).selectExpr("*", bucket).groupBy(*by).agg(F.max("committed").alias("c"))
    end = ends.where(inside).selectExpr("*", bucket).groupBy(*by).agg(F.max("log_end").alias("e"))
    with readable():
        both = committed.join(end, by, "full").orderBy("bucket").toArrow().to_pylist()
    found: dict[str, list[Cell]] = {}
    last: dict[tuple[str, str, int], dict[str, int]] = {}
    for row in both:
        known = last.setdefault((row["group"], row["topic"], row["partition"]), {})
        # Rows are only written when something changed: the last value stands until then.
        known |= {name: row[name] for name in ("c", "e") if row[name] is not None}
        if len(known) == 2:
            time = within.start + row["bucket"] * width
            cell = (
                partition_name(row["topic"], row["partition"]),
                time,
                float(max(0, known["e"] - known["c"])),
            )
            found.setdefault(row["group"], []).append(cell)
    return {group: _heaviest(some) for group, some in found.items()}


def _heaviest(some: Sequence[Cell]) -> list[Cell]:
    most: dict[str, float] = {}
    for name, _, lag in some:
        most[name] = max(most.get(name, 0.0), lag)
    kept = set(sorted(most, key=lambda name: -most[name])[:MOST_PARTITIONS])
    return [cell for cell in some if cell[0] in kept]


def section(
    row: Mapping[str, Any],
    heat: Sequence[Cell],
    threshold: float,
    within: Range,
    hot: Mapping[str, Any] | None = None,
) -> Section:
    """A group's section from its row of the backtest."""
    messages, ticks = orjson.loads(row["messages"]), orjson.loads(row["ticks"])
    spans = incidents(messages)
    made = [
        ("Lag of each member", charts.member_lag(ticks)),
        ("Skew, threshold and incidents", charts.skew(ticks, threshold, spans, within.end)),
        ("Lag by partition and time", charts.heat(heat)),
    ]
    opened = [m for m in messages if m["status"] == "open"][:MOST_RECOMMENDATIONS]
    made += [(f"Before and after: {_time(m['opened_at'])}", charts.before_after(m)) for m in opened]
    if hot:
        made.append((f"Hot keys of {shown(str(hot['topic']))}", charts.hot_keys(hot["hot"])))
    facts = [
        _counted(row["openings"], "recommendation"),
        _counted(row["flaps"], "flap"),
        f"{row['skew_hours']:.1f} hours of skew",
        f"{_counted(row['moves'], 'move')} advised",
    ]
    messages = [
        {
            "time": _time(m["as_of"]),
            "status": m["status"],
            "verdict": verdict_words(m["verdict"]),
            "reason": shown(m["reason"], 2000),
        }
        for m in messages
    ]
    figures = tuple((title, figure.to_json()) for title, figure in made if figure is not None)
    return Section(shown(row["group"]), facts, messages, figures)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def incidents(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Begin, end (None: still open) and verdict of each incident."""
    found: dict[str, dict[str, Any]] = {}
    for m in messages:
        span = found.setdefault(m["id"], {"start": m["opened_at"], "end": None, "verdict": m["verdict"]})
        # One that is superseded waits for a new plan, under the same id.
        if m["status"] == "resolved":
            span["end"] = m["as_of"]
    return list(found.values())


def _time(ms: int) -> str:
    return charts.when(ms).strftime("%Y-%m-%d %H:%M UTC")


def page(title: str, within: Range, sections: Sequence[Section]) -> str:
    """The whole page; it loads nothing from anywhere."""
    from plotly.offline import get_plotlyjs

    # Group names and reasons are data of other programs: escaped wherever they stand in the page.
    environment = Environment(loader=PackageLoader("kagent.history"), autoescape=True)
    figures = [json.loads(figure) for s in sections for _, figure in s.figures]
    return environment.get_template("report.html").render(
        title=shown(title),
        start=_time(within.start),
        end=_time(within.end),
        sections=sections,
        # Names of groups and topics stand in this JSON inside a <script>: an unescaped "</script>" in one would end it.
        figures=json.dumps(figures).replace("<", "\\u003c"),
        # Inside the page (some 4 MB): the report is opened on machines without a way to a CDN, and attached to tickets.
        plotly=get_plotlyjs(),
    )
