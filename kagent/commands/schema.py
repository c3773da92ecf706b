"""``kagent schema``: the contract of the recommendations topic, for every other language."""

from __future__ import annotations

import json

import click

from kagent.contract.schema import asyncapi, schema


@click.command()
@click.option("--asyncapi", "whole", is_flag=True, help="The AsyncAPI document instead of the JSON Schema.")
def command(whole: bool) -> None:
    """Print the JSON Schema of the messages on the recommendations topic."""
    click.echo(json.dumps(asyncapi() if whole else schema(), indent=2))
