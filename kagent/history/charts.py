"""The figures of the report, as Plotly figures. Names are data: escaped before Plotly, which reads some HTML, sees them."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from kagent.contract.words import verdict_words
from kagent.text import shown

MOST_MEMBERS = 24
COLUMNS = 3
NOW, AFTER, ALARM = "#d9534f", "#2f7ed8", "rgba(217, 83, 79, 0.18)"


def label(name: str, limit: int = 48) -> str:
    """A name as it may stand in a figure."""
    return html.escape(shown(name, limit))


def when(ms: int) -> datetime:
    """A time for an axis."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def member_lag(ticks: Sequence[Mapping[str, Any]]) -> go.Figure | None:
    """Lag over time, a small panel for each member, all on one scale; those with the most lag first."""
    most: dict[str, float] = {}
    for tick in ticks:
        for name, lag in tick["work"].items():
            most[name] = max(most.get(name, 0.0), lag)
    names = sorted(most, key=lambda name: -most[name])[:MOST_MEMBERS]
    if not names:
        return None
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    figure = make_subplots(
        rows, columns, shared_xaxes="all", shared_yaxes="all", subplot_titles=[label(n, 40) for n in names],
        vertical_spacing=min(0.12, 0.3 / rows),
    )  # fmt: skip
    times = [when(t["time"]) for t in ticks]
    for at, name in enumerate(names):
        line = go.Scatter(
            x=times,
            y=[t["work"].get(name) for t in ticks],
            mode="lines",
            fill="tozeroy",
            line={"width": 1, "color": AFTER},
            name=label(name),
        )
        figure.add_trace(line, row=at // columns + 1, col=at % columns + 1)
    figure.update_annotations(font_size=11)
    figure.update_yaxes(rangemode="tozero")
    return _plain(figure, 150 * rows + 60, "lag, records")


def skew(
    ticks: Sequence[Mapping[str, Any]], threshold: float, incidents: Sequence[Mapping[str, Any]], end: int
) -> go.Figure | None:
    """Skew over time with the threshold, and the incidents as bands."""
    known = [t for t in ticks if t["skew"] is not None]
    if not known:
        return None
    figure = go.Figure(
        go.Scatter(
            x=[when(t["time"]) for t in known],
            y=[t["skew"] for t in known],
            mode="lines",
            line={"width": 1.5, "color": AFTER},
            name="skew",
        )
    )
    figure.add_hline(
        y=threshold, line_dash="dash", line_color=NOW, annotation_text=f"threshold {threshold:g}"
    )
    for incident in incidents:
        figure.add_vrect(
            x0=when(incident["start"]), x1=when(incident["end"] or end), fillcolor=ALARM, line_width=0,
            annotation_text=label(verdict_words(incident["verdict"])), annotation_position="top left",
        )  # fmt: skip
    return _plain(figure, 260, "greatest ÷ mean member work")


def heat(cells: Sequence[tuple[str, int, float]]) -> go.Figure | None:
    """Partition × time, colour the lag. Cells: (partition's name, time in ms, lag)."""
    if not cells:
        return None
    rows = sorted({c[0] for c in cells}, key=_natural)
    times = sorted({c[1] for c in cells})
    row_of, column_of = {r: n for n, r in enumerate(rows)}, {t: n for n, t in enumerate(times)}
    grid: list[list[float | None]] = [[None] * len(times) for _ in rows]
    for row, time, lag in cells:
        grid[row_of[row]][column_of[time]] = lag
    bar = {"title": {"text": "lag"}, "thickness": 12}
    figure = go.Figure(
        go.Heatmap(x=[when(t) for t in times], y=[label(r) for r in rows], z=grid, colorbar=bar)
    )
    figure.update_yaxes(autorange="reversed", type="category")
    return _plain(figure, min(900, 120 + 16 * len(rows)), None)


def _natural(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    # orders-10 after orders-9.
    return (topic, int(partition)) if partition.isdigit() else (name, 0)


def before_after(message: Mapping[str, Any]) -> go.Figure | None:
    """Work of each member now and under the plan."""
    members = [m for m in message["members"] if m.get("work_now") is not None][:40]
    if not members:
        return None
    names = [label(m["member"], 30) for m in members]
    bars = [go.Bar(x=names, y=[m["work_now"] for m in members], name="now", marker_color=NOW)]
    if any(m.get("work_after") is not None for m in members):
        bars.append(
            go.Bar(x=names, y=[m.get("work_after") for m in members], name="after", marker_color=AFTER)
        )
    figure = go.Figure(bars)
    figure.update_layout(barmode="group", showlegend=True)
    return _plain(figure, 260, f"work, {message.get('work_unit', 'records')}", legend=True)


def hot_keys(hot: Sequence[Mapping[str, Any]]) -> go.Figure | None:
    """Share of its partition for each hot key, from `kagent keys --json`."""
    bars = [
        (f"{label(_key(k['key_hex']), 30)} ({p['partition']})", k["share"]) for p in hot for k in p["keys"]
    ][:20]
    if not bars:
        return None
    figure = go.Figure(
        go.Bar(x=[b[1] for b in bars], y=[b[0] for b in bars], orientation="h", marker_color=NOW)
    )
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(tickformat=".0%")
    return _plain(figure, 80 + 24 * len(bars), None)


def _key(hexed: str) -> str:
    return bytes.fromhex(hexed).decode(errors="backslashreplace")


def _plain(figure: go.Figure, height: int, y: str | None, legend: bool = False) -> go.Figure:
    figure.update_layout(
        height=height,
        showlegend=legend,
        margin={"l": 60, "r": 20, "t": 40, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 12},
    )
    figure.update_layout(yaxis_title_text=y)
    figure.update_yaxes(automargin=True)
    return figure
