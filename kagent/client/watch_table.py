"""What ``kagent watch`` shows on a terminal: the open incidents as a table that is kept up to date. No clock, no Kafka."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from kagent.active_mutes import Mutes
from kagent.client.incident_text import (
    NO_LONGER,
    OLD_MS,
    age,
    backlog,
    clock,
    first_action,
    how,
    in_first_hour,
    is_old,
    seconds_behind,
    skew_numbers,
    state_line,
    worst_member,
)
from kagent.contract.recommendation import (
    IncidentNumbers,
    Recommendation,
    Severity,
    State,
    Status,
    urgency,
)
from kagent.contract.words import VERDICTS, in_words
from kagent.group_key import group_key
from kagent.text import LONGEST, shown, told_apart
from kagent.text_table import TableColumn, fitted, folded, lines, shortened

Choice = Callable[[Sequence[Recommendation]], Sequence[Recommendation]]
COLOURS = {Severity.PAGE: "bold red", Severity.TICKET: "yellow", Severity.INFO: "cyan"}
COLUMNS = (
    TableColumn("cluster", "CLUSTER", rank=1, least=8),
    TableColumn("group", "GROUP", least=14),
    TableColumn("severity", "SEVERITY", least=6, brief="SEV"),
    TableColumn("why", "WHY", rank=2, sort="verdict"),
    TableColumn("behind", "BEHIND", right=True, sort="seconds_behind"),
    TableColumn("backlog", "BACKLOG", rank=8, right=True),
    TableColumn("who", "WHO", rank=5, least=16, sort="member"),
    TableColumn("action", "FIRST ACTION"),
    TableColumn("since", "OPEN FOR", rank=4, right=True, sort="-opened_at"),
    TableColumn("judged", "AS OF", rank=7, right=True, sort="as_of"),
    TableColumn("note", "NOTE", if_any=True, sort="muted_until"),
    TableColumn("owner", "OWNER", rank=9, least=13),
    TableColumn("skew", "SKEW", rank=10, right=True),
    TableColumn("how", "HOW", rank=11),
)
"""What a person asks first stays longest: which group, page or ticket, how late, what to do, and whether the row can be acted on;
then why, since when, who."""
LONG_NOTE = 6
"""A note in full (until when a group is muted) costs no column of a lower rank: one word of it then stays."""
FIELDS = (
    "cluster", "group", "verdict", "severity", "seconds_behind", "backlog", "member", "action", "feasible", "how", "opened_at",
    "as_of", "skew", "owner", "muted_until", "blind", "reason",
)  # fmt: skip
"""Of :meth:`Board.record`."""
ENDED = (
    TableColumn("group", "ENDED", least=16),
    TableColumn("why", "WHY"),
    TableColumn("how", "HOW IT ENDED"),
    TableColumn("lasted", "WAS OPEN FOR", right=True),
    TableColumn("skew", "SKEW", rank=1),
)
"""Of incidents that ended while somebody looked on."""
LATELY = 5
UNSEEN = {"blind": "blind: out of date", "stale": "stale: no worker"}
"""Why a row is out of date, in a word and in full: kagent cannot judge the group now, or no worker reports on its cluster."""
DETAIL_LINES = 9
"""Lines kept below a long table for the most urgent incident in words: a blank one, its group and owner, and three each for the
reason and the first action."""
WHOLE = 100
"""Lines that no text of ``LONGEST`` characters fills on a terminal."""


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
    """Cluster → id of an incident → its newest numbers of a state message."""

    choose: Choice = list
    """Which of the open incidents are shown and in what order, of those given the most urgent first."""

    def take(self, message: Recommendation | State) -> None:
        """The next message of the topic."""
        if isinstance(message, State):
            self.states[message.cluster] = message
            self._renew(message)
            return
        key = group_key(message.cluster, message.group)
        if message.status is not Status.RESOLVED:
            self.open[key] = message
        # Only what was seen open: on a start the topic still holds incidents that were resolved days ago.
        elif self.open.pop(key, None) is not None:
            self.lately.append(message)

    def _renew(self, state: State) -> None:
        # A blind group is in no state message: its numbers of before are later than those of its own message.
        still_open = {rec.id for rec in self.open.values() if rec.cluster == state.cluster}
        kept = {id_: n for id_, n in self.numbers.get(state.cluster, {}).items() if id_ in still_open}
        self.numbers[state.cluster] = kept | {each.id: each for each in state.incidents}

    def newest(self, rec: Recommendation) -> IncidentNumbers:
        """The newest numbers of an incident: a message is published again only when something important changes."""
        known = self.numbers.get(rec.cluster, {}).get(rec.id)
        if known is not None and known.as_of > rec.as_of:
            return known
        behind, lag = seconds_behind(rec), backlog(rec)
        return IncidentNumbers(id=rec.id, as_of=rec.as_of, seconds_behind=behind, lag=lag)

    def ranked(self) -> list[Recommendation]:
        """The open incidents that were asked for, in the order asked for: by default the most urgent first."""
        return list(self.choose(sorted(self.open.values(), key=self._urgency)))

    def _urgency(self, rec: Recommendation) -> tuple[int | float | str, ...]:
        newest = self.newest(rec)
        return (*urgency(rec.severity, newest.seconds_behind, newest.lag), rec.cluster, rec.group)

    def screen(self, now: int, width: int, height: int, wide: bool = False) -> RenderableType:
        """The whole picture, within this many columns and lines: states, the table, what to do first, what ended. ``wide``: no cell
        is shortened or left out."""
        top = [line for state in self.states.values() for line in _state(state, now, width)]
        if not self.is_read:
            return Text("Reading what is open now …")
        if not self.states:
            why = "No state message has come: no worker runs, so the health of groups is unknown."
            top = [Text(line, "bold red") for line in folded(why, width, 2)]
        # As a table: a line that wraps would push the other one off the screen, as the height was counted in lines.
        shown_lines = lines(ENDED, [_ended(rec) for rec in self.lately], width)
        ended = [Text(line, "green", no_wrap=True) for line in shown_lines] if self.lately else []
        below = [Text(""), *ended] if ended else []
        # Two lines: the blank one, and the cursor's own.
        room = max(1, height - len(top) - len(below) - 2)
        body = (
            self._body(now, width, room, wide)
            if self.open
            else [Text(self.nothing_open(), overflow="ellipsis")]
        )
        return Group(*top, Text(""), *body, *below)

    def _body(self, now: int, width: int, room: int, wide: bool) -> Sequence[Text]:
        """The table, and below it as many of its rows in words as there are lines left."""
        if wide and max(cell_len(line.plain) for line in self.table(now, None)) > width:
            return [*self._blocks(now, width, room)]
        # The header, and how old the numbers are, which some widths say in a column.
        left = room - 1 - any(now - self.newest(rec).as_of >= OLD_MS for rec in self.open.values())
        # A table is read by who knows kagent: the most urgent row in words comes before the rows at the end.
        left -= DETAIL_LINES if left >= 2 * DETAIL_LINES else 0
        rows = len(self.ranked())
        table = self.table(now, width, rows if rows <= left else max(1, left - 1))  # "… and n more" takes one
        return [*table, *self.details(now, width, room - len(table))]

    def details(self, now: int, width: int, room: int) -> Iterator[Text]:
        """Incidents in words, as many as ``room`` lines hold: the whole name, what is wrong, what to do first. The most urgent
        first; muted ones last, as they ask for no action."""
        for rec in sorted(self.ranked(), key=lambda rec: bool(self.mute_note(rec, now))):
            found = self._detail(rec, width, now, room - 1)
            if not found:
                return
            room -= 1 + len(found)
            yield from (Text(""), Text(found[0], colour(rec), no_wrap=True))
            yield from (Text(line, no_wrap=True) for line in found[1:])

    def _detail(self, rec: Recommendation, width: int, now: int, most: int) -> list[str]:
        """The incident in at most ``most`` lines; none where they hold no more than its name."""
        head = self._detail_head(rec, width, now)
        left = most - len(head)
        if left < 1:
            return []
        do = f"Do first: {shown(how(rec), LONGEST)}" if how(rec) else ""
        # What is to be done has room first, and whole: a command whose end is cut off is of no use.
        action = folded(do, width - 2, max(1, left - 1)) if do else []
        reason = (
            folded(shown(rec.reason, LONGEST), width - 2, left - len(action)) if left > len(action) else []
        )
        return [*head, *(f"  {line}" for line in (*reason, *action) if line)]

    def _detail_head(self, rec: Recommendation, width: int, now: int) -> list[str]:
        """The whole name and what else must be known: beside it, or on a line of its own where it does not fit."""
        group, note = shown(rec.group), self.note(rec, now)
        about = [note] if note else []
        about += [f"owner: {shown(rec.owner, 40)}"] if rec.owner else []
        # The sentence has the numbers of its own moment, the row above those of the last state message.
        about += [f"text from {age(now - rec.as_of)} ago"] if now - rec.as_of >= OLD_MS else []
        beside = f"{group} ({', '.join(about)})" if about else group
        if cell_len(beside) <= width:
            return [beside]
        return [
            *folded(group, width, WHOLE),
            *(f"  {line}" for line in folded(", ".join(about), width - 2, WHOLE) if line),
        ]

    def _blocks(self, now: int, width: int, room: int) -> Iterator[Text]:
        """Every incident as lines of all its cells, for a terminal that is narrower than the table in full."""
        ranked = self.ranked()
        for at, rec in enumerate(ranked):
            found = self._block(rec, width, now)
            # The first one is shown even if it alone is higher than the screen.
            if at and len(found) > room:
                yield Text(f"… and {len(ranked) - at} more")
                return
            yield from (
                Text(line, colour(rec) if n == 0 else "", no_wrap=True) for n, line in enumerate(found[:room])
            )
            room -= len(found)

    def _block(self, rec: Recommendation, width: int, now: int) -> list[str]:
        cells = self.cells(rec, now)
        beside = [c for c in COLUMNS if cells[c.key] and c.key not in ("group", "how")]
        texts = [f"reason: {shown(rec.reason, LONGEST)}", *([f"how: {cells['how']}"] if cells["how"] else [])]
        below = _packed([f"{column.title.lower()}: {cells[column.key]}" for column in beside], width - 2)
        below += [line for text in texts for line in folded(text, width - 2, WHOLE)]
        return [*folded(cells["group"], width, WHOLE), *(f"  {line}" for line in below), ""]

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
        cells = self._fitted_cells(chosen, now, width)
        printed = lines(COLUMNS, cells, width)
        styles = ("bold", *(colour(rec) for rec in chosen))
        found = [Text(line, style, no_wrap=True) for line, style in zip(printed, styles, strict=True)]
        left = len(ranked) - len(chosen)
        more = [Text(f"… and {left} more")] if left else []
        is_dated = any(column.key == "judged" for column, _ in fitted(COLUMNS, cells, width))
        return [*found, *more, *([] if is_dated else self._age_note(chosen, now, width))]

    def _fitted_cells(
        self, chosen: Sequence[Recommendation], now: int, width: int | None
    ) -> list[dict[str, str]]:
        """The rows with their notes in full, or in a word each where the full ones would cost a column that says more."""
        full = [dict(self.cells(rec, now)) for rec in chosen]
        brief = [
            {**row, "note": ", ".join(word for word, _ in self.notes(rec, now))}
            for rec, row in zip(chosen, full, strict=True)
        ]
        return full if _beside_notes(full, width) == _beside_notes(brief, width) else brief

    def _age_note(self, chosen: Sequence[Recommendation], now: int, width: int | None) -> list[Text]:
        """How old the numbers of the table may be, where it has no room for the column that says so."""
        old = [rec for rec in chosen if now - self.newest(rec).as_of >= OLD_MS]
        if not old:
            return []
        oldest = age(max(now - self.newest(rec).as_of for rec in old))
        # One line, whatever the width: the height of the screen is counted in lines.
        note = f"Numbers are up to {oldest} old; {self._newer(old, now)}."
        return [Text(shortened(note, width or len(note), "start"), no_wrap=True)]

    def _newer(self, old: Sequence[Recommendation], now: int) -> str:
        """Where newer numbers of these incidents are: nowhere for those that kagent cannot see now."""
        unseen = sum(bool(self.unseen(rec, now)) for rec in old)
        if unseen == len(old):
            return "kagent has no newer ones now"
        return (
            "unless blind, see `kagent explain GROUP`" if unseen else "`kagent explain GROUP` has newer ones"
        )

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
            "blind": bool(self.unseen(rec, now)),
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
            "how": shown(how(rec), LONGEST),
        }

    def note(self, rec: Recommendation, now: int) -> str:
        """What else must be known before somebody acts: muted, superseded, blind, stale."""
        return ", ".join(full for _, full in self.notes(rec, now))

    def notes(self, rec: Recommendation, now: int) -> list[tuple[str, str]]:
        """The notes of a row: each in a word, and in full."""
        mute, unseen = self.mute_note(rec, now), self.unseen(rec, now)
        found = [("muted", mute)] if mute else []
        # Perhaps by what was advised: who does it again moves partitions for nothing.
        found += [("superseded", f"superseded: {NO_LONGER}")] if rec.status is Status.SUPERSEDED else []
        return found + ([(unseen, UNSEEN[unseen])] if unseen else [])

    def unseen(self, rec: Recommendation, now: int) -> str:
        """Why what is known of an incident is out of date now, in a word of ``UNSEEN``; empty where it is not."""
        state = self.states.get(rec.cluster)
        if state is None or is_old(state, now):
            return "stale"
        return "blind" if rec.stale or state.status != "watching" else ""

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


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """As many of the texts beside each other as a line holds; one that is wider is folded."""
    found = [""]
    for part in parts:
        joined = f"{found[-1]}   {part}" if found[-1] else part
        found[-1:] = [joined] if cell_len(joined) <= width or not found[-1] else [found[-1], part]
    return [
        line for text in found for line in ([text] if cell_len(text) <= width else folded(text, width, WHOLE))
    ]


def _beside_notes(cells: Sequence[Mapping[str, str]], width: int | None) -> dict[str, int]:
    """What a note in full must not cost: the columns that are more important, and the width of those that are never shortened."""
    shown_columns = [found for found in fitted(COLUMNS, cells, width) if found[0].rank < LONG_NOTE]
    return {c.key: cells if c.least is None else 0 for c, cells in shown_columns if c.key != "note"}


def _state(state: State, now: int, width: int) -> list[Text]:
    style = "green" if state.status == "watching" and not is_old(state, now) else "bold red"
    return [Text(line, style, no_wrap=True) for line in folded(state_line(state, now), width, 3)]
