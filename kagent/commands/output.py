"""How commands print: tables as wide as the terminal (as their content when piped), or JSON, YAML and CSV for programs."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import re
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import click
import orjson
from rich.cells import cell_len

from kagent.commands import BEGAN_S
from kagent.errors import InputError
from kagent.text import shown
from kagent.text_table import TableColumn, lines

COMMAND = re.compile(r"`[^`]*`|kafka-[a-z-]+\.sh .*?(?= ; |$)")
"""What a person pastes: in backticks, or a tool of Kafka's up to the end of the sentence."""
AT_ONCE_S = 0.7
"""With what Python itself needs to begin, a person sees something within a second."""
SHOWN_RATIO = "max/mean lag"
"""What the ratio is called where lag is the cluster's word, not judged: greatest ÷ mean, as in ``kagent lag``."""
FORMULA = ("=", "+", "-", "@")
Record = Mapping[str, Any]
"""What a row is made from: the stable names of JSON, YAML and CSV."""


@dataclass(frozen=True, slots=True)
class ListColumns:
    """What a command lists: the columns that people see, and the fields of each record for programs, in their order."""

    columns: tuple[TableColumn, ...]
    fields: tuple[str, ...]

    def sorted_by(self, name: str) -> str:
        """The field that ``--sort NAME`` means, with a minus for the other way round: a field, or a column by its heading.
        Raises InputError."""
        turned, wanted = name.startswith("-"), _plain(name)
        # Fields first: their names are those of earlier releases.
        by_name = {_plain(c.title): c.sort or c.key for c in self.columns} | {
            _plain(f): f for f in self.fields
        }
        if wanted not in by_name:
            known = ", ".join(sorted(by_name))
            raise InputError(f"--sort: there is no {shown(name)}; there are: {known}.")
        found = by_name[wanted]
        return found if not turned else found.removeprefix("-") if found.startswith("-") else f"-{found}"


def _plain(name: str) -> str:
    """A field or a heading as a person types it: ``OPEN FOR``, ``open-for`` and ``open_for`` are one."""
    return re.sub(r"\W+", "_", name.lower()).strip("_")


@dataclass(frozen=True, slots=True)
class Format:
    """What a person asked of a table."""

    output: str = "table"
    wide: bool = False
    sort: str | None = None
    top: int | None = None

    @property
    def is_table(self) -> bool:
        """Whether it is for people."""
        return self.output == "table"

    def chosen(self, records: Sequence[Record], listing: ListColumns) -> list[Record]:
        """The records in the order asked for, and at most ``top`` of them. Raises InputError for an unknown name, also where
        there is no record."""
        found = list(records)
        if self.sort:
            by = listing.sorted_by(self.sort)
            name = by.removeprefix("-")
            numbers = any(isinstance(record.get(name), int | float) for record in found)
            # Numbers are sorted for their greatest, names from A: a leading - turns either around.
            found.sort(key=functools.partial(_sortable, name), reverse=numbers != by.startswith("-"))
        return found if self.top is None else found[: self.top]


def _sortable(name: str, record: Record) -> tuple[bool, float, str]:
    value = record.get(name)
    number = float(value) if isinstance(value, int | float) else float("-inf")
    # A key of one type for every value: None, numbers and texts do not compare with each other.
    return value is not None, number, str(value or "")


def options(command: Callable[..., None]) -> Callable[..., None]:
    """``--output``, ``--json``, ``--wide``, ``--sort`` and ``--top``, given to the command as one ``form``."""

    @click.option(
        "--output",
        "-o",
        type=click.Choice(["table", "json", "yaml", "csv"]),
        default="table",
        show_default=True,
        help="json prints one object a line.",
    )
    @click.option("--json", "as_json", is_flag=True, help="The same as --output json.")
    @click.option("--wide", "-w", is_flag=True, help="All columns in full, however wide.")
    @click.option(
        "--sort",
        metavar="NAME",
        help="Sort by this column or field; numbers greatest first; -NAME turns it around.",
    )
    @click.option("--top", type=click.IntRange(min=1), help="Print at most this many rows.")
    @functools.wraps(command)
    def run(
        *args: Any, output: str, as_json: bool, wide: bool, sort: str | None, top: int | None, **more: Any
    ) -> None:
        command(*args, form=Format("json" if as_json else output, wide, sort, top), **more)

    return run


def json_option(what: str, other: str = "text") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``--json``, given to the command as ``as_json``; ``--output json`` is the same, as in commands that print tables."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.option("--json", "as_json", is_flag=True, help=what)
        @click.option("--output", "-o", type=click.Choice([other, "json"]), default=other, hidden=True)
        @functools.wraps(command)
        def run(*args: Any, output: str, as_json: bool, **more: Any) -> None:
            command(*args, as_json=as_json or output == "json", **more)

        return run

    return decorate


def width(wide: bool = False) -> int | None:
    """Cells of the terminal; None for no limit: ``--wide``, or no terminal."""
    from rich.console import Console

    # rich knows the terminal's width, COLUMNS, and what pretends to be no terminal.
    console = Console(file=sys.stdout)
    return None if wide or not console.is_terminal else console.width


def say(sentence: str, indent: int = 0, err: bool = False) -> None:
    """A sentence for people: on a terminal broken between words, its further lines indented; a command in it stays whole."""
    cells = width()
    if cells is None or cells <= 2 * indent:
        click.echo(sentence, err=err)
    else:
        # A command that is broken over lines cannot be pasted. NUL: no sentence for people holds one.
        whole = COMMAND.sub(lambda found: found[0].replace(" ", "\0"), sentence)
        # A long name is pasted too: one that is wider than the terminal goes beyond it.
        broken = textwrap.wrap(
            whole, cells, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False
        )
        click.echo("\n".join(_inside(line, cells) for line in broken).replace("\0", " "), err=err)


def _inside(line: str, cells: int) -> str:
    """The line without its indent, where only so it fits: the terminal would break a long setting within a name."""
    bare = line.lstrip()
    return bare if cell_len(bare) <= cells < cell_len(line) else line


def announce(text: str) -> None:
    """Say on a terminal what is done before a long wait; nothing where the output is kept."""
    if sys.stderr.isatty():
        say(text, err=True)


def waiting_for(bootstrap: str) -> contextlib.AbstractContextManager[None]:
    """Say on a terminal that this cluster is waited for, if it is slow."""
    return unless_at_once(f"Waiting for an answer of {bootstrap}.")


@contextlib.contextmanager
def unless_at_once(text: str) -> Iterator[None]:
    """Say on a terminal what is done, once the command takes longer than a person takes for at once."""
    left_s = max(0.0, AT_ONCE_S - (time.monotonic() - BEGAN_S))
    timer = threading.Timer(left_s, announce, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # one that speaks at this moment must not do so within the answer


def print_rows(
    columns: Sequence[TableColumn],
    rows: Sequence[Mapping[str, str]],
    wide: bool = False,
    beside: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> None:
    """A table for people; cells are data and never read as markup. ``beside``: as of :func:`kagent.text_table.lines`."""
    for line in lines(columns, rows, width(wide), beside):
        click.echo(line)


def print_records(records: Iterable[Record], output: str, fields: Sequence[str]) -> None:
    """The records for programs: JSON lines, YAML or CSV. ``fields``: the header of CSV, also where there is no record."""
    if output == "json":
        for record in records:
            click.echo(json_line(record))
    elif output == "yaml":
        import yaml

        # Through JSON: safe_dump refuses enums and numpy values.
        plain = json.loads(json.dumps([dict(r) for r in records], default=str))
        # allow_unicode=False escapes what a terminal would obey, such as ESC and bidirectional marks.
        click.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=False).rstrip())
    else:
        click.echo(_csv(list(records), fields), nl=False)


def _csv(records: Sequence[Record], fields: Sequence[str]) -> str:
    # A record may have fields of its own, as one of a newer worker has: they come last.
    names = list(dict.fromkeys([*fields, *(name for record in records for name in record)]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_cell(record.get(name)) for name in names] for record in records)
    return out.getvalue()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    text = str(value) if isinstance(value, str | int | float) else json.dumps(value, default=str)
    # A spreadsheet takes such a text for a formula, and any client of the cluster may choose a group's name; numbers may be negative.
    # https://owasp.org/www-community/attacks/CSV_Injection
    if isinstance(value, str) and text.startswith(FORMULA):
        text = f"'{text}"
    return escaped(text)


def print_list(
    form: Format,
    listing: ListColumns,
    records: Sequence[Record],
    cells: Callable[[Record], Mapping[str, str]],
) -> None:
    """A list as it was asked for: a table for people, or the records in the order asked for, for programs."""
    found = form.chosen(records, listing)
    if form.is_table:
        print_rows(listing.columns, [cells(record) for record in found], form.wide)
    else:
        print_records(found, form.output, listing.fields)


SENTENCES = ("remarks", "unsafe")
"""Titles of columns whose texts are folded; numbers and lists of names are shortened."""


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None, wide: bool = False
) -> None:
    """A table whose columns have no order of importance: the last ones give way first, before them those without a title, which
    hold bars: a bar that is cut would show another number."""
    if title:
        from rich.console import Console
        from rich.text import Text

        # Text, not a string: rich would read a name's square brackets as markup.
        Console(file=sys.stdout, highlight=False, soft_wrap=True).print(Text(title))
    columns = [
        TableColumn(str(at), header.upper(), rank=at, least=14, keep=_kept(header) if at else "both")
        if header
        else TableColumn(str(at), "", rank=len(headers) + at)
        for at, header in enumerate(headers)
    ]
    print_rows(columns, [{str(at): cell for at, cell in enumerate(row)} for row in rows], wide)
    click.echo()


def _kept(header: str) -> Literal["start", "all"]:
    return "all" if header in SENTENCES else "start"


def json_line(item: Any) -> str:
    """One line of JSON in which every character that is not printable is escaped: names are anybody's text."""
    return escaped(orjson.dumps(item, option=orjson.OPT_NON_STR_KEYS, default=str).decode())


def escaped(text: str) -> str:
    """JSON on one line, or a cell of CSV, with every character that is not printable as JSON escapes it."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(char: str) -> str:
    # json leaves DEL as it is, and some terminals obey it.
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]
