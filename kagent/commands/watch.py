"""``kagent watch``: what is open now, and recommendations as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import click
from rich.console import Console
from rich.text import Text

from kagent.advice.recommendation import Recommendation, Severity, State, to_bytes
from kagent.commands.common import chosen
from kagent.names import shown
from kagent.settings import Cluster
from kagent.subscribe.client import Message, current, is_open, recommendations
from kagent.subscribe.lines import headline, state_line, story

Show = Callable[[Message], None]
LONGEST = 4000
"""Characters of a line; names in it come from Kafka."""
COLOURS = {Severity.PAGE: "bold red", Severity.TICKET: "yellow", Severity.INFO: "cyan"}


@click.command()
@click.option("--once", is_flag=True, help="Print what is open now, and stop.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON per message.")
@click.pass_context
def command(ctx: click.Context, once: bool, as_json: bool) -> None:
    """Print recommendations as they come, after those that are open now."""
    settings, name, _ = chosen(ctx)
    home, topic = settings.home_cluster(name), settings.topics.recommendations
    show = _json if as_json else _person(Console(highlight=False, soft_wrap=True))
    try:
        asyncio.run(_once(home, topic, show) if once else _follow(home, topic, show))
    except KeyboardInterrupt:
        ctx.exit(0)


def _json(message: Message) -> None:
    click.echo(to_bytes(message).decode())


def _person(console: Console) -> Show:
    last: dict[str, tuple[str, str | None]] = {}

    def show(message: Message) -> None:
        if isinstance(message, State):
            said = (message.status, message.reason)
            if last.get(message.cluster) != said:
                last[message.cluster] = said
                console.print(
                    Text(state_line(message), style="green" if message.status == "watching" else "bold red")
                )
            return
        console.print(Text(headline(message), style=COLOURS[message.severity]))
        for line in story(message):
            console.print(Text(f"    {shown(line, LONGEST)}"))

    return show


async def _once(home: Cluster, topic: str, show: Show) -> None:
    found = await current(home, topic)
    for message in sorted(found.values(), key=lambda m: isinstance(m, State)):
        if isinstance(message, State) or is_open(message):
            show(message)
    if not any(isinstance(message, Recommendation) and is_open(message) for message in found.values()):
        click.echo("No incident is open.", err=True)


async def _follow(home: Cluster, topic: str, show: Show) -> None:
    async for message in recommendations(home, topic=topic, states=True):
        show(message)
