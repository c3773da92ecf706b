"""What this worker alone answers; ``kagent.worker.http.api`` adds up what all workers do."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kagent.contract.recommendation import Recommendation
from kagent.detect.state import JudgeState
from kagent.incident.evaluate import Judgement
from kagent.text import shown
from kagent.worker.engine import GroupEngine
from kagent.worker.groups import Entry
from kagent.worker.http.group_detail import detail
from kagent.worker.http.group_list import GroupQuery, facets, first_rows
from kagent.worker.http.judgement_view import columns, summary_of
from kagent.worker.http.live_view import row_of
from kagent.worker.http.models import GroupDetail, GroupRow
from kagent.worker.http.timeline import merged, outline

Json = dict[str, Any]
REMEMBERED = 16
SPARKS = 1000
"""Pages that begin further down the list come without sparklines."""
MOST_OPEN = 50


@dataclass(slots=True)
class Own:
    """``loaded``: the partitions whose groups may be shown; none before the worker has caught up."""

    desk: GroupEngine
    loaded: Callable[[], Collection[int]]
    # A restarted worker counts versions from 0 again: without it, a new answer could have an old one's tag.
    boot: str = field(default_factory=lambda: secrets.token_hex(4))
    _made: OrderedDict[str, Json] = field(default_factory=OrderedDict)

    def version(self) -> str:
        """Changes with everything that this worker could answer."""
        partitions = "-".join(map(str, sorted(self.loaded())))
        return f"{self.boot}.{self.desk.live.version}.{partitions}"

    async def answer(self, question: str, params: Mapping[str, str]) -> Json:
        """The answer to ``status``, ``groups``, ``group`` or ``series``. Raises KeyError for any other, InputError for params."""
        make = {"status": self._status, "groups": self._groups, "group": self._group, "series": self._series}[
            question
        ]
        version, key = self.version(), f"{question} {sorted(params.items())}"
        known = self._made.get(key)
        if known is not None and known["version"] == version:
            return known
        made = self._made[key] = {
            "worker": self.desk.worker,
            "version": version,
            "partitions": sorted(self.loaded()),
            "time_ms": int(self.desk.last_tick * 1000),
            **make(params),
        }
        # The questions of a few open pages; a new version makes them all anew.
        while len(self._made) > REMEMBERED:
            self._made.popitem(last=False)
        # Made in one piece, from one state; afterwards a heartbeat that waited may go out.
        await asyncio.sleep(0)
        return made

    def _rows(self) -> list[GroupRow]:
        live = self.desk.live
        return [row for p in self.loaded() for row in live.rows.get(p, {}).values()]

    def _status(self, params: Mapping[str, str]) -> Json:
        _, rows = first_rows((r for r in self._rows() if r.incident), GroupQuery(), MOST_OPEN)
        summaries = [s.to_json() for (_, p), s in self.desk.live.summaries.items() if p in set(self.loaded())]
        return {"summaries": summaries, "open": [self._with_spark(row) for row in rows]}

    def _groups(self, params: Mapping[str, str]) -> Json:
        first = int(params.get("first", "100"))
        rows = self._rows()
        total, found = first_rows(rows, GroupQuery.from_params(params), first)
        sparks = first <= SPARKS
        return {
            "total": total,
            "rows": [self._with_spark(row) if sparks else row for row in found],
            "facets": facets(rows),
        }

    def _with_spark(self, row: GroupRow) -> GroupRow:
        return replace(row, spark=self.desk.live.spark(row, self.desk.now // 1000))

    def _group(self, params: Mapping[str, str]) -> Json:
        found = list(self._entries(params))
        return {
            "details": [self._detail(partition, entry) for partition, entry in found],
            "names": [entry.group for _, entry in found],
        }

    def _series(self, params: Mapping[str, str]) -> Json:
        series = self.desk.live.series
        return {"series": [_harmless(series.to_json(entry.key)) for _, entry in self._entries(params)]}

    def _entries(self, params: Mapping[str, str]) -> Iterator[tuple[int, Entry]]:
        """The groups of this name, as it is or as it is shown; the cluster may be left out."""
        cluster, name = params.get("cluster", ""), params.get("group", "")
        for partition in self.loaded():
            for entry in filter(self.desk.evaluator.is_there, self.desk.index.entries(partition).values()):
                if name in (entry.group, shown(entry.group)) and cluster in ("", entry.cluster):
                    yield partition, entry

    def _detail(self, partition: int, entry: Entry) -> GroupDetail:
        desk, key = self.desk, entry.key
        state, policy = entry.judged or JudgeState(first_seen=desk.now), desk.policies(entry.group)
        # After a restart there is no judgement yet, but a state from its row.
        judged = replace(desk.looks.get(key, Judgement(state)), state=state)
        seen = desk.observe(partition, entry, desk.now)
        message = desk.published.get(key)
        last = message if isinstance(message, Recommendation) else None
        row = desk.live.rows.get(partition, {}).get(key) or row_of(summary_of(seen, judged, policy), last)
        events = merged(desk.live.events.get(key, ()), outline(last))
        made = columns(seen, judged, state, policy, desk.redaction)
        return detail(made, self._with_spark(row), last, events, desk.now)


def _harmless(series: Json) -> Json:
    return {**series, "members": {shown(name): columns for name, columns in series["members"].items()}}
