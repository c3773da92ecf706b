"""What the commands share: the settings in effect and how a cluster is chosen."""

from __future__ import annotations

import os
from typing import Any

import click

from kagent import settings as _settings
from kagent.settings import Cluster, Settings
from kagent.text import shown


def effective(ctx: click.Context) -> Settings:
    """The settings, with ``--config`` and ``--bootstrap`` of the root command applied."""
    asked = ctx.find_root().obj or {}
    return _settings.load(asked.get("config"), asked.get("bootstrap"))


def chosen(ctx: click.Context) -> tuple[Settings, str, Cluster]:
    """The settings, and name and address of the cluster that ``--cluster`` names."""
    settings = effective(ctx)
    name, cluster = settings.cluster((ctx.find_root().obj or {}).get("cluster"))
    return settings, name, cluster


def live(ctx: click.Context, group: str) -> tuple[str, Any]:
    """Where it is from, and the scenario line of a group that runs now; what had to be assumed goes to stderr."""
    from kagent.kafka.admin import Admin
    from kagent.kafka.live_scenario import scenario_line

    line = scenario_line(Admin(chosen(ctx)[2]), group)
    for sentence in line["assumed"]:
        click.echo(f"assumed: {sentence}", err=True)
    return f"group {shown(group)}", line


def verbose(ctx: click.Context) -> bool:
    """Whether ``--verbose`` was given."""
    return bool((ctx.find_root().obj or {}).get("verbose"))


def child_environment(ctx: click.Context) -> dict[str, str]:
    """The environment in which another kagent process sees the settings that this one was given by flags."""
    asked = ctx.find_root().obj or {}
    environment = dict(os.environ)
    if asked.get("config"):
        environment["KAGENT_CONFIG"] = os.path.abspath(asked["config"])
    if asked.get("cluster"):
        environment["KAGENT_CLUSTER"] = asked["cluster"]
    if asked.get("bootstrap"):
        environment["KAGENT_BOOTSTRAP"] = asked["bootstrap"]
    return environment
