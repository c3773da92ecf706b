"""``kagent watch``: what is open now, and recommendations as they come: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from kagent.client.client import Message, current, recommendations
from kagent.client.table_view import Board, colour
from kagent.client.text import headline, is_old, state_line, story
from kagent.commands.common import chosen
from kagent.contract.recommendation import State, to_bytes
from kagent.settings import Cluster
from kagent.text import shown

Show = Callable[[Message], None]
LONGEST = 4000
"""Characters of a line; names in it come from Kafka."""
REFRESH = 0.5


@click.command()
@click.option("--open", "--once", "once", is_flag=True, help="Print what is open now, and stop.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per message.")
@click.pass_context
def command(ctx: click.Context, once: bool, as_json: bool) -> None:
    """Show the open incidents and keep them up to date; where no terminal is, print each message as lines."""
    settings, name, _ = chosen(ctx)
    home, topic = settings.home_cluster(name), settings.topics.recommendations
    console = Console(highlight=False, soft_wrap=True)
    show = _json if as_json else _lines(console)
    table = console.is_terminal and not as_json
    try:
        if once:
            asyncio.run(_once(home, topic, console if table else None, show))
        else:
            asyncio.run(_board(home, topic, console) if table else _follow(home, topic, show))
    except KeyboardInterrupt:
        ctx.exit(0)


def _now() -> int:
    return int(time.time() * 1000)


def _json(message: Message) -> None:
    click.echo(to_bytes(message).decode())


def _lines(console: Console) -> Show:
    last: dict[str, tuple[str, str | None, bool]] = {}

    def show(message: Message) -> None:
        if isinstance(message, State):
            said = (message.status, message.reason, is_old(message, _now()))
            if last.get(message.cluster) != said:
                last[message.cluster] = said
                console.print(Text(state_line(message, _now())))
            return
        console.print(Text(headline(message, _now()), style=colour(message)))
        for line in story(message):
            console.print(Text(f"    {shown(line, LONGEST)}"))

    return show


async def _once(home: Cluster, topic: str, terminal: Console | None, show: Show) -> None:
    found = await current(home, topic)
    board = Board()
    for message in found.values():
        board.take(message)
    if terminal is not None:
        terminal.print(board.screen(_now(), terminal.width, len(found) + 20))
        return
    standing: list[Message] = [*board.ranked(), *board.states.values()]
    for message in standing:
        show(message)
    if not board.open:
        click.echo("No incident is open.", err=True)
    if not board.states:
        click.echo("No state message has come: nobody says that groups are looked after.", err=True)


async def _follow(home: Cluster, topic: str, show: Show) -> None:
    async for message in recommendations(home, topic=topic, states=True):
        show(message)


async def _board(home: Cluster, topic: str, console: Console) -> None:
    board = Board()

    async def read() -> None:
        async for message in recommendations(home, topic=topic, states=True):
            board.take(message)

    reading = asyncio.ensure_future(read())
    try:
        with Live(console=console, auto_refresh=False, transient=False) as live:
            while not reading.done():
                live.update(board.screen(_now(), console.width, console.height), refresh=True)
                await asyncio.wait([reading], timeout=REFRESH)
        reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
