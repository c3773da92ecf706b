"""What ``kagent watch`` shows on a terminal: the open incidents as a table that is kept up to date. No clock, no Kafka."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from kagent.active_mutes import Mutes
from kagent.client.incident_text import (
    OLD_MS,
    age,
    backlog,
    clock,
    first_action,
    in_first_hour,
    is_old,
    seconds_behind,
    skew_numbers,
    state_line,
    worst_member,
)
from kagent.contract.recommendation import (
    SEVERITY_RANK,
    IncidentNumbers,
    Recommendation,
    Severity,
    State,
    Status,
)
from kagent.contract.words import VERDICTS, in_words
from kagent.group_key import group_key
from kagent.text import LONGEST, shown, told_apart
from kagent.text_table import TableColumn, fitted, folded, lines, shortened

COLOURS = {Severity.PAGE: "bold red", Severity.TICKET: "yellow", Severity.INFO: "cyan"}
COLUMNS = (
    TableColumn("cluster", "CLUSTER", rank=1, least=8),
    TableColumn("group", "GROUP", least=16),
    TableColumn("severity", "SEVERITY", rank=6),
    TableColumn("why", "WHY", rank=2),
    TableColumn("behind", "BEHIND", right=True),
    TableColumn("backlog", "BACKLOG", rank=8, right=True),
    TableColumn("who", "WHO", rank=5, least=16),
    TableColumn("action", "FIRST ACTION"),
    TableColumn("since", "OPEN FOR", rank=4, right=True),
    TableColumn("judged", "AS OF", rank=7, right=True),
    TableColumn("note", "NOTE", rank=3, least=18, keep="start"),
    TableColumn("owner", "OWNER", rank=9, least=13),
    TableColumn("skew", "SKEW", rank=10, right=True),
    TableColumn("how", "HOW", rank=11),
)
"""What a person asks first stays longest: which group, how late, what to do; then why, since when, who."""
ENDED = (
    TableColumn("group", "ENDED", least=16),
    TableColumn("why", "WHY"),
    TableColumn("how", "HOW IT ENDED"),
    TableColumn("lasted", "WAS OPEN FOR", right=True),
    TableColumn("skew", "SKEW", rank=1),
)
"""Of incidents that ended while somebody looked on."""
LATELY = 5
PART_LINES, WHOLE = 3, 12
"""Most lines of a reason and of a first action where several incidents share the screen, and where all have room whole."""
DETAIL_LINES = 3 + 2 * PART_LINES
"""Most lines of an incident in words: a blank one, its group and owner, the reason, the first action."""


def colour(rec: Recommendation) -> str:
    """By severity; resolved incidents are green, stale ones dim."""
    if rec.status is Status.RESOLVED:
        return "green"
    return f"dim {COLOURS[rec.severity]}" if rec.stale else COLOURS[rec.severity]


@dataclass(slots=True)
class Board:
    """What is open, the state of each cluster, and what ended lately. Times in ms."""

    open: dict[str, Recommendation] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    lately: deque[Recommendation] = field(default_factory=lambda: deque(maxlen=LATELY))
    mutes: Mutes = field(default_factory=Mutes)
    is_read: bool = True
    """Whether the topic was read to its end: before that, what has not come says nothing."""

    numbers: dict[str, dict[str, IncidentNumbers]] = field(default_factory=dict)
    """Cluster → id of an open incident → its numbers in the latest state message."""

    def take(self, message: Recommendation | State) -> None:
        """The next message of the topic."""
        if isinstance(message, State):
            self.states[message.cluster] = message
            self.numbers[message.cluster] = {each.id: each for each in message.incidents}
            return
        key = group_key(message.cluster, message.group)
        if message.status is not Status.RESOLVED:
            self.open[key] = message
        # Only what was seen open: on a start the topic still holds incidents that were resolved days ago.
        elif self.open.pop(key, None) is not None:
            self.lately.append(message)

    order: list[str] | None = None
    """Keys in the order that was asked for; None: by urgency."""

    def newest(self, rec: Recommendation) -> IncidentNumbers:
        """The newest numbers of an incident: a message is published again only when something important changes."""
        known = self.numbers.get(rec.cluster, {}).get(rec.id)
        if known is not None and known.as_of > rec.as_of:
            return known
        behind, lag = seconds_behind(rec), backlog(rec)
        return IncidentNumbers(id=rec.id, as_of=rec.as_of, seconds_behind=behind, lag=lag)

    def only(self, chosen: Sequence[Recommendation]) -> None:
        """Keep these open incidents alone, in this order."""
        self.order = [group_key(rec.cluster, rec.group) for rec in chosen]
        self.open = {key: self.open[key] for key in self.order}

    def ranked(self) -> list[Recommendation]:
        """The open incidents: in the order asked for, else the most urgent first, of those the oldest."""
        if self.order is not None:
            return [self.open[key] for key in self.order if key in self.open]
        return sorted(self.open.values(), key=lambda r: (SEVERITY_RANK[r.severity], r.opened_at, r.group))

    def screen(self, now: int, width: int, height: int) -> RenderableType:
        """The whole picture, within this many columns and lines: states, the table, what to do first, what ended."""
        top = [line for state in self.states.values() for line in _state(state, now, width)]
        if not self.is_read:
            return Text("Reading what is open now …")
        if not self.states:
            why = "No state message has come: no worker runs, so the health of groups is unknown."
            top = [Text(line, "bold red") for line in folded(why, width, 2)]
        # As a table: a line that wraps would push the other one off the screen, as the height was counted in lines.
        shown_lines = lines(ENDED, [_ended(rec) for rec in self.lately], width)
        ended = [Text(line, "green", no_wrap=True) for line in shown_lines] if self.lately else []
        # Five lines: the header, the blank lines, "… and n more", and the cursor's own. One more: how old the numbers are.
        is_aged = any(now - self.newest(rec).as_of >= OLD_MS for rec in self.open.values())
        room = max(1, height - len(top) - len(ended) - 5 - is_aged)
        body = self._body(now, width, room) if self.open else [Text(self.nothing_open(), overflow="ellipsis")]
        return Group(*top, Text(""), *body, *([Text(""), *ended] if ended else []))

    def _body(self, now: int, width: int, room: int) -> Sequence[Text]:
        """The table, and below it as many of its rows in words as there are lines left."""
        # A table is read by who knows kagent: the most urgent row in words comes before the rows at the end.
        kept = DETAIL_LINES if room >= 2 * DETAIL_LINES else 0
        rows = min(room - kept, len(self.open))
        return [*self.table(now, width, rows), *self.details(now, width, room - rows)]

    def details(self, now: int, width: int, room: int) -> Iterator[Text]:
        """The most urgent incidents in words: the whole name, what is wrong, what to do first. At most ``room`` lines."""
        unmuted = [rec for rec in self.ranked() if not self.mutes.of(rec.cluster, rec.group, now)]
        # Each takes three lines at least, so more than fit need not be folded.
        unmuted = unmuted[: room // 3]
        whole = [self._detail(rec, width, now, WHOLE) for rec in unmuted]
        # A command whose end is cut off is of no use, so what has room is shown whole.
        fits = sum(len(found) + 1 for found in whole) <= room
        for rec, found in zip(unmuted, whole, strict=True):
            printed = ["", *(found if fits else self._detail(rec, width, now, PART_LINES))]
            room -= len(printed)
            if room < 0:
                return
            yield from (
                Text(line, colour(rec) if at == 1 else "", no_wrap=True) for at, line in enumerate(printed)
            )

    def _detail(self, rec: Recommendation, width: int, now: int, part_lines: int) -> list[str]:
        group = shown(rec.group)
        about = [f"owner: {shown(rec.owner, 40)}"] if rec.owner else []
        # The sentence has the numbers of its own moment, the row above those of the last state message.
        about += [f"text from {age(now - rec.as_of)} ago"] if now - rec.as_of >= OLD_MS else []
        beside = f"{group} ({', '.join(about)})" if about else group
        fits = cell_len(beside) <= width
        found = folded(shown(rec.reason, LONGEST), width - 2, part_lines)
        if rec.actions:
            found += folded(f"Do first: {shown(rec.actions[0].how, LONGEST)}", width - 2, part_lines)
        below = found if fits else [", ".join(about), *found]
        return [beside if fits else shortened(group, width), *(f"  {line}" for line in below if line)]

    def nothing_open(self) -> str:
        """That no incident is open, and whether that can be relied on yet."""
        if any(state.status != "watching" for state in self.states.values()):
            return "No incident is open, but kagent does not see all groups now: this does not mean that they are healthy."
        learning = sum(state.learning for state in self.states.values())
        if not learning:
            return "No incident is open."
        until = max((s.learning_until for s in self.states.values() if s.learning_until), default=None)
        return f"No incident is open. {in_first_hour(learning, until)}"

    def table(self, now: int, width: int | None, rows: int | None = None) -> Sequence[Text]:
        """The open incidents as lines; of more than ``rows``, the first. Without a width in full."""
        ranked = self.ranked()
        chosen = ranked[:rows]
        cells = [dict(self.cells(rec, now)) for rec in chosen]
        if not any(column.key == "note" for column, _ in fitted(COLUMNS, cells, width)):
            # One word has room: a muted incident must not look like any other.
            cells = [{**row, "note": row["note"].partition(" ")[0].rstrip(":")} for row in cells]
        printed = lines(COLUMNS, cells, width)
        styles = ("bold", *(colour(rec) for rec in chosen))
        found = [Text(line, style, no_wrap=True) for line, style in zip(printed, styles, strict=True)]
        left = len(ranked) - len(chosen)
        more = [Text(f"… and {left} more")] if left else []
        oldest = max((now - self.newest(rec).as_of for rec in chosen), default=0)
        return [*found, *more, *_age_note(oldest, cells, width)]

    def record(self, rec: Recommendation, now: int) -> dict[str, Any]:
        """A row for programs: plain values under stable names."""
        worst, mute, newest = (
            worst_member(rec),
            self.mutes.of(rec.cluster, rec.group, now),
            self.newest(rec),
        )
        return {
            "cluster": rec.cluster,
            "group": rec.group,
            "verdict": rec.verdict.value,
            "severity": rec.severity.value,
            "seconds_behind": newest.seconds_behind,
            "backlog": newest.lag,
            "member": worst.member if worst else None,
            "action": rec.actions[0].type.value if rec.actions else None,
            "feasible": rec.actions[0].feasible if rec.actions else None,
            "how": rec.actions[0].how if rec.actions else None,
            "opened_at": rec.opened_at,
            "as_of": newest.as_of,
            "skew": rec.skew.now,
            "owner": rec.owner,
            "muted_until": mute.until if mute else None,
            "blind": rec.stale,
            "reason": rec.reason,
        }

    def cells(self, rec: Recommendation, now: int) -> Mapping[str, str]:
        """A row for people."""
        worst, newest = worst_member(rec), self.newest(rec)
        behind, waiting = newest.seconds_behind, newest.lag
        names = told_apart([m.member for m in rec.members])
        # One cluster for all: the column would say the same in every row.
        several = len({each.cluster for each in self.open.values()}) > 1
        return {
            "cluster": shown(rec.cluster) if several else "",
            "group": shown(rec.group),
            "severity": rec.severity.value,
            "why": VERDICTS[rec.verdict].short,
            "behind": "?" if behind is None else age(int(behind * 1000)),
            "backlog": "?" if waiting is None else f"{waiting:,}",
            "who": shown(names[worst.member]) if worst else "",
            "action": first_action(rec),
            "since": age(now - rec.opened_at),
            "judged": f"{age(now - newest.as_of)} ago",
            "note": self.note(rec, now),
            "owner": shown(rec.owner or "", 40),
            "skew": skew_numbers(rec) if rec.skew.now is not None else "",
            "how": shown(rec.actions[0].how, 300) if rec.actions else "",
        }

    def note(self, rec: Recommendation, now: int) -> str:
        """What else must be known before somebody acts: muted, blind."""
        notes = [self.mute_note(rec, now)]
        notes += ["blind: out of date"] if rec.stale else []
        return ", ".join(filter(None, notes))

    def line_note(self, rec: Recommendation, now: int) -> str:
        """What a line adds to the message: how late the group is now, where that is newer, and until when it is muted."""
        newest = self.newest(rec)
        is_newer = newest.as_of > rec.as_of and newest.seconds_behind is not None
        behind = f"now {age(int((newest.seconds_behind or 0) * 1000))} behind" if is_newer else ""
        return ", ".join(filter(None, [behind, self.mute_note(rec, now)]))

    def mute_note(self, rec: Recommendation, now: int) -> str:
        """Until when the group is muted; empty if it is not."""
        mute = self.mutes.of(rec.cluster, rec.group, now)
        return f"muted until {clock(mute.until)}" if mute else ""


def _ended(rec: Recommendation) -> dict[str, str]:
    return {
        "group": shown(rec.group),
        "why": VERDICTS[rec.verdict].short,
        "how": in_words(rec.resolution.value) if rec.resolution else rec.status.value,
        "lasted": age(rec.as_of - rec.opened_at),
        "skew": skew_numbers(rec) if rec.skew.now is not None else "",
    }


def _age_note(oldest: int, cells: Sequence[Mapping[str, str]], width: int | None) -> list[Text]:
    """How old the numbers of the table may be (``oldest``: ms), where it has no room for the column that says so."""
    if oldest < OLD_MS or any(column.key == "judged" for column, _ in fitted(COLUMNS, cells, width)):
        return []
    # One line, whatever the width: the height of the screen is counted in lines.
    note = f"Numbers are up to {age(oldest)} old; `kagent explain GROUP` has the current ones."
    return [Text(shortened(note, width or len(note), "start"), no_wrap=True)]


def _state(state: State, now: int, width: int) -> list[Text]:
    style = "green" if state.status == "watching" and not is_old(state, now) else "bold red"
    return [Text(line, style, no_wrap=True) for line in folded(state_line(state, now), width, 3)]
