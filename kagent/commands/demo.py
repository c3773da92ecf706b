"""``kagent demo``: the whole job on a real broker, in some minutes."""

from __future__ import annotations

import click


@click.command()
@click.option("--keep", is_flag=True, help="Leave it running for a look, until Ctrl-C.")
@click.pass_context
def command(ctx: click.Context, keep: bool) -> None:
    """Show the whole job on a real broker, with a twin that does not follow the advice."""
    from kagent.demo.choreography import main

    ctx.exit(main(keep))
