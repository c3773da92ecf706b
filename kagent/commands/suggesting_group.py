"""A click group that says which command was likely meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click

OTHER_WORDS = {
    "check": ("judge", "test", "validate", "verify"),
    "explain": ("describe", "diagnose", "inspect", "show", "why"),
    "lag": ("group", "groups", "list", "ls", "members", "offsets"),
    "mute": ("ignore", "pause", "silence", "snooze"),
    "mutes": ("silences",),
    "plan": ("rebalance", "recommend", "suggest"),
    "settings": ("config", "configure", "env"),
    "status": ("health", "healthy", "info", "ping"),
    "up": ("run", "serve", "start"),
    "watch": ("alerts", "incidents", "monitor", "recommendations", "tail", "top"),
}
"""Command → words under which people look for it: those of kafka-consumer-groups.sh, kubectl and Alertmanager among them."""


OTHER_OPTIONS = {"--format": "--output"}
"""Option → what it is called here."""


class SuggestingGroup(click.Group):
    """A group of commands; a typo in a command's name comes with a suggestion."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's. Raises UsageError with what was likely meant."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            other = [name for name in known if args[0].lower() in OTHER_WORDS.get(name, ())]
            near = other or get_close_matches(args[0], known, 2, 0.6)
            path = " ".join(("kagent", *ctx.command_path.split()[1:]))
            hint = f" Did you mean {' or '.join(near)}?" if near else f" `{path} --help` lists them."
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """As click's. Of an option that there is not, the suggestions are ours."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            error.message = f"There is no option {error.option_name}."
            error.possibilities = _near_options(error)
            raise


def _near_options(error: click.NoSuchOption) -> list[str]:
    """The options that were likely meant. click compares with the dashes, by which `--grp` is near `--top`."""
    params = error.ctx.command.params if error.ctx else []
    known = {name.lstrip("-"): name for param in params for name in param.opts if name.startswith("--")}
    if any(param.name in ("group", "groups") for param in params):
        known["group"] = "--group"  # taken for the argument, too
    other = OTHER_OPTIONS.get(error.option_name)
    if other is not None and other in known.values():
        return [other]
    return [known[name] for name in get_close_matches(error.option_name.lstrip("-"), known, 2, 0.6)]
