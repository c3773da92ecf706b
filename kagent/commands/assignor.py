"""``kagent assignor``: where the jar is, and what a broker or a Java consumer needs to use it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kagent.assignor import CONSUMER_CLASS, JAR, NAME, broker_lines
from kagent.commands.common import asked, chosen, effective
from kagent.errors import InputError

if TYPE_CHECKING:
    from kagent.settings import Settings

APPLY = ("dry", "follow", "off")
CLUSTER = "main"
"""What both assignors take for `kagent.cluster` where no setting gives it."""


@click.command()
@click.option("--jar", is_flag=True, help="Print the path of the jar, and nothing else.")
@click.option("--copy", type=click.Path(path_type=Path), help="Copy the jar into this folder.")
@click.option(
    "--apply",
    type=click.Choice(APPLY),
    default="dry",
    show_default=True,
    help="The kagent.apply of the printed lines.",
)
@click.option(
    "--consumer", is_flag=True, help="The lines of a Java consumer of the classic protocol instead."
)
@click.option(
    "--as-uniform",
    is_flag=True,
    help="kagent's in place of Kafka's `uniform`: for members that cannot name kagent (franz-go).",
)
@click.pass_context
def command(
    ctx: click.Context, jar: bool, copy: Path | None, apply: str, consumer: bool, as_uniform: bool
) -> None:
    """Print the path of the jar with kagent's assignors, and the settings to add on every broker."""
    if copy is not None:
        _copy(copy)
    if jar:
        click.echo(str(JAR))
        return
    if consumer:
        settings = effective(ctx)
        # The lines hold no address: without a cluster in the settings, the assignor's own default name is meant.
        name = chosen(ctx)[1] if settings.clusters else asked(ctx, "cluster") or CLUSTER
        click.echo(_consumer_text(name, settings, apply))
    else:
        settings, name, _ = chosen(ctx)
        click.echo(_broker_text(settings.home_cluster(name).bootstrap, name, settings, apply, as_uniform))


def _copy(folder: Path) -> None:
    try:
        shutil.copy(JAR, folder)
    except OSError as error:
        raise InputError(f"The jar could not be copied to {folder}: {error.strerror}.") from error


def _broker_text(bootstrap: str, cluster: str, settings: Settings, apply: str, as_uniform: bool) -> str:
    lines = broker_lines(bootstrap, cluster, settings.topics.prefix, apply, as_uniform)
    group = (
        "# Then, in kagent's settings, for groups that name uniform or nothing: policy: {uniform_follows: true}"
        if as_uniform
        else f"# Then, in every consumer of a group that shall follow: group.protocol=consumer, group.remote.assignor={NAME}"
    )
    return "\n".join(
        [
            f"# The jar, for the folder libs/ of every broker (Kafka 4.1 to 4.3, Java 17): {JAR}",
            "# In server.properties of every broker, then restart them one by one:",
            *(f"{key}={value}" for key, value in lines.items()),
            "# TLS or SASL of the reader: kagent.client.security.protocol=… and so on.",
            group,
        ]
    )


def _consumer_text(cluster: str, settings: Settings, apply: str) -> str:
    more = {"kagent.cluster": (cluster, CLUSTER), "kagent.topic.prefix": (settings.topics.prefix, "kagent-")}
    return "\n".join(
        [
            f"# The jar, for the class path of every consumer: {JAR}",
            # The coordinator takes a protocol that all members list: the first roll adds it, the second leaves it alone.
            "# Roll twice: first with the new one before the present one, then with the new one alone.",
            f"partition.assignment.strategy={CONSUMER_CLASS}",
            f"kagent.apply={apply}",
            # What equals the default is left out: fewer lines to copy into every consumer.
            *(f"{key}={value}" for key, (value, usual) in more.items() if value != usual),
        ]
    )
