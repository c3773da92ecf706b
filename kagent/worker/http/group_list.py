"""The list of groups: filtered, ranked and cut to a page by every worker, then merged by the one that was asked. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kagent.contract.recommendation import urgency
from kagent.errors import InputError
from kagent.worker.http.models import GroupRow

MOST_ROWS = 500
"""Most groups on one page."""
CONDITION = {"open": 0, "suspect": 1, "blind": 2, "no_members": 3, "healthy": 4}
FACETS = ("verdict", "condition", "owner", "state", "cluster")
Rank = tuple[int, int, float, int, str, str]


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """Which groups, and which page of them. An empty text asks for nothing; ``search`` is part of a name, in any case."""

    search: str = ""
    verdict: str = ""
    condition: str = ""
    owner: str = ""
    state: str = ""
    cluster: str = ""
    offset: int = 0
    limit: int = 100

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> GroupQuery:
        """From the parameters of an address; unknown names are passed over. Raises InputError."""
        texts = {name: params[name] for name in ("search", *FACETS) if name in params}
        return cls(
            **texts,
            offset=_number(params, "offset", 0, 0, 10_000_000),
            limit=_number(params, "limit", 100, 1, MOST_ROWS),
        )

    def to_params(self) -> dict[str, str]:
        """As :meth:`from_params` reads it, for every worker's first rows up to the end of this page."""
        texts = {name: getattr(self, name) for name in ("search", *FACETS) if getattr(self, name)}
        # All rows up to the page's end: any of them may be the most urgent of all workers together.
        return {**texts, "first": str(self.offset + self.limit)}

    def matching(self, rows: Iterable[GroupRow]) -> list[GroupRow]:
        """The groups that are asked for. 20,000 rows are run through once per wanted facet, so each pass stays plain."""
        found = list(rows)
        for name in FACETS:
            if wanted := getattr(self, name):
                value = attrgetter(name)
                found = [row for row in found if value(row) == wanted]
        part = self.search.casefold()
        return [row for row in found if part in row.group.casefold()] if part else found


def _number(params: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = params.get(name, str(default))
    # int() also takes digits of other scripts, and raises on more than 4,300 of them:
    # https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not least <= int(text) <= most:
        raise InputError(f"{name}: a whole number from {least} to {most} is expected")
    return int(text)


def first_rows(rows: Iterable[GroupRow], query: GroupQuery, first: int) -> tuple[int, list[GroupRow]]:
    """How many groups match, and the ``first`` most urgent of them, in the order of :func:`_rank`.

    By condition, the worst first, so that the many healthy groups are ranked only if they are on the page.
    """
    matching = query.matching(rows)
    by_condition: dict[str, list[GroupRow]] = {name: [] for name in CONDITION}
    for row in matching:
        by_condition[row.condition].append(row)
    found: list[GroupRow] = []
    for some in by_condition.values():
        if len(found) < first:
            found += _most_urgent(some, first - len(found))
    return len(matching), found


def _most_urgent(rows: list[GroupRow], first: int) -> list[GroupRow]:
    """Of groups in one condition. A heap: a page has a hundred rows of maybe 20,000."""
    ranks = [
        (
            *urgency(row.incident.severity if row.incident else None, row.seconds_behind, row.lag_records),
            row.cluster,
            row.group,
            at,
        )
        for at, row in enumerate(rows)
    ]
    # The row's place is the last part of the rank: rows themselves have no order to compare by.
    return [rows[rank[-1]] for rank in heapq.nsmallest(first, ranks)]


def facets(rows: Sequence[GroupRow]) -> dict[str, dict[str, int]]:
    """How many groups have each value of each facet, "" for none."""
    counts = {name: Counter(map(attrgetter(name), rows)) for name in FACETS}
    return {name: {value or "": n for value, n in counter.items()} for name, counter in counts.items()}


def added(parts: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """The facets of all workers."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for part in parts:
        for name, counter in counts.items():
            counter.update(part.get(name, {}))
    return {name: dict(counter) for name, counter in counts.items()}


def page(rows: Iterable[Mapping[str, Any]], offset: int, limit: int) -> list[dict[str, Any]]:
    """The page out of every worker's first rows. A group that two answer for, as while it changes hands, is shown once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        # The first wins: workers are asked in one order, so a row does not jump between two answers.
        found.setdefault((row["cluster"], row["group"]), dict(row))
    return sorted(found.values(), key=_rank)[offset : offset + limit]


def _rank(row: Mapping[str, Any]) -> Rank:
    severity = row["incident"] and row["incident"]["severity"]
    condition = CONDITION.get(row["condition"], CONDITION["healthy"])
    return (
        condition,
        *urgency(severity, row["seconds_behind"], row["lag_records"]),
        row["cluster"],
        row["group"],
    )
