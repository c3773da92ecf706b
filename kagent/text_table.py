"""Tables that fit: columns are shortened, then left out, the least important first. Pure; no terminal is asked.

A table without a width keeps everything, as pipes and ``--wide`` want it. Widths are terminal cells, not characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType
from typing import Literal

from rich.cells import cell_len, chop_cells, set_cell_size

GAP = "  "
ELLIPSIS = "…"
BEHIND = re.compile(r"[^=,]+[=,]?|[=,]")
"""A setting that is wider than a line is broken behind these, not within a name."""
MOST_LINES = 12
"""Of a folded text: a reason of a few hundred characters has room, and no text fills the screen."""
WORD = re.compile(r"(?:`[^`]*`|\S)+")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. ``rank``: 0 stays whatever the width, others go the greatest first. ``least``: cells it may be shortened to;
    None: never shortened. ``keep``: which end of a shortened text stays (names differ at both ends); ``all``: it is folded over
    lines instead, within its column, as a reason that is cut off is none. ``sort``: the field by whose value rows are sorted for
    this column, if that is not ``key``; with a minus in front the other way round, as an age grows while its time does not. ``brief``: the title where the column is narrower than ``title``.
    ``if_any``: left out where no row has a text, though its rank is 0."""

    key: str
    title: str
    rank: int = 0
    least: int | None = None
    right: bool = False
    keep: Literal["both", "start", "all"] = "both"
    sort: str | None = None
    brief: str = ""
    if_any: bool = False


def shortened(text: str, width: int, keep: Literal["both", "start"] = "both") -> str:
    """The text in at most ``width`` cells, with an ellipsis in the middle or at the end.

    >>> shortened("orders-processor-eu-west-1", 12), shortened("Restart the consumer", 12, "start")
    ('orders-…st-1', 'Restart the…')
    """
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[:width]
    if keep == "start" or width < 5:
        return set_cell_size(text, width - 1).rstrip() + ELLIPSIS
    # Two fifths from the end: names of members and topics often differ in their last characters.
    tail = (width - 1) * 2 // 5
    return set_cell_size(text, width - 1 - tail).rstrip() + ELLIPSIS + _last_cells(text, tail)


def shortened_apart(texts: Iterable[str], width: int) -> dict[str, str]:
    """Each text in at most ``width`` cells, as :func:`shortened`; those that would look the same show where they differ.

    >>> shortened_apart(["settlement-processor-eu-west-1", "settlement-reporting-eu-west-1"], 16)
    {'settlement-processor-eu-west-1': 'sett…processor-…', 'settlement-reporting-eu-west-1': 'sett…reporting-…'}
    """
    found = {text: shortened(text, width) for text in texts}
    alike: dict[str, list[str]] = {}
    for text, short in found.items():
        alike.setdefault(short, []).append(text)
    for same in alike.values():
        if len(same) > 1:
            differ = next(at for at, chars in enumerate(zip_longest(*same)) if len(set(chars)) > 1)
            found |= {text: _around(text, differ, width) for text in same}
    return found


def _around(text: str, at: int, width: int) -> str:
    """The text's beginning, and what it has from a place on, which a shortened middle would hide."""
    if width < 8:
        return shortened(text, width)
    head = (width - 2) // 3
    rest = _last_cells(text, width - 1 - head)
    if len(rest) < len(text) - at:
        rest = shortened(text[at:], width - 1 - head, "start")
    return set_cell_size(text, head).rstrip() + ELLIPSIS + rest


def folded(text: str, width: int, most: int) -> list[str]:
    """The text as at most ``most`` lines of ``width`` cells, broken between words; an ellipsis where it goes on."""
    found, line = [], ""
    for word in (part for each in WORD.findall(text) for part in _broken(each, width)):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            found.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    found.append(line)
    if len(found) > most:
        found = _without_half_a_command(found[:most])
        last = found[-1]
        while " " in last and cell_len(last) + 1 > width:
            last = last.rpartition(" ")[0]
        found[-1] = shortened(last + ELLIPSIS, width, "start")
    return found


def _without_half_a_command(found: list[str]) -> list[str]:
    """The lines up to a command between backticks whose end they do not have: half of one could be pasted."""
    if sum(line.count("`") for line in found) % 2 == 0:
        return found
    begun = max(at for at, line in enumerate(found) if "`" in line)
    before = found[begun].rpartition("`")[0].rstrip()
    return [*found[:begun], before] if before or not begun else found[:begun]


def _broken(word: str, width: int) -> list[str]:
    """The word, or the command between backticks, in pieces that fit on a line."""
    # A command that is broken over lines cannot be pasted; one that is wider than a line is broken all the same.
    if cell_len(word) <= width:
        return [word]
    # Never shortened: of two class names with a comma between them, the wrong one would be left to set.
    return [piece for part in word.split() for piece in _at_signs(part, width)]


def _at_signs(part: str, width: int) -> list[str]:
    """A word in pieces of at most ``width`` cells, broken behind a sign such as = or a comma where it has one.

    >>> _at_signs("assignment.strategy=org.apache.StickyAssignor", 30)
    ['assignment.strategy=', 'org.apache.StickyAssignor']
    """
    found = [""]
    for sign in BEHIND.findall(part):
        for piece in chop_cells(sign, width):
            if cell_len(found[-1] + piece) > width:
                found.append("")
            found[-1] += piece
    return found


def _last_cells(text: str, width: int) -> str:
    end = ""
    for char in reversed(text):
        if cell_len(char + end) > width:
            break
        end = char + end
    return end


def fitted(
    columns: Sequence[TableColumn], rows: Sequence[Mapping[str, str]], width: int | None
) -> list[tuple[TableColumn, int]]:
    """The columns that are shown, each with its width. Columns without any content are left out unless they always stay."""
    natural = {c.key: max([cell_len(c.title), *(cell_len(r.get(c.key, "")) for r in rows)]) for c in columns}
    shown = [c for c in columns if (c.rank == 0 and not c.if_any) or any(r.get(c.key) for r in rows)]
    if width is None:
        return [(c, natural[c.key]) for c in shown]
    least = {c.key: _least(c, natural[c.key]) for c in shown}
    # Columns are dropped only once all are at their least: a shortened name is better than none.
    while _total(least, shown) > width and any(c.rank for c in shown):
        shown.remove(max(shown, key=lambda c: c.rank))
    widths = _given(shown, natural, least, width)
    return [(c, widths[c.key]) for c in shown]


def _least(column: TableColumn, natural: int) -> int:
    title = cell_len(column.brief or column.title)
    return natural if column.least is None else min(natural, max(column.least, title))


def _title(column: TableColumn, width: int) -> str:
    return column.brief if column.brief and width < cell_len(column.title) else column.title


def _total(widths: Mapping[str, int], columns: Sequence[TableColumn]) -> int:
    return sum(widths[c.key] for c in columns) + len(GAP) * (len(columns) - 1)


def _given(
    columns: Sequence[TableColumn], natural: Mapping[str, int], least: Mapping[str, int], width: int
) -> dict[str, int]:
    """What is left of the width goes to the columns in order of rank, of equals to the one that lacks least first; a lack is taken
    from the widest of them."""
    widths = {c.key: least[c.key] for c in columns}
    left = width - _total(widths, columns)
    for column in sorted(columns, key=lambda c: (c.rank, natural[c.key] - least[c.key])):
        more = max(0, min(left, natural[column.key] - widths[column.key]))
        widths[column.key] += more
        left -= more
    # Narrower than the columns that must stay: these shrink too, or lines would wrap.
    while left < 0 and max(widths.values()) > 1:
        widths[max(widths, key=lambda key: widths[key])] -= 1
        left += 1
    return widths


def lines(
    columns: Sequence[TableColumn],
    rows: Sequence[Mapping[str, str]],
    width: int | None = None,
    beside: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[str]:
    """Header and rows, each at most ``width`` cells and without spaces at the end. A row with a folded text takes several lines.

    ``beside``: column → texts outside it; a shortened text of the column must still differ from each of them.
    """
    layout = fitted(columns, rows, width)
    yield from _lines(layout, {c.key: _title(c, cells) for c, cells in layout}, {})
    short = {
        column.key: shortened_apart(
            (*(row.get(column.key, "-") for row in rows), *beside.get(column.key, ())), cells
        )
        for column, cells in layout
        if column.keep == "both"
    }
    for row in rows:
        yield from _lines(layout, row, short)


def _lines(
    layout: Sequence[tuple[TableColumn, int]], row: Mapping[str, str], short: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    folds = [_cell(column, width, row, short.get(column.key, {})) for column, width in layout]
    for texts in zip_longest(*folds, fillvalue=""):
        cells = []
        for (column, width), text in zip(layout, texts, strict=True):
            # In cells, not by str.ljust(): CJK characters and emoji take two.
            space = " " * (width - cell_len(text))
            cells.append(space + text if column.right else text + space)
        yield GAP.join(cells).rstrip()


def _cell(column: TableColumn, width: int, row: Mapping[str, str], short: Mapping[str, str]) -> list[str]:
    """The lines of a cell: one, unless its text is folded."""
    text = row.get(column.key, "-")
    if column.keep == "all":
        return folded(text, width, MOST_LINES)
    return [short.get(text) or shortened(text, width, column.keep)]


def markdown_row(*cells: str) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
