"""What ``/api/v1`` answers: frozen dataclasses, from which the OpenAPI document is made.

Times end in ``_ms`` (since the epoch) or ``_s``. Names from Kafka are shown as :func:`kagent.text.shown` has them.
A field may be added within v1; none is taken away and none changes its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kagent.incident.condition import Condition


@dataclass(frozen=True, slots=True)
class Silence:
    """A worker that did not answer, and why."""

    worker: str
    why: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """One watched cluster. ``advice``: what to do where ``status`` is not watching. ``learning`` and ``muted`` groups are part of
    the ``judged`` ones, and so are those with ``no_members`` in which records wait; groups that were ``set_aside`` of the ``blind`` ones; the ``_until`` times are the last of theirs."""

    cluster: str
    status: Literal["watching", "catching_up", "blind"]
    reason: str | None
    advice: str | None
    progress_ms: int | None
    judged: int
    blind: int
    ignored: int
    open: int
    learning: int = 0
    learning_until_ms: int | None = None
    blind_reason: str | None = None
    muted: int = 0
    muted_until_ms: int | None = None
    set_aside: int = 0
    no_members: int = 0


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """The published incident of a group, in short. ``advice``: how its first action is done, of those that can be. ``as_of_ms``: when
    its message was judged: the numbers in ``reason`` are of that time, those beside it newer."""

    id: str
    verdict: str
    severity: str
    status: str
    opened_at_ms: int
    as_of_ms: int
    reason: str
    stale: bool = False
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class UsefulMembers:
    """How many members a group has, how many would help, and why more would not, if the group is late."""

    now: int
    useful: int
    why_not_more: str | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group of the list. ``seconds_behind``: of its latest member, at least, null while the group is blind and where its commits do not tell; ``spark``: greatest lag in each thirtieth of
    the last hour, oldest first, null where nothing was noted; ``as_of_ms``: the time that ``lag_records`` is of, while the group is blind that at
    which its commits were last known; ``useful_members``: null until a member was busy; ``skew``: null where
    there are no two members to compare. A group that is late, or of which a partition stands, without enough evidence yet to report it has the condition ``suspect``. A group without members in which records wait has the condition ``no_members``, says in
    ``no_members`` how many, since when and when that is reported, and is as many seconds behind as its oldest unread record is old."""

    cluster: str
    group: str
    condition: Condition
    verdict: str
    kind: str
    state: str
    owner: str | None
    member_count: int
    lag_records: int | None
    seconds_behind: float | None
    skew: float | None
    blind: str | None
    not_opened: str | None
    muted_until_ms: int | None
    incident: OpenIncident | None
    spark: list[float | None] = field(default_factory=list)
    useful_members: UsefulMembers | None = None
    no_members: str | None = None
    as_of_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """``GET /api/v1/status``. ``complete`` is false where a partition of the events topic has no worker that answers."""

    time_ms: int
    tick_s: float
    version: str
    complete: bool
    workers: list[str]
    unanswered: list[Silence]
    missing_partitions: list[int]
    clusters: list[ClusterStatus]
    open: list[GroupRow]


@dataclass(frozen=True, slots=True)
class GroupList:
    """``GET /api/v1/groups``: one page of the groups that match, the most urgent first; ``facets``: how many groups have
    each verdict, condition and owner, whatever the filter."""

    time_ms: int
    complete: bool
    unanswered: list[Silence]
    missing_partitions: list[int]
    total: int
    offset: int
    groups: list[GroupRow]
    facets: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member of a group. ``evidence``: why it counts as slow, or None."""

    name: str
    member_id: str
    client_id: str
    host: str
    partitions: int
    lag_records: int
    seconds_behind: float
    inflow_per_s: float
    work: float
    work_after: float | None
    speed: float | None
    known: bool
    evidence: str | None


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """Columns, one entry per partition. ``topic`` and ``member`` are codes in ``topics`` and in the members of the group; member
    -1: no owner. ``moves_to``: member code by the recommended plan, -1 where it stays."""

    topics: list[str]
    topic: list[int]
    partition: list[int]
    member: list[int]
    lag_records: list[int | None]
    seconds_late: list[float]
    inflow_per_s: list[float]
    work: list[float]
    stalled: list[bool]
    open_transaction: list[bool]
    hot: list[bool]
    lost_records: list[int]
    moves_to: list[int]


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One thing that happened to a group."""

    time_ms: int
    what: Literal[
        "first_seen", "confirmed", "opened", "updated", "superseded", "followed", "resolved", "rebalanced"
    ]
    text: str
    incident: str | None


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """``GET /api/v1/group``. ``recommendation``: the last one published (contract of the recommendations topic); ``draft``: what
    would be published now; ``story``: what ``kagent explain`` prints."""

    time_ms: int
    row: GroupRow
    protocol: str | None
    generation: int | None
    by_member: bool
    threshold: float
    work_unit: str
    members: list[GroupMember]
    map: PartitionMap
    timeline: list[TimelineEvent]
    recommendation: dict[str, Any] | None
    draft: dict[str, Any] | None
    story: list[str]


@dataclass(frozen=True, slots=True)
class GroupSeries:
    """Columns over the last hour, oldest first: ``time_s`` and lag, seconds_behind, skew; null where not known."""

    time_s: list[int]
    lag: list[float | None]
    seconds_behind: list[float | None]
    skew: list[float | None]


@dataclass(frozen=True, slots=True)
class MemberSeries:
    """Columns over the last hour of one member, kept while its group is late."""

    time_s: list[int]
    lag: list[float | None]
    seconds_behind: list[float | None]
    inflow_per_s: list[float | None]
    drain_per_s: list[float | None]


@dataclass(frozen=True, slots=True)
class Recent:
    """``GET /api/v1/group/series``."""

    group: GroupSeries
    members: dict[str, MemberSeries]


@dataclass(frozen=True, slots=True)
class ScenarioLine:
    """``GET /api/v1/group/scenario``: the live group as the line that ``kagent plan`` and ``kagent assign`` read."""

    line: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WhatIfQuestion:
    """Body of ``POST /api/v1/what-if``. ``members``: how many more, or fewer; ``strategy``: None for the plan alone."""

    line: dict[str, Any]
    members: int = 0
    max_moves: int | None = None
    tolerance: float = 0.05
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """``line``: the scenario with the members changed; ``plan``: what ``kagent plan --json`` prints for it; ``assign``: what
    ``kagent assign --strategy NAME --json`` prints for it."""

    line: dict[str, Any]
    plan: dict[str, Any]
    assign: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Problem:
    """Every answer that is not 200."""

    error: str
