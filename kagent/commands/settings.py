"""``kagent settings``: what is in effect, secrets masked."""

from __future__ import annotations

import json

import click
import yaml

from kagent.commands.common import effective


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One line of JSON instead of YAML.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Print the settings in effect, from file and variables, secrets masked."""
    values = effective(ctx).model_dump(mode="json")
    click.echo(
        json.dumps(values)
        if as_json
        else yaml.safe_dump(values, sort_keys=False, allow_unicode=True).rstrip()
    )
