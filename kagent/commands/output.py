"""Tables for people, as wide as the terminal or as their content when piped, and JSON that no terminal obeys."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 200


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table; headers, cells and title are data and never read as markup."""
    table = Table(box=box.SIMPLE_HEAD, title=Text(title) if title else None)
    for header in headers:
        table.add_column(Text(header))
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    console.print(table)


def json_line(item: Any) -> str:
    """One line of JSON in which every character that is not printable is escaped: names are anybody's text."""
    text = orjson.dumps(item).decode()
    return (
        text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    )
