"""``kagent explain GROUP``: the story of one group, from the live cluster."""

from __future__ import annotations

import click
import orjson

from kagent.advice.explain import explain, lines
from kagent.checkup import UNSEEN, Checkup
from kagent.commands.check import policies, watch
from kagent.commands.common import chosen
from kagent.commands.spans import SPAN
from kagent.errors import InputError
from kagent.kafka.admin import Admin
from kagent.names import shown


@click.command()
@click.argument("group")
@click.option("--for", "seconds", type=SPAN, default="60s", show_default=True, help="How long to look.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON.")
@click.pass_context
def command(ctx: click.Context, group: str, seconds: float, as_json: bool) -> None:
    """Tell the story of GROUP: who is behind, by what evidence, what to do, what every strategy would give."""
    settings, name, cluster = chosen(ctx)
    admin = Admin(cluster)
    if group not in admin.groups():
        raise InputError(f"There is no group {shown(group)} on this cluster (or no right to see it).")
    checkup = Checkup(admin, name, policies(settings), seconds, lambda known: known == group)
    watch(checkup, quiet=as_json)
    if group not in checkup.groups:
        raise InputError(f"The group {shown(group)} is left out by the settings, or may not be described.")
    story = explain(*checkup.explained(group))
    if as_json:
        click.echo(orjson.dumps(story).decode())
        return
    for line in lines(story):
        click.echo(shown(line, 2000))
    click.echo(f"Seen from outside for {seconds:.0f} s. Only the service sees {UNSEEN}.")
