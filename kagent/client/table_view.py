"""What ``kagent watch`` shows on a terminal: the open incidents as a table that is kept up to date. No clock, no Kafka."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kagent.client.text import age, best, headline, is_old, number, state_line
from kagent.contract.recommendation import Recommendation, Severity, State, Status
from kagent.group_key import group_key
from kagent.text import shown

COLOURS = {Severity.PAGE: "bold red", Severity.TICKET: "yellow", Severity.INFO: "cyan"}
ORDER = {Severity.PAGE: 0, Severity.TICKET: 1, Severity.INFO: 2}
WIDE = 120
"""From so many columns on there is room for the sentence that says how."""
LATELY = 5


def colour(rec: Recommendation) -> str:
    """By severity; what is over is green, what nobody can see now is dim."""
    if rec.status is Status.RESOLVED:
        return "green"
    return f"dim {COLOURS[rec.severity]}" if rec.stale else COLOURS[rec.severity]


@dataclass(slots=True)
class Board:
    """What is open, the state of each cluster, and what ended lately. Times in ms."""

    open: dict[str, Recommendation] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    lately: deque[Recommendation] = field(default_factory=lambda: deque(maxlen=LATELY))

    def take(self, message: Recommendation | State) -> None:
        """The next message of the topic."""
        if isinstance(message, State):
            self.states[message.cluster] = message
            return
        key = group_key(message.cluster, message.group)
        if message.status is not Status.RESOLVED:
            self.open[key] = message
        elif self.open.pop(key, None) is not None:
            self.lately.append(message)

    def ranked(self) -> list[Recommendation]:
        """The open incidents: the most urgent first, of those the oldest."""
        return sorted(self.open.values(), key=lambda r: (ORDER[r.severity], r.opened_at, r.group))

    def screen(self, now: int, width: int, height: int) -> RenderableType:
        """All of it, within so many columns and lines."""
        parts: list[RenderableType] = [_state(state, now) for state in self.states.values()]
        if not self.states:
            parts.append(
                Text("No state message has come: nobody says that groups are looked after.", "bold red")
            )
        ended = [
            Text(headline(rec, now), style="green", no_wrap=True, overflow="ellipsis") for rec in self.lately
        ]
        room = max(1, height - len(parts) - len(ended) - 5)
        parts.append(self.table(now, width, room) if self.open else Text("No incident is open."))
        return Group(*parts, *ended)

    def table(self, now: int, width: int, rows: int | None = None) -> RenderableType:
        """The open incidents; of more than ``rows``, the first."""
        ranked = self.ranked()
        several = len({rec.cluster for rec in ranked}) > 1
        wide = width >= WIDE
        table = Table(box=box.SIMPLE_HEAD, expand=wide)
        for name in (["CLUSTER"] if several else []) + ["GROUP", "VERDICT", "SEVERITY"]:
            table.add_column(
                name, no_wrap=name != "GROUP", overflow="fold" if name == "GROUP" else "ellipsis"
            )
        table.add_column("SKEW", justify="right", no_wrap=True)
        table.add_column("BEST ACTION", no_wrap=True)
        table.add_column("OPEN FOR", justify="right", no_wrap=True)
        if wide:
            table.add_column("HOW", ratio=1, no_wrap=True, overflow="ellipsis")
        for rec in ranked[:rows]:
            cells = [shown(rec.cluster)] if several else []
            cells += [shown(rec.group, 64), rec.verdict.value, rec.severity.value, _skew(rec), best(rec)]
            cells.append(age(now - rec.opened_at) + (" (stale)" if rec.stale else ""))
            if wide:
                cells.append(shown(rec.actions[0].how, 300) if rec.actions else "")
            table.add_row(*(Text(cell) for cell in cells), style=colour(rec))
        left = len(ranked) - len(ranked[:rows])
        return Group(table, Text(f"… and {left} more")) if left else table


def _state(state: State, now: int) -> Text:
    well = state.status == "watching" and not is_old(state, now)
    return Text(state_line(state, now), style="green" if well else "bold red")


def _skew(rec: Recommendation) -> str:
    if rec.skew.now is None:
        return "–"
    return number(rec.skew.now) + (f" → {number(rec.skew.after)}" if rec.skew.after is not None else "")
