"""What may come in: typed models with bounds for every record that kagent reads, and the reason for what is refused.

msgspec decodes and validates in one pass: an event of ten partitions takes 7 µs, by orjson and dataclasses without any
check it took 10 µs, by pydantic 7 µs before it is an event. Nothing else may read such bytes. Whatever the bytes, these functions raise
:class:`Refused` and nothing else, in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import pydantic
from msgspec import Meta, Struct

from kagent.contract.events import (
    MAX_BYTES,
    Beat,
    GroupEvent,
    LogCut,
    MembershipRecord,
    Message,
    TopicOffsets,
    TopicTombstones,
)
from kagent.contract.mute import MAX_TIME_MS, MuteRecord
from kagent.contract.recommendation import MOST_INCIDENTS, Recommendation, State, from_bytes

INT64 = 2**63 - 1
INT32 = 2**31 - 1
MAX_RECORD_BYTES = 8 * 1024 * 1024
"""The ``max.message.bytes`` of kagent's topics."""
MAX_EVENTS = MAX_BYTES // 100
"""Events in one message: a pipeline puts MAX_BYTES of them together, and none is shorter than 100 bytes. Refusing one takes 30 µs, so
that a message of 8 MB of commas would hold a worker up for minutes."""
MAX_SOURCES = 10_000
"""Partitions of ``__consumer_offsets`` that one progress record tells of: Kafka makes 50, and each takes a worker 8 µs."""
MAX_GROUP_CHARACTERS = 32_767
"""A group's name is a string of Kafka's protocol: its length is an int16."""
MAX_AHEAD_MS = 3_600_000
"""Clocks of hosts in one cluster differ by seconds; a record from more than this ahead of the broker is not believed."""
MAX_REVISION = 2**53 - 1
"""The greatest whole number that every JSON reader keeps exactly: the worker counts on from what it reads back."""
PUBLISHED: dict[type, dict[str, int]] = {
    Recommendation: {
        **dict.fromkeys(("opened_at", "as_of", "valid_until"), MAX_TIME_MS),
        "revision": MAX_REVISION,
    },
    State: dict.fromkeys(("time", "oldest_progress", "learning_until", "muted_until"), MAX_TIME_MS),
}
"""What is counted on or shown as a time of day, and the most that it may be."""
T = TypeVar("T")


# Dead letters carry this name as their `kind`: renaming the class would change what readers of that topic match.
class Refused(ValueError):
    """A record that is not let in. ``reason`` is one of a few words: metrics count by it."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


Partition = Annotated[int, Meta(ge=0, le=INT32)]
# -1 as in Kafka's own protocol: none, or not known.
Offset = Annotated[int, Meta(ge=-1, le=INT64)]
# -1 until an event names it.
Source = Annotated[int, Meta(ge=-1, le=INT32)]
Millis = Annotated[int, Meta(ge=0, le=INT64)]
"""A time that is held to the clock where it is used: see :func:`not_ahead`."""
Moment = Annotated[int, Meta(ge=0, le=MAX_TIME_MS)]
"""A time that may lie ahead, and is shown to people."""
# The pattern ends with \Z: $ would let a name through that ends in a line break.
Topic = Annotated[str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}\Z")]
# Counted in characters here, in bytes there: what Kafka allows always passes.
Group = Annotated[str, Meta(max_length=MAX_GROUP_CHARACTERS)]
Cluster = Annotated[str, Meta(min_length=1, max_length=255)]
Label = Annotated[str, Meta(max_length=255)]
Count = Annotated[int, Meta(ge=0, le=INT32)]
Sources = Annotated[list[Partition], Meta(max_length=MAX_SOURCES)]


class _Offsets(Struct):
    topic: Topic
    topic_id: Annotated[str, Meta(max_length=64)] | None
    partition: list[Partition]
    committed: list[Offset]
    time: list[Millis]
    source_offset: list[Offset]

    def __post_init__(self) -> None:
        same_length(self.topic, self.partition, self.committed, self.time, self.source_offset)


class _Tombstones(Struct):
    topic: Topic
    partition: list[Partition]
    source_offset: list[Offset]

    def __post_init__(self) -> None:
        same_length(self.topic, self.partition, self.source_offset)


class _Record(Struct):
    source_offset: Offset
    time: Millis
    # Not typed here: its shape is that of its record type and version, and its reader checks it.
    record: dict[str, Any]


class _GroupMessage(Struct, tag_field="type", tag="group"):
    cluster: Cluster
    group: Group
    source: Partition
    time: Millis
    offsets: list[_Offsets]
    tombstones: list[_Tombstones]
    records: list[_Record]
    # An event in one piece need not say so.
    part: Count = 1
    parts: Count = 1


class _Progress(Struct, tag_field="type", tag="progress"):
    cluster: Cluster
    time: Millis
    run_id: Label
    trigger: Annotated[float, Meta(gt=0, le=86_400)]
    replay: bool
    source: Sources
    start: list[Offset]
    offset: list[Offset]
    log_end: list[Offset]
    stable_end: list[Offset]

    def __post_init__(self) -> None:
        same_length("progress", self.source, self.start, self.offset, self.log_end, self.stable_end)
        # Each costs a worker 8 µs, and few partitions can be named many times.
        if len(set(self.source)) < len(self.source):
            raise ValueError("progress that names a partition twice")
        for start, offset in zip(self.start, self.offset, strict=True):
            if start > offset:
                raise ValueError(f"progress that starts at {start} and ends before it, at {offset}")


class _Cut(Struct, tag_field="type", tag="cut"):
    cluster: Cluster
    time: Millis
    source: Sources
    offset: list[Offset]

    def __post_init__(self) -> None:
        same_length("cut", self.source, self.offset)


class _Kind(Struct):
    type: Label


class JudgeTick(Struct, tag_field="type", tag="tick"):
    """Judge a partition as of ``time`` (ms)."""

    time: Millis


class IncidentRow(NamedTuple):
    """An open incident with the numbers of now: as in :class:`kagent.contract.recommendation.IncidentNumbers`."""

    id: Label
    severity: Label
    as_of: Millis
    seconds_behind: Annotated[float, Meta(ge=0)] | None
    lag: Annotated[int, Meta(ge=0, le=INT64)] | None


class SummaryBody(Struct):
    """As ``kagent.worker.status.Summary``."""

    cluster: Cluster
    partition: Partition
    worker: Label
    time: Millis
    status: Label
    reason: Annotated[str, Meta(max_length=4_096)] | None
    oldest_progress: Moment | None
    # With defaults: while a new release is rolled out, workers of both read each other's ticks.
    judged: Count = 0
    blind: Count = 0
    ignored: Count = 0
    learning: Count = 0
    learning_until: Moment | None = None
    muted: Count = 0
    muted_until: Moment | None = None
    blind_reason: Annotated[str, Meta(max_length=4_096)] | None = None
    open: Count = 0
    set_aside: Count = 0
    set_aside_reason: Annotated[str, Meta(max_length=4_096)] | None = None
    no_members: Count = 0
    incidents: Annotated[list[IncidentRow], Meta(max_length=MOST_INCIDENTS)] = []


class SummaryTick(Struct, tag_field="type", tag="summary"):
    """What one partition's tick found."""

    summary: SummaryBody


# Made once, as msgspec advises: a decoder is compiled from its types.
_EVENTS: msgspec.json.Decoder[_GroupMessage | _Progress | _Cut] = msgspec.json.Decoder(
    _GroupMessage | _Progress | _Cut
)
# Raw leaves each message of an array undecoded, so that one that is refused does not cost the others.
_PARTS = msgspec.json.Decoder(list[msgspec.Raw])
_TICKS: msgspec.json.Decoder[JudgeTick | SummaryTick] = msgspec.json.Decoder(JudgeTick | SummaryTick)
_MUTES = msgspec.json.Decoder(MuteRecord)
_KINDS = msgspec.json.Decoder(_Kind)


def decode(data: bytes | str | Mapping[str, Any]) -> Message | None:
    """The message of the events topic in these bytes, or None where its type is not known (a newer pipeline).

    Fields that are not known are ignored.
    """
    if isinstance(data, Mapping):
        # Back to JSON, so that parsed messages pass the same checks as bytes.
        data = checked(lambda: msgspec.json.encode(data))
    found = _of_known_kind(_EVENTS, data, ("group", "progress", "cut"))
    if isinstance(found, _GroupMessage):
        return _event(found)
    if isinstance(found, _Cut):
        return LogCut(found.cluster, found.time, found.source, found.offset)
    return None if found is None else Beat(**{name: getattr(found, name) for name in Beat.__slots__})


def parts(data: bytes) -> list[bytes]:
    """The messages in these bytes, each still undecoded: one, or those of an array. Raises Refused for an array that is none."""
    # One message or an array of them: the first byte tells, so that nothing is parsed twice.
    if data[:1] != b"[":
        return [data]
    found = _sized(_PARTS, data)
    # As a dead letter, not in silence: no pipeline writes an array without a message.
    if not found:
        raise Refused("wrong_shape", "an array without a message")
    if len(found) > MAX_EVENTS:
        raise Refused("too_large", f"{len(found)} messages in one")
    return [bytes(part) for part in found]


def decode_all(data: bytes) -> Iterator[Message]:
    """The messages in these bytes that this release knows; what is not let in is passed over and costs the others nothing."""
    try:
        found = parts(data)
    except Refused:
        return
    for part in found:
        with suppress(Refused):
            message = decode(part)
            if message is not None:
                yield message


def tick(data: bytes | None) -> JudgeTick | SummaryTick | None:
    """The message of the ticks topic in these bytes, or None where its type is not known (a newer worker)."""
    found: JudgeTick | SummaryTick | None = _of_known_kind(_TICKS, data or b"", ("tick", "summary"))
    return found


def mute(data: bytes) -> MuteRecord:
    """The value of a record of the mutes topic."""
    found: MuteRecord = _sized(_MUTES, data)
    return found


def published(data: bytes) -> Recommendation | State:
    """A message of the recommendations topic, read back."""
    if len(data) > MAX_RECORD_BYTES:
        raise Refused("too_large", f"{len(data)} bytes")
    message = checked(lambda: from_bytes(data))
    for name, most in PUBLISHED[type(message)].items():
        value = getattr(message, name)
        if value is not None and not 0 <= value <= most:
            raise Refused("out_of_bounds", f"{name} is {value}")
    return message


def not_ahead(times: Iterable[int], now_ms: int) -> list[int]:
    """These times, none ahead of the broker's clock by more than clocks differ: such a one becomes ``now_ms``."""
    limit = now_ms + MAX_AHEAD_MS
    return [time if time <= limit else now_ms for time in times]


def checked(call: Callable[[], T]) -> T:
    """What ``call`` returns; whatever it raises over its input becomes :class:`Refused`."""
    try:
        return call()
    except Refused:
        raise
    # Before DecodeError, of which it is a subclass: the one is valid JSON of the wrong shape, the other no JSON.
    except msgspec.ValidationError as error:
        raise Refused(_reason(str(error)), str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused("not_json", f"not JSON: {error}") from error
    except pydantic.ValidationError as error:
        raise _first_of(error) from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise Refused("wrong_shape", f"{type(error).__name__}: {error}") from error
    except RecursionError as error:
        raise Refused("nested_too_deep", "nested too deep") from error


def _of_known_kind(decoder: Any, data: bytes | str, kinds: tuple[str, ...]) -> Any:
    try:
        return _sized(decoder, data)
    except Refused as error:
        # msgspec's words for a tag that is none of the union's. A newer release may add message types: they are no error.
        if "Invalid value" in str(error) and checked(lambda: _KINDS.decode(data)).type not in kinds:
            return None
        raise


def _sized(decoder: Any, data: bytes | str) -> Any:
    if len(data) > MAX_RECORD_BYTES:
        raise Refused("too_large", f"{len(data)} bytes")
    return checked(lambda: decoder.decode(data))


def _event(raw: _GroupMessage) -> GroupEvent:
    return GroupEvent(
        raw.cluster,
        raw.group,
        raw.source,
        raw.time,
        tuple(
            TopicOffsets(o.topic, o.topic_id, o.partition, o.committed, o.time, o.source_offset)
            for o in raw.offsets
        ),
        tuple(TopicTombstones(t.topic, t.partition, t.source_offset) for t in raw.tombstones),
        tuple(MembershipRecord(r.source_offset, r.time, r.record) for r in raw.records),
        raw.part,
        raw.parts,
    )


def same_length(what: str, *columns: list[int]) -> None:
    """Refuse parallel columns of which one is shorter."""
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"columns of {what} have lengths {', '.join(str(len(c)) for c in columns)}")


def _first_of(error: pydantic.ValidationError) -> Refused:
    """The first complaint and the number of the others: pydantic has three lines for each."""
    first, *more = error.errors(include_url=False, include_context=False, include_input=False)
    where = ".".join(map(str, first["loc"]))
    sentence = f"{where}: {first['msg']}" if where else first["msg"]
    reason = {"json_invalid": "not_json", "missing": "missing_field"}.get(first["type"], "wrong_shape")
    return Refused(reason, f"{sentence} (and {len(more)} more)" if more else sentence)


def _reason(sentence: str) -> str:
    """msgspec's sentence as one of a few words."""
    if sentence.startswith("columns of"):
        return "unequal_columns"
    if "missing required field" in sentence:
        return "missing_field"
    # msgspec's errors have no code: the sentence is all there is to tell them apart.
    bounds = ("Expected `int` >=", "Expected `int` <=", "Expected `float`", "of length", "matching regex")
    return "out_of_bounds" if any(word in sentence for word in bounds) else "wrong_shape"
