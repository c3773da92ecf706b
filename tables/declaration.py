"""The one list of tables: a table is a file beside this one, a line in ``ROWS`` and an attribute of ``Tables``.

It does not import Faust; ``declare`` makes Faust's tables of it.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Protocol

import msgspec

from kagent.tables import coverage, ends, lag, members, verdicts

ROWS: dict[str, type[msgspec.Struct]] = {
    members.NAME: members.MembersRow,
    lag.NAME: lag.LagRow,
    verdicts.NAME: verdicts.VerdictRow,
    coverage.NAME: coverage.CoverageRow,
    ends.NAME: ends.EndsRow,
}
"""Name → row type. The name is part of the changelog topic's name: it never changes."""


PER_GROUP = (members.NAME, verdicts.NAME)
"""Tables with one row a group, under its key. ``Index.forget`` removes these rows; for ``lag``, with a row a group and topic, it has code of its own."""


class Tables(Protocol):
    """The tables by name: Faust's, or anything that behaves like them."""

    members: MutableMapping[str, Any]
    lag: MutableMapping[str, Any]
    verdicts: MutableMapping[str, Any]
    coverage: MutableMapping[str, Any]
    ends: MutableMapping[str, Any]
