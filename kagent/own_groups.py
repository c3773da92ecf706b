"""Which consumer groups are kagent's own: their commits are no input of its own, and their lag is not reported."""

from __future__ import annotations

# Not every name with the prefix: a team whose topics begin with `acme-` has groups of its own that do.
SUFFIXES = ("pipeline", "history", "keys", "subscriber")
"""Of the groups beside the worker's, which is named as the app; Spark and subscribers add to them."""


def is_own(app: str, group: str) -> bool:
    """Whether the group is one of the installation's whose app id this is."""
    return group == app or group.startswith(tuple(f"{app}-{suffix}" for suffix in SUFFIXES))


def patterns(app: str) -> tuple[str, ...]:
    """The same as group patterns of the settings (globs)."""
    return (app, *(f"{app}-{suffix}*" for suffix in SUFFIXES))
