"""``kagent alert``: opens, changes and closes to the destinations of the settings."""

from __future__ import annotations

import asyncio
import logging
import signal

import click

from kagent.alert.bridge import Bridge
from kagent.commands.common import chosen, verbose
from kagent.errors import KagentError


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Send incidents to Alertmanager, PagerDuty, webhooks and apprise, until stopped."""
    settings, name, _ = chosen(ctx)
    level = logging.DEBUG if verbose(ctx) else logging.INFO
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kagent").setLevel(level)
    asyncio.run(_run(Bridge(settings, settings.home_cluster(name))))


async def _run(bridge: Bridge) -> None:
    task = asyncio.ensure_future(bridge.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
    except BaseExceptionGroup as group:
        known, _ = group.split(KagentError)
        if known is None:
            raise
        raise _first(known) from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
