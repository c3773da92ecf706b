"""``kagent jars``: fetch the Java archives into the cache."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Fetch the Java archives into the cache."""
