"""A click group that says which command was likely meant."""

from __future__ import annotations

from difflib import get_close_matches

import click


class SuggestingGroup(click.Group):
    """A group of commands; a typo in a command's name comes with a suggestion."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's. Raises UsageError with what was likely meant."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            near = get_close_matches(args[0], known, 2, 0.6)
            path = " ".join(("kagent", *ctx.command_path.split()[1:]))
            hint = f" Did you mean {' or '.join(near)}?" if near else f" `{path} --help` lists them."
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)
