"""One group in full, from plain values: its columns, the last message and what happened. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kagent.contract.recommendation import Recommendation
from kagent.detect.detectors import MEMBER_REMARKS
from kagent.text import LONGEST, shown, shown_all
from kagent.worker.http.judgement_view import GroupColumns
from kagent.worker.http.models import GroupDetail, GroupMember, GroupRow, PartitionMap, TimelineEvent
from kagent.worker.http.timeline import Event

# Reasons quote names of members and topics, which may be as long as a client likes.
"""Longest text shown, in characters."""
SLOW_SPEED = 0.85
SLOW_INTERVALS = 3
"""A speed below SLOW_SPEED over this many intervals is remarked on."""


def detail(
    columns: GroupColumns,
    row: GroupRow,
    message: Recommendation | None,
    events: Iterable[Event],
    time_ms: int,
) -> GroupDetail:
    """The body of ``/api/v1/group``. ``message``: the last one published; the map shows the moves of the one that is open,
    else of what would be published now."""
    published = message.model_dump(mode="json", by_alias=True) if message else None
    # The open incident's plan is what people act on; a newer draft beside it would contradict it.
    advice = published if row.incident else columns.draft
    return GroupDetail(
        time_ms=time_ms,
        row=row,
        protocol=columns.protocol,
        generation=columns.generation,
        by_member=columns.by_member,
        threshold=columns.threshold,
        work_unit=columns.work_unit,
        members=_members(columns, advice or {}),
        map=_map(columns, advice or {}),
        timeline=[TimelineEvent(e.time_ms, e.what, shown(e.text, LONGEST), e.incident) for e in events],  # type: ignore[arg-type]
        recommendation=shown_all(published),
        draft=shown_all(columns.draft),
        story=[shown(line, LONGEST) for line in columns.lines],
    )


def _members(columns: GroupColumns, advice: Mapping[str, Any]) -> list[GroupMember]:
    held = [0] * len(columns.members.name)
    for code in columns.partitions.member:
        if code >= 0:
            held[code] += 1
    after = {m["member"]: m.get("work_after") for m in advice.get("members", ())}
    return [_member(columns, at, held[at], after, advice) for at in range(len(held))]


def _member(
    columns: GroupColumns, at: int, held: int, after: Mapping[str, float | None], advice: Mapping[str, Any]
) -> GroupMember:
    m = columns.members
    return GroupMember(
        name=shown(m.name[at]),
        member_id=shown(m.member_id[at]),
        client_id=shown(m.client_id[at]),
        host=shown(m.host[at]),
        partitions=held,
        lag_records=m.lag_records[at],
        seconds_behind=m.seconds_behind[at],
        inflow_per_s=m.inflow_per_s[at],
        work=m.work[at],
        work_after=after.get(m.name[at]),
        speed=m.speed[at],
        known=m.known[at],
        evidence=_evidence(columns, at, advice),
    )


def _evidence(columns: GroupColumns, at: int, advice: Mapping[str, Any]) -> str | None:
    """Why this member is remarked on, as a sentence."""
    m, verdict = columns.members, advice.get("verdict")
    worst = next((w["member"] for w in advice.get("members", ())), None)
    speed, intervals = m.speed[at], m.speed_intervals[at]
    if speed is not None and speed < SLOW_SPEED and intervals >= SLOW_INTERVALS:
        return f"It works at {speed:.2f} of the usual speed, measured over {intervals} busy intervals."
    if verdict in MEMBER_REMARKS and m.name[at] == worst:
        return MEMBER_REMARKS[verdict]
    # Last: a measured speed says more than that the commit is old.
    return None if m.known[at] else "Its last commit is too old to tell of now."


def _map(columns: GroupColumns, advice: Mapping[str, Any]) -> PartitionMap:
    p = columns.partitions
    place = {name: at for at, name in enumerate(columns.members.name)}
    goal = {(m["topic"], m["partition"]): place.get(m["to"], -1) for m in advice.get("moves", ())}
    moves = [goal.get((p.topics[t], n), -1) for t, n in zip(p.topic, p.partition, strict=True)]
    return PartitionMap(
        topics=[shown(name) for name in p.topics],
        topic=p.topic,
        partition=p.partition,
        member=p.member,
        lag_records=p.lag_records,
        seconds_late=p.seconds_late,
        inflow_per_s=p.inflow_per_s,
        work=p.work,
        stalled=p.stalled,
        open_transaction=p.open_transaction,
        hot=p.hot,
        lost_records=p.lost_records,
        # A plan that was followed still names the member that now holds the partition: no arrow to itself.
        moves_to=[to if to != at else -1 for to, at in zip(moves, p.member, strict=True)],
    )
