"""The recommendation: a fact on a topic, and kagent's public contract.

The JSON Schema, the reference page and the typed objects that subscribers get are all made from these classes.
Adding an optional field is a minor change; anything else is a breaking one and raises ``SCHEMA``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

# Exported from here too: subscribers find all types of a message in this module.
from kagent.contract.words import ActionType as ActionType
from kagent.contract.words import Verdict as Verdict

SCHEMA = 1
MOST_INCIDENTS = 100
"""Open incidents whose numbers a state message carries: 10 kB every 30 s, and more rows than anybody reads."""


class Status(StrEnum):
    """Where an incident stands."""

    OPEN = "open"
    UPDATED = "updated"
    SUPERSEDED = "superseded"
    RESOLVED = "resolved"


class Resolution(StrEnum):
    """Why a resolved incident ended."""

    FOLLOWED = "followed"
    DRAINED = "drained"
    GROUP_CHANGED = "group_changed"
    EXPIRED = "expired"


class Severity(StrEnum):
    """How urgent it is: page wakes somebody, ticket can wait for the morning, info is for those who look."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"


SEVERITY_RANK: dict[str, int] = {severity: rank for rank, severity in enumerate(Severity)}
"""0 is the most urgent."""


def urgency(severity: str | None, seconds_behind: float | None, lag: int | None) -> tuple[int, float, int]:
    """What incidents are ordered by wherever they are listed, the most urgent first: severity, delay, records that wait."""
    rank = SEVERITY_RANK.get(severity or "", len(SEVERITY_RANK))
    return rank, -(seconds_behind or 0.0), -(lag or 0)


class GroupKind(StrEnum):
    """What a group is; what can be done about it depends on that."""

    CLASSIC_JAVA = "classic_java"
    CLASSIC_LIBRDKAFKA = "classic_librdkafka"
    CLASSIC_PYTHON = "classic_python"
    CLASSIC = "classic"
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol
    CONSUMER = "consumer"
    STREAMS = "streams"
    CONNECT = "connect"
    FAUST = "faust"
    SIMPLE = "simple"
    # Records, not partitions, are handed to members, so no partition can be moved:
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka
    SHARE = "share"


class Contract(BaseModel):
    """Frozen; fields a newer kagent added are kept, not refused."""

    # defer_build: a schema is compiled when it is first used, not at the start of each command.
    # JSON has no infinity: a group that never catches up has null there, not a token that other languages refuse.
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="allow", use_enum_values=False, ser_json_inf_nan="null"
    )


class Skew(Contract):
    """Greatest over mean member work; 1.0 is even. None where it is not known."""

    now: float | None = Field(description="Under the current assignment.")
    after: float | None = Field(None, description="Under the recommended plan.")
    threshold: float | None = Field(None, description="The threshold in effect.")
    lower_bound: float | None = Field(None, description="No assignment whatever gets below this.")


class MemberWork(Contract):
    """One member's part of the work."""

    member: str = Field(description="Instance id, else client id and host: the name that outlives a restart.")
    member_id: str | None = Field(None, description="The coordinator's id; holds for this generation only.")
    client_id: str | None = None
    host: str | None = None
    partitions: int = Field(description="How many partitions it holds now.")
    lag: int | None = Field(
        None,
        description="Records behind: at its last commit; while it commits nothing, all that is not committed. None where unknown.",
    )
    seconds_behind: float | None = Field(
        None,
        description="How far behind, in seconds: the time since its log ends were where its commits are now; while it commits nothing, the age "
        "of its oldest uncommitted record.",
    )
    work_now: float | None = Field(
        None, description="Work under the current assignment; `work_unit` says of what."
    )
    work_after: float | None = Field(None, description="Work under the recommended plan.")


class Move(Contract):
    """One partition from one member to another; members by the names of `members`."""

    topic: str
    partition: int
    # `from` is a keyword of Python.
    source: str | None = Field(alias="from", description="None: no member holds it now.")
    to: str
    lag: int | None = None

    # Python says `source`, JSON `from`: each may be given, and JSON is always written.
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="allow", populate_by_name=True, serialize_by_alias=True
    )


class Alternative(Contract):
    """What another strategy would give."""

    strategy: str
    skew: float | None
    greatest: float | None = None
    moves: int
    feasible: Literal["yes", "no", "unknown"] = "unknown"
    unsafe: str | None = Field(None, description="Why it must not be used, such as `co-partitioning`.")


class Action(Contract):
    """One thing that can be done, with the exact setting or command."""

    type: ActionType
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="What the action is about, such as `members` (how many), `strategy`, `topic` and `partition`; of `restart_member`, `member` and, where "
        "several are concerned, `others`.",
    )
    how: str = Field(description="A sentence with the exact setting or command.")
    feasible: Literal["yes", "no", "unknown"]
    reason: str | None = Field(None, description="Why it is or is not feasible.")
    gain: dict[str, float | None] = Field(
        default_factory=dict,
        description="When the latest member has caught up, in seconds: `now`, as the group is; `likely`, with the action, by the middle of the estimates; `after`, with the action in 19 of 20 cases, null where that cannot be promised within two hours.",
    )
    durable: bool = Field(False, description="Whether it outlasts the next rebalance.")
    disruption: dict[str, float | None] = Field(
        default_factory=dict,
        description="`pause_s`: for how long a rebalance stops the members that must stop, learned from the group's own commit gaps; `partitions` moved; `r_score` of a plan: inflow of what moves ÷ one member's capacity.",
    )


class Basis(Contract):
    """What the judgement rests on; a subscriber that acts must find the same."""

    generation: int | None = Field(description="Generation, or group epoch of a KIP-848 group.")
    digest: str = Field(description="Hash of generation and assignment.")
    progress: int | None = Field(None, description="Time of the pipeline progress it rests on, in ms.")
    partitions: dict[str, int] = Field(default_factory=dict, description="Partition count per topic.")


class Outcome(Contract):
    """What was predicted and what came, once resolved. Predicted is what the action predicts that was followed; null where none was, or
    it predicts nothing."""

    predicted_drain_s: float | None = None
    measured_drain_s: float | None = Field(
        None, description="Since the action was followed, else since the incident was opened."
    )
    predicted_skew: float | None = None
    measured_skew: float | None = None


class Recommendation(Contract):
    """One state of one incident, on `kagent-recommendations` under the key `<cluster>/<group>`."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="allow", populate_by_name=True, serialize_by_alias=True
    )

    # `schema` is a method of pydantic's models: https://docs.pydantic.dev/latest/api/base_model/
    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA
    type: Literal["recommendation"] = "recommendation"
    id: str = Field(description="One per incident: stable from open to resolved, and over restarts.")
    cluster: str
    group: str
    status: Status
    verdict: Verdict
    severity: Severity
    confidence: Literal["high", "low"]
    scope: Literal["group", "topic", "broker", "cluster"] = Field(
        "group", description="What the message is about: one group, or what many groups have in common."
    )
    reason: str = Field(description="A sentence for a person.")
    group_kind: GroupKind
    opened_at: int = Field(description="ms since the epoch.")
    as_of: int = Field(description="When it was judged, ms since the epoch.")
    valid_until: int = Field(
        description="It is out of date after this and must not be acted on, ms since the epoch."
    )
    skew: Skew
    work_unit: Literal["seconds", "records"] = "records"
    members: list[MemberWork] = Field(default_factory=list)
    moves: list[Move] = Field(
        default_factory=list, description="The plan; at most 200 above 2,000 partitions."
    )
    move_count: int = 0
    assignment: dict[str, list[tuple[str, int]]] | None = Field(
        None, description="Member → (topic, partition), whole, up to 2,000 partitions."
    )
    assignment_digest: str | None = None
    frontier: list[tuple[int, float]] = Field(
        default_factory=list,
        description="[moves, greatest work], or the seconds until all have caught up where speeds are known.",
    )
    alternatives: list[Alternative] = Field(default_factory=list)
    actions: list[Action] = Field(default_factory=list, description="Best first.")
    evidence: dict[str, Any] = Field(default_factory=dict, description="What the verdict rests on.")
    basis: Basis
    topic_ids: dict[str, str] = Field(
        default_factory=dict,
        description="Topic → its id as Kafka prints it, where known: a broker's assignor knows topics by nothing else.",
    )
    revision: int = Field(
        0,
        description="Increases with every message under a key; 0: from a release that did not count. Of one id, a message whose "
        "revision is not greater than one already seen is out of date.",
    )
    stale: bool = Field(
        False, description="kagent is blind for this group: what is open stays open, unjudged."
    )
    resolution: Resolution | None = None
    outcome: Outcome | None = None
    owner: str | None = None
    runbook_url: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)

    @property
    def applicable_actions(self) -> list[Action]:
        """The actions to show to a person: none of superseded advice. To skip a record that has been passed would set the group back."""
        return [] if self.status is Status.SUPERSEDED else self.actions


class IncidentNumbers(Contract):
    """How late an open incident's group is now: its own message is published again only when something important changes."""

    id: str = Field(description="The incident's, as in its message.")
    as_of: int = Field(description="When these numbers were judged, ms since the epoch.")
    seconds_behind: float | None = Field(None, description="How far the group is behind now, at least.")
    lag: int | None = Field(None, description="Records that the group has not read now.")


class State(Contract):
    """The state message, key `<cluster>`, every 30 s: silence of groups means healthy only while this comes."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="allow", populate_by_name=True, serialize_by_alias=True
    )

    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA
    type: Literal["state"] = "state"
    cluster: str
    version: str
    time: int
    status: Literal["watching", "catching_up", "blind"]
    reason: str | None = Field(None, description="Why it is blind, and what to do.")
    oldest_progress: int | None = Field(
        None, description="Time of the oldest source partition's progress, in ms."
    )
    judged: int = 0
    blind: int = 0
    ignored: int = 0
    learning: int = Field(
        0,
        description="Groups in their first hour, in which more evidence is needed; they are part of `judged`.",
    )
    learning_until: int | None = Field(
        None, description="When the first hour of the last of them ends, ms since the epoch."
    )
    muted: int = Field(0, description="Muted groups; they are part of `judged`.")
    muted_until: int | None = Field(
        None, description="When the last of these mutes ends, ms since the epoch."
    )
    blind_reason: str | None = Field(
        None, description="Why one of the blind groups is blind; `reason` has it where the whole cluster is."
    )
    set_aside: int = Field(
        0,
        description="Of the blind ones, groups whose judgement failed: tried again when their data changes.",
    )
    set_aside_reason: str | None = Field(None, description="One of those groups, and why.")
    no_members: int = Field(
        0,
        description="Groups without members in which records wait, not reported (yet); they are part of `judged`.",
    )
    open: int = 0
    incidents: list[IncidentNumbers] = Field(
        default_factory=list,
        # In the schema alone: a reader must not refuse the state of a release that lists more.
        json_schema_extra={"maxItems": MOST_INCIDENTS},
        description=f"The present numbers of open incidents: of the {MOST_INCIDENTS} most urgent, by severity and delay. Of one that "
        "is not listed, its message has the latest numbers; so has one whose `as_of` is later.",
    )
    workers: int = 1


def is_newer(message: Recommendation, known: Recommendation | None) -> bool:
    """Whether a message says more than the one that is known under its key.

    Readers of committed messages get no older ones; those that read uncommitted may get what a worker wrote after it had lost
    the partition. Messages without a revision count as newer.
    """
    if known is None or not message.revision or not known.revision:
        return True
    # Of one incident the revision decides; of two, which of them opened later.
    if message.id == known.id:
        return message.revision > known.revision
    return message.opened_at >= known.opened_at


def to_bytes(message: Recommendation | State) -> bytes:
    """The JSON that goes on the topic."""
    return message.model_dump_json(by_alias=True).encode()


def from_bytes(data: bytes | str) -> Recommendation | State:
    """The message on the topic. Raises ValueError (pydantic's) for what is not one."""
    return State.model_validate_json(data) if _is_state(data) else Recommendation.model_validate_json(data)


class _Typed(msgspec.Struct):
    """The field that tells the two kinds of message apart; msgspec skips all else without building it."""

    type: str | None = None


def _is_state(data: bytes | str) -> bool:
    # Not by looking for the bytes: users' own labels may hold them.
    try:
        return msgspec.json.decode(data, type=_Typed).type == "state"
    except (msgspec.DecodeError, UnicodeError):
        return False


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a recommendation."""
    return Recommendation.model_json_schema(by_alias=True)
