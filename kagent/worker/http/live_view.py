"""What one worker shows of its groups: a row each, kept up to date by the ticks, and the last hour.

Rows are made when a group is judged, never when somebody looks: a page that is open costs the worker almost nothing.
``version`` rises with every change, so that a client that has seen it gets an empty answer (HTTP 304).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kagent.contract.admission import IncidentRow
from kagent.contract.recommendation import Action, Recommendation, Status
from kagent.incident.condition import Condition, condition_of
from kagent.text import LONGEST, shown
from kagent.worker.http.judgement_view import GroupSummary
from kagent.worker.http.models import GroupRow, OpenIncident
from kagent.worker.http.series import SeriesStore
from kagent.worker.http.timeline import Event, Milestones, events_between, events_of, merged
from kagent.worker.status import Summary, most_urgent

CALM = ("healthy", "no_members")
"""Conditions in which a quiet group changes by nothing but time."""


@dataclass(slots=True)
class LiveView:
    """The rows of one worker's groups by partition of the events topic and key; times in ms."""

    rows: dict[int, dict[str, GroupRow]] = field(default_factory=dict)
    series: SeriesStore = field(default_factory=SeriesStore)
    milestones: dict[str, Milestones] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)
    summaries: dict[tuple[str, int], Summary] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    """Cluster and name as it is shown → key."""
    version: int = 0

    def judged(
        self,
        partition: int,
        key: str,
        now_ms: int,
        quiet: bool,
        make: Callable[[], GroupSummary],
        message: Recommendation | None,
    ) -> None:
        """A group was judged. A quiet one is added up once a minute only, as often as its series has a point."""
        rows, time_s = self.rows.setdefault(partition, {}), now_ms // 1000
        known = rows.get(key)
        if quiet and known and known.condition in CALM and not self.series.due(key, time_s):
            return
        found = make()
        self._note(key, time_s, found)
        row = rows[key] = row_of(found, message)
        self.keys[row.cluster, row.group] = key
        self._happened(key, found.milestones)

    def _note(self, key: str, time_s: int, found: GroupSummary) -> None:
        # Blind: a gap in the curve. The last value drawn on would look like a measurement.
        lag = math.nan if found.lag_records is None or found.blind else float(found.lag_records)
        behind_s = math.nan if found.blind or found.seconds_behind is None else found.seconds_behind
        skew = math.nan if found.skew is None else found.skew
        self.series.note(key, time_s, (lag, behind_s, skew), found.late)
        if found.members:
            self.series.note_members(key, time_s, found.members)
        else:
            self.series.quiet(key, time_s)

    def _happened(self, key: str, after: Milestones) -> None:
        before = self.milestones.get(key)
        if before == after:
            return
        self.milestones[key] = after
        new = events_between(before or Milestones(), after)
        if new:
            self.events[key] = merged(self.events.get(key, ()), new)

    def published(self, partition: int, key: str, message: Recommendation) -> None:
        """A message about the group was published: it is seen at once, not at the next tick."""
        # Before the row: a group that has no row yet still has its story when the first judgement makes one.
        self.events[key] = merged(self.events.get(key, ()), events_of(message))
        rows = self.rows.setdefault(partition, {})
        if key in rows:
            incident = open_incident(message)
            # Only what the message changes; the rest of the row waits for the next judgement.
            row = rows[key]
            waits = row.not_opened is not None
            condition = _condition(row.blind, incident, row.verdict, row.no_members, waits)
            rows[key] = replace(row, incident=incident, condition=condition)
        self.version += 1

    def ticked(self, partition: int, summaries: Iterable[Summary], known: Collection[str]) -> None:
        """A partition was judged whole; what is not ``known`` any more is forgotten."""
        self.summaries |= {(s.cluster, partition): s for s in summaries}
        rows = self.rows.setdefault(partition, {})
        for key in [key for key in rows if key not in known]:
            self._forget(rows, key)
        self.version += 1

    def keep(self, partitions: Collection[int]) -> None:
        """Drop what belongs to partitions that are not ours any more."""
        # Their new owner has these groups: with both, the page would list them twice for a while.
        for partition in [p for p in self.rows if p not in partitions]:
            rows = self.rows.pop(partition)
            for key in list(rows):
                self._forget(rows, key)
        self.summaries = {(c, p): s for (c, p), s in self.summaries.items() if p in partitions}
        self.version += 1

    def blind_reason(self, partition: int, cluster: str) -> str | None:
        """Why one of the partition's groups of this cluster is blind, with its name; None if none is."""
        rows = self.rows.get(partition, {}).values()
        return next(
            (f"{row.group}: {row.blind}" for row in rows if row.cluster == cluster and row.blind), None
        )

    def without_members(self, partition: int, cluster: str) -> int:
        """In how many of the partition's groups of this cluster records wait that no member reads."""
        rows = self.rows.get(partition, {}).values()
        return sum(row.cluster == cluster and row.condition == "no_members" for row in rows)

    def incidents(self, partition: int, cluster: str, now_ms: int) -> list[IncidentRow]:
        """The present numbers of the partition's most urgent open incidents of this cluster; of a blind group they are not known."""
        rows = [row for row in self.rows.get(partition, {}).values() if row.cluster == cluster]
        return most_urgent(
            IncidentRow(row.incident.id, row.incident.severity, now_ms, row.seconds_behind, row.lag_records)
            for row in rows
            if row.incident is not None and row.blind is None
        )

    def spark(self, row: GroupRow, now_s: int) -> list[float | None]:
        """The lag of a row's group over the last hour."""
        series = self.series.groups.get(self.keys.get((row.cluster, row.group), ""))
        return series.spark(now_s) if series is not None else []

    def _forget(self, rows: dict[str, GroupRow], key: str) -> None:
        row = rows.pop(key)
        self.keys.pop((row.cluster, row.group), None)
        self.series.forget(key)
        self.milestones.pop(key, None)
        self.events.pop(key, None)


def row_of(found: GroupSummary, message: Recommendation | None) -> GroupRow:
    incident = open_incident(message)
    verdict = incident.verdict if incident else found.verdict
    return GroupRow(
        cluster=found.cluster,
        group=shown(found.group),
        condition=_condition(found.blind, incident, verdict, found.no_members, found.waits_for_evidence),
        verdict=verdict,
        kind=found.kind,
        state=found.state.lower(),
        owner=shown(found.owner) if found.owner else None,
        member_count=found.member_count,
        lag_records=found.lag_records,
        # What was last seen of a blind group would read as its present delay.
        seconds_behind=None
        if found.blind or found.seconds_behind is None
        else round(found.seconds_behind, 1),
        skew=None if found.skew is None else round(found.skew, 3),
        blind=found.blind,
        not_opened=found.not_opened,
        muted_until_ms=found.muted_until_ms,
        incident=incident,
        useful_members=found.useful,
        no_members=found.no_members,
        as_of_ms=found.as_of_ms,
    )


def _condition(
    blind: str | None, incident: OpenIncident | None, verdict: str, no_members: str | None, waits: bool
) -> Condition:
    return condition_of(
        blind=blind is not None,
        is_open=incident is not None,
        verdict=verdict,
        unread=no_members is not None,
        waits=waits,
    )


def open_incident(message: Recommendation | None) -> OpenIncident | None:
    """The incident of the last message, None if it is resolved."""
    if message is None or message.status is Status.RESOLVED:
        return None
    return OpenIncident(
        id=message.id,
        verdict=message.verdict.value,
        severity=message.severity.value,
        status=message.status.value,
        opened_at_ms=message.opened_at,
        as_of_ms=message.as_of,
        reason=shown(message.reason, LONGEST),
        stale=message.stale,
        advice=_advice(message.applicable_actions),
    )


def _advice(actions: Sequence[Action]) -> str | None:
    """How the first action is done that can be, else the first that may be."""
    for feasible in ("yes", "unknown"):
        for action in actions:
            if action.feasible == feasible:
                return shown(action.how, LONGEST)
    return None
