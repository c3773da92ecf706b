"""``kagent watch``: what is open now, and recommendations as they come: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from kagent.client.incident_text import headline, is_old, state_line, story
from kagent.client.watch_table import COLUMNS, FIELDS, Board, colour
from kagent.commands import output
from kagent.commands.common import chosen, ended_by_ctrl_c
from kagent.commands.output import Format, ListColumns
from kagent.contract.recommendation import Recommendation, State, to_bytes
from kagent.errors import KafkaError
from kagent.kafka.names import run
from kagent.text import shown

if TYPE_CHECKING:
    from kagent.client.client import Message
    from kagent.settings import Settings

    Show = Callable[[Message], None]
LONGEST = 4000
"""Characters of a line; names in it come from Kafka."""
REFRESH_S = 0.5
LISTING = ListColumns(COLUMNS, FIELDS)
ONCE_LINES = 60
"""Below the table, with --open: some incidents whole, commands included; what is printed once may scroll."""


@click.command()
@click.option("--open", "--once", "once", is_flag=True, help="Print what is open now, and stop.")
@output.options
@click.pass_context
def command(ctx: click.Context, once: bool, form: Format) -> None:
    """Show the open incidents and keep them up to date; where no terminal is, print each message as lines.

    By default the most urgent incident comes first: by severity, then by seconds behind. --wide shortens and leaves out nothing: on
    a terminal that is narrower than the table, each incident is a block of lines. Ctrl-C is the way to end it, with exit code 0.

    --json prints each message whole, and of an incident until when it is muted (`muted_until`, else null). --open with --output yaml or csv prints one row an incident.
    """
    settings, name, _ = chosen(ctx)
    console = Console(highlight=False, soft_wrap=True)
    board = Board()
    show = _json(board) if form.output == "json" else _lines(console, board.line_note)
    # What is kept up to date needs a terminal; in a pipe it would be printed at its end.
    table = (console.is_terminal or (form.wide and once)) and form.is_table
    if form.sort:
        LISTING.sorted_by(form.sort)  # a wrong name is refused before anything is read
    board.choose = functools.partial(_chosen, board, form)
    if once or form.output in ("yaml", "csv"):
        with output.waiting_for(settings.home_cluster(name).bootstrap):
            run(_once(settings, name, console if table else None, show, form, board))
        return
    with ended_by_ctrl_c(ctx):
        follow = _board(settings, board, name, console, form.wide) if table else _follow(settings, name, show)
        run(follow if table else _noting_mutes(settings, name, board, follow))


def _now() -> int:
    return int(time.time() * 1000)


def _json(board: Board) -> Show:
    def show(message: Message) -> None:
        if isinstance(message, Recommendation):
            mute = board.mutes.of(message.cluster, message.group, _now())
            message = message.model_copy(update={"muted_until": mute.until if mute else None})
        click.echo(output.escaped(to_bytes(message).decode()))

    return show


def _lines(console: Console, note: Callable[[Recommendation, int], str] = lambda rec, now: "") -> Show:
    last: dict[str, tuple[str, str | None, bool]] = {}

    def show(message: Message) -> None:
        if isinstance(message, State):
            # A state comes every 30 s: printed when it changes, or when it grew old in between.
            before = (message.status, message.reason, is_old(message, _now()))
            if last.get(message.cluster) != before:
                last[message.cluster] = before
                console.print(Text(state_line(message, _now())))
            return
        console.print(Text(headline(message, _now(), note(message, _now())), style=colour(message)))
        for line in story(message):
            console.print(Text(f"    {shown(line, LONGEST)}"))

    return show


async def _once(
    settings: Settings, name: str, terminal: Console | None, show: Show, form: Format, board: Board
) -> None:
    from kagent.client.client import current
    from kagent.client.mutes_topic import current_mutes
    from kagent.kafka.reach import refuse_absent

    home = settings.home_cluster(name)
    await asyncio.to_thread(refuse_absent, home.bootstrap)
    # At once: each is a connection of its own, and a person waits for both.
    muting = asyncio.ensure_future(current_mutes(home, settings.topics.mutes))
    try:
        for message in (await current(home, settings.topics.recommendations)).values():
            board.take(message)
        with contextlib.suppress(KafkaError):  # without the right to read mutes they are not shown
            board.mutes = await muting
    finally:
        muting.cancel()
        await asyncio.gather(muting, return_exceptions=True)
    if form.output in ("yaml", "csv"):
        records = [board.record(rec, _now()) for rec in board.ranked()]
        output.print_records(records, form.output, LISTING.fields)
    elif terminal is not None:
        width = output.width() or 10_000
        terminal.width = width  # of what is no terminal rich takes 80 and would cut there
        height = sys.maxsize if form.wide else len(board.open) + ONCE_LINES
        terminal.print(board.screen(_now(), width, height, form.wide), soft_wrap=False)
    else:
        _print_standing(board, show)


def _chosen(board: Board, form: Format, ranked: Sequence[Recommendation]) -> Sequence[Recommendation]:
    """Apply ``--sort`` and ``--top``."""
    if form.sort is None:
        return ranked[: form.top]
    rows = form.chosen([board.record(rec, _now()) for rec in ranked], LISTING)
    by_name = {(rec.cluster, rec.group): rec for rec in ranked}
    return [by_name[row["cluster"], row["group"]] for row in rows]


def _print_standing(board: Board, show: Show) -> None:
    # The incidents first: the state messages say how far their absence can be trusted.
    standing: list[Recommendation | State] = [*board.ranked(), *board.states.values()]
    for message in standing:
        show(message)
    if not board.open:
        click.echo(board.nothing_open(), err=True)
    if not board.states:
        output.say(
            "No state message has come: no worker runs, so the health of groups is unknown.",
            err=True,
        )


async def _follow(settings: Settings, name: str, show: Show) -> None:
    from kagent.client.client import followed, newest_states

    home = settings.home_cluster(name)
    async for message in newest_states(followed(home, settings.topics.recommendations)):
        show(message)


async def _noting_mutes(
    settings: Settings, name: str, board: Board, follow: Coroutine[None, None, None]
) -> None:
    """Follow with the mutes of now on the board."""
    from kagent.client.mutes_topic import current_mutes

    with contextlib.suppress(KafkaError):  # without the right to read mutes they are not shown
        # First: what stands is printed at once, and what is muted of it must say so.
        board.mutes = await current_mutes(settings.home_cluster(name), settings.topics.mutes)
    muting = asyncio.ensure_future(_read_mutes(settings, name, board))
    try:
        await follow
    finally:
        muting.cancel()
        await asyncio.gather(muting, return_exceptions=True)


async def _read_mutes(settings: Settings, name: str, board: Board) -> None:
    from kagent.client.mutes_topic import follow_mutes

    with contextlib.suppress(KafkaError):
        await follow_mutes(settings.home_cluster(name), settings.topics.mutes, board.mutes.take)


async def _board(settings: Settings, board: Board, name: str, console: Console, wide: bool) -> None:
    from kagent.client.client import followed
    from kagent.kafka.topic_reader import ReadMark

    home, board.is_read = settings.home_cluster(name), False

    async def read() -> None:
        async for message in followed(home, settings.topics.recommendations):
            if isinstance(message, ReadMark):
                board.is_read |= message is ReadMark.CAUGHT_UP
            else:
                board.take(message)

    reading = asyncio.ensure_future(read())
    muting = asyncio.ensure_future(_read_mutes(settings, name, board))
    try:
        with Live(console=console, auto_refresh=False, transient=False) as live:
            # Drawn on a clock too: ages grow while no message comes.
            while not reading.done():
                live.update(board.screen(_now(), console.width, console.height, wide), refresh=True)
                await asyncio.wait([reading], timeout=REFRESH_S)
        # Raises what ended the reading, such as a refused login: without it the board would only close.
        reading.result()
    finally:
        reading.cancel()
        muting.cancel()
        await asyncio.gather(reading, muting, return_exceptions=True)
