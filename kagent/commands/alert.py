"""``kagent alert``: opens, changes and closes to the destinations of the settings."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from typing import TYPE_CHECKING

import click

from kagent.commands.common import chosen, effective, verbose
from kagent.commands.output import announce, say
from kagent.commands.suggesting_group import SuggestingGroup
from kagent.contract.recommendation import (
    Basis,
    GroupKind,
    Recommendation,
    Resolution,
    Severity,
    Skew,
    Status,
    Verdict,
)
from kagent.errors import InputError, KagentError
from kagent.kafka.names import run
from kagent.text import shown
from kagent.worker.repeated_lines import shorten_outages

if TYPE_CHECKING:
    from kagent.alert.bridge import Bridge
    from kagent.alert.delivery_log import Event
    from kagent.settings.alert_destinations import AnyDestination


@click.group(
    cls=SuggestingGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Send incidents to destinations such as PagerDuty and Alertmanager, until stopped.

    `kagent alert test NAME` sends an opening and its end to one destination.
    """
    if ctx.invoked_subcommand is not None:
        return
    settings, name, cluster = chosen(ctx)
    # Only kagent's own loggers at this level: httpx logs each URL, and a webhook's URL is often its secret.
    level = logging.DEBUG if verbose(ctx) else logging.INFO
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    shorten_outages()
    logging.getLogger("kagent").setLevel(level)
    logging.getLogger("aiokafka").setLevel(logging.WARNING)  # a service says that its broker is away
    logging.getLogger("kagent.alert").info("Starting for cluster %s at %s.", name, cluster.bootstrap)
    from kagent.alert.bridge import Bridge

    run(_run(Bridge(settings, settings.home_cluster(name))))


@command.command("test")
@click.argument("name")
@click.pass_context
def send_test(ctx: click.Context, name: str) -> None:
    """Send a test incident and its end to the destination NAME.

    NAME is one of `alert.destinations` in the settings.
    """
    settings = effective(ctx)
    destinations = settings.alert.destinations
    if name not in destinations:
        from kagent.settings.unknown_names import suggestion

        near = suggestion(name, destinations)
        listed = (
            f"there are: {', '.join(destinations)}."
            if destinations
            else "none is set under alert.destinations."
        )
        known = f"did you mean {near}?" if near else listed
        raise InputError(f"The settings have no alert destination {shown(name)}; {known}")
    about = destinations[name]
    announce(f"Sending a test incident and its end to {name} ({about.type}).")
    run(_send_test(name, about, settings.worker.http.public_url))
    say(f"{name} ({about.type}) took a test incident and its end.")


async def _send_test(name: str, about: AnyDestination, public_url: str | None) -> None:
    from kagent.alert.delivery_log import Delivered
    from kagent.alert.destinations import sender
    from kagent.alert.sending import DeliveryFailed, DeliveryRefused

    sending = sender(about, public_url)
    events: tuple[Event, ...] = ("open", "close")
    # One time for both: the end of another incident would leave the first one firing.
    now_ms = int(time.time() * 1000)
    for event in events:
        try:
            await sending.send(event, Delivered.of(made_up_incident(event, now_ms), None))
        except (DeliveryFailed, DeliveryRefused, TimeoutError) as error:
            raise KagentError(
                f"{name} ({about.type}) did not take the test incident: {error or 'no answer in time'}."
            ) from error


def made_up_incident(event: Event, now_ms: int) -> Recommendation:
    """An incident that cannot be mistaken for a real one."""
    return Recommendation(
        # A new id each time: receivers drop a repetition of one that they have closed.
        id=f"kagent-test-{now_ms // 1000}",
        cluster="kagent-test",
        group="kagent-test",
        status=Status.RESOLVED if event == "close" else Status.OPEN,
        verdict=Verdict.BALANCED,
        severity=Severity.INFO,
        confidence="high",
        reason="This is a test by `kagent alert test`; no group is affected.",
        group_kind=GroupKind.CLASSIC,
        opened_at=now_ms,
        as_of=now_ms,
        valid_until=now_ms + 60_000,
        skew=Skew(now=None),
        basis=Basis(generation=None, digest="test"),
        resolution=Resolution.DRAINED if event == "close" else None,
    )


async def _run(bridge: Bridge) -> None:
    task = asyncio.ensure_future(bridge.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        # Cancelled, not killed: the delivery log's last record is written and its producer closed.
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
    except BaseExceptionGroup as group:
        # TaskGroup wraps what a task raised; without this a person would get a traceback instead of a sentence.
        known, _ = group.split(KagentError)
        if known is None:
            raise
        raise _first(known) from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
