"""``kagent worker``: the Faust worker; the same as ``faust -A kagent.app worker``."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import click

from kagent.commands.common import child_environment, chosen, verbose
from kagent.commands.output import announce, say
from kagent.errors import SetupError

# Python's name of a level and Faust's, which is the only one that Faust takes. Its CRIT is none of Python's: with it no logging is set up.
FAUST_LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warn", "WARN": "warn", "ERROR": "error"}


@click.command()
@click.option(
    "--loglevel",
    "-l",
    type=click.Choice(list(FAUST_LEVELS), case_sensitive=False),
    default="INFO",
    show_default=True,
    help="Of kagent's lines. Those of its libraries come from WARNING on, or all with DEBUG or --verbose.",
)
@click.option(
    "--web-port", "-p", type=click.IntRange(0, 65535), help="Port of /metrics, /healthz and the API."
)
@click.pass_context
def command(ctx: click.Context, loglevel: str, web_port: int | None) -> None:
    """Run the Faust worker until stopped.

    --verbose prints Faust's banner and what its libraries say.
    """
    settings, name, cluster = chosen(ctx)
    asked = settings.worker.web_port if web_port is None else web_port
    port = _free(settings.worker.web_host, asked)
    if port != asked:
        say(f"The worker's web port is {port}.")
    _folder(settings.worker.data)
    # Faust itself takes seconds to its first line.
    announce(f"The worker of cluster {name} at {cluster.bootstrap} starts.")
    loud = [] if verbose(ctx) else ["--quiet"]
    faust = [sys.executable, "-m", "faust", *loud, "--datadir", settings.worker.data, "-A", "kagent.app"]
    environment = child_environment(ctx) | {"KAGENT_WORKER__WEB_PORT": str(port)}
    # exec: signals of a supervisor or container reach Faust itself, and its exit code is ours.
    options = ["--loglevel", FAUST_LEVELS[loglevel], "--web-port", str(port)]
    os.execve(sys.executable, [*faust, "worker", *options], environment)


def _folder(data: str) -> None:
    """Faust creates only the last folder of a path, and fails with a traceback if one above it is missing."""
    try:
        Path(data).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"The folder {data} cannot be made ({error.strerror}): set worker.data to one that can be written."
        ) from error


def _free(host: str, port: int) -> int:
    """The port, for 0 one that is free: Faust takes no 0, and would report a port in use only as a traceback, and late."""
    try:
        # The name tells whether it is IPv4 or IPv6; an empty one is every address of IPv4.
        family, kind, number, _, address = socket.getaddrinfo(
            host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, number) as probe:
            # As aiohttp binds: without it, connections in TIME_WAIT of the worker before would refuse a restart.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            free: int = probe.getsockname()[1]
            return free
    except socket.gaierror as error:
        raise SetupError(
            f"worker.web_host {host} is no address of this machine ({error.strerror})."
        ) from error
    except OSError as error:
        raise SetupError(
            f"The web port {port} cannot be used ({error.strerror}): stop what listens there, or set worker.web_port."
        ) from error
