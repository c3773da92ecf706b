"""What the commands share: the settings in effect and how a cluster is chosen."""

from __future__ import annotations

import contextlib
import getpass
import os
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import click

from kagent.commands import output
from kagent.errors import InputError
from kagent.text import shown

if TYPE_CHECKING:
    from kagent.kafka.admin import Admin
    from kagent.settings import Cluster, Settings


def asked(ctx: click.Context, option: str) -> str | None:
    """What a global option was given, wherever it stood on the command line."""
    # A global option may stand after the command too, where click gives it to the inner context.
    value: str | None = (ctx.find_root().obj or {}).get(option)
    return value


def effective(ctx: click.Context) -> Settings:
    """The settings, with the global options ``--config`` and ``--bootstrap-server`` applied."""
    # Here, not above: they take a third of a second to import, which no --help needs.
    from kagent.settings import load

    return load(asked(ctx, "config"), asked(ctx, "bootstrap"), asked(ctx, "cluster"))


def chosen(ctx: click.Context) -> tuple[Settings, str, Cluster]:
    """The settings, and name and address of the cluster that ``--cluster`` names."""
    settings = effective(ctx)
    name, cluster = settings.cluster(asked(ctx, "cluster"))
    return settings, name, cluster


def admin_of(cluster: Cluster) -> Admin:
    """The questions to a cluster for one who waits for them. Raises KafkaError at once where nothing listens at its address."""
    from kagent.kafka.admin import Admin
    from kagent.kafka.reach import refuse_absent

    refuse_absent(cluster.bootstrap)
    return Admin(cluster)


def live(ctx: click.Context, group: str) -> tuple[str, Any]:
    """Where it is from, and the scenario line of a group that runs now; what had to be assumed goes to stderr."""
    from kagent.kafka.live_scenario import scenario_line
    from kagent.strategies import STRATEGIES

    cluster = chosen(ctx)[2]
    with output.waiting_for(cluster.bootstrap):
        line = scenario_line(admin_of(cluster), group, STRATEGIES)
    for sentence in line["assumed"]:
        click.echo(f"assumed: {sentence}", err=True)
    return f"group {shown(group)}", line


def is_group(source: str, group: str | None) -> bool:
    """Whether the argument of ``plan`` and ``assign`` names a group, not a file of scenarios."""
    # A group may have any name: one that looks like a path is reached by --group.
    looks_like_a_file = os.path.sep in source or source.endswith((".json", ".jsonl", ".ndjson"))
    # A folder holds no scenarios: one that is called like a group does not stand in its way.
    is_there = os.path.exists(source) and not os.path.isdir(source)
    return group is None and source != "-" and not looks_like_a_file and not is_there


def opened(ctx: click.Context, source: str) -> IO[bytes]:
    """The scenarios' file, or standard input for ``-``; closed with the command. Raises InputError if it cannot be read."""
    try:
        return ctx.with_resource(click.open_file(source, "rb"))
    except OSError as error:
        raise InputError(f"The file {shown(source)} cannot be read ({error.strerror}).") from error


def verbose(ctx: click.Context) -> bool:
    """Whether ``--verbose`` was given."""
    return bool((ctx.find_root().obj or {}).get("verbose"))


def child_environment(ctx: click.Context) -> dict[str, str]:
    """The environment in which another kagent process sees the settings that this one was given by flags."""
    given = {
        # Absolute: the other process may have another working directory.
        "KAGENT_CONFIG": os.path.abspath(config) if (config := asked(ctx, "config")) else None,
        "KAGENT_CLUSTER": asked(ctx, "cluster"),
        "KAGENT_BOOTSTRAP": asked(ctx, "bootstrap"),
    }
    return {**os.environ, **{name: value for name, value in given.items() if value}}


def user() -> str:
    """Who asks, for the record of what was done; empty where the system has no name for it, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


@contextlib.contextmanager
def ended_by_ctrl_c(ctx: click.Context) -> Iterator[None]:
    """Exit code 0 on Ctrl-C, for what has no other end: there it is no failure. Everywhere else Ctrl-C is 130."""
    try:
        yield
    except KeyboardInterrupt:
        ctx.exit(0)
