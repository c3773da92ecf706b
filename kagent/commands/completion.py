"""Groups and topics for the shell to complete. A cluster that does not answer in time completes nothing, silently."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import click

from kagent.errors import KagentError

# A shell waits for completions without a word: better none than a prompt that hangs.
LISTENS_WITHIN_S, WITHIN_S = 0.5, 1.0


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the cluster's groups that begin so."""
    return _beginning(ctx, incomplete, topics=False)


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the cluster's topics that begin so."""
    return _beginning(ctx, incomplete, topics=True)


def _beginning(ctx: click.Context, incomplete: str, topics: bool) -> list[str]:
    from kagent.commands.common import chosen
    from kagent.kafka.reach import listens

    try:
        settings, _, cluster = chosen(ctx)
        # Before the client, which takes seconds to find that out.
        if not listens(cluster.bootstrap, LISTENS_WITHIN_S):
            return []
        from kagent.kafka.admin import Admin  # loads the client library

        admin = Admin(cluster, deadline=WITHIN_S)
        names: Iterable[str] = admin.topic_names() if topics else admin.groups()
        if not (topics or incomplete):
            # Before the first letter the users' groups only, as `kagent lag` lists them.
            ignored = settings.policies()
            names = [name for name in names if not ignored(name).ignore]
    except KagentError:
        return []
    # A name with control characters would be typed into the command line of the user.
    return sorted(_typed(name) for name in names if name.startswith(incomplete) and name.isprintable())


def _typed(name: str) -> str:
    """The name as bash takes it for one word; zsh and fish see to that themselves."""
    line = os.environ.get("COMP_WORDS", "")
    # Within quotes that the user opened a backslash would be part of the name.
    is_open = line.count('"') % 2 or line.count("'") % 2
    if is_open or not os.environ.get("_KAGENT_COMPLETE", "").startswith("bash"):
        return name
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", name)
