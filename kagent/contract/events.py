"""What the pipeline tells the worker: one event a group and trigger, and progress records.

Both are JSON on ``kagent-group-events``. An event's key is ``<cluster>/<group>``, and its partition the one that Kafka's producer gives
this key. A message may hold an array of events of several groups of that partition; its key is ``<cluster>``. Progress has the key
``<cluster>``, covers all source partitions in one message, and goes to **every** partition of the topic, also when nothing happened.

Order is kept per key of ``__consumer_offsets``: each commit and each membership record carries its source offset, and
an older one never overwrites a newer one. So replays and duplicates are harmless, and a gap can be filled later.

    event     {"schema": 1, "type": "group", "cluster", "group", "source", "part", "parts", "time",
               "offsets":    [{"topic", "topic_id", "partition": [], "committed": [], "time": [], "source_offset": []}],
               "tombstones": [{"topic", "partition": [], "source_offset": []}],
               "records":    [{"source_offset", "time", "record": {…as kagent.offsets writes a record…}}]}
    progress  {"schema": 1, "type": "progress", "cluster", "time", "run_id", "trigger", "replay",
               "source": [], "start": [], "offset": [], "log_end": [], "stable_end": []}
    cut       {"schema": 1, "type": "cut", "cluster", "time", "source": [], "offset": []}

A cut says that logs of ``__consumer_offsets`` lost what stood in them from ``offset`` on: a replica that had fallen behind was elected their
leader. It goes to every partition, before the events of what stands there now, whose source offsets may be less than those before.

Times are integer milliseconds since the epoch. ``source`` is the partition of ``__consumer_offsets``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

# The commands that read messages need no numpy, which takes longer to load than they to answer.
if TYPE_CHECKING:
    import numpy as np

Ints: TypeAlias = "Sequence[int] | np.ndarray[Any, np.dtype[np.int64]]"
"""A column of integers: a list when it was read, a numpy array when it is written."""

SCHEMA = 1
# Half of what a broker takes by default (message.max.bytes, 1 MB).
MAX_BYTES = 512 * 1024
"""An event larger than this is split by topic, each part applied on its own."""


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The commits of one group on one topic, as parallel lists.

    ``topic_id`` is the 22-character base64 form Kafka prints, or None where no commit carried it (before Kafka 4.1).
    """

    topic: str
    topic_id: str | None
    partition: Ints
    committed: Ints
    time: Ints
    source_offset: Ints


@dataclass(frozen=True, slots=True)
class TopicTombstones:
    """Partitions of one topic whose committed offset was removed (expiry, deletion, OffsetDelete)."""

    topic: str
    partition: Ints
    source_offset: Ints


@dataclass(frozen=True, slots=True)
class MembershipRecord:
    """A decoded record other than an offset commit, in the JSON form of ``kagent.offsets``."""

    source_offset: int
    time: int
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """What one trigger of the pipeline learned of one group."""

    cluster: str
    group: str
    source: int
    time: int
    offsets: Sequence[TopicOffsets] = ()
    tombstones: Sequence[TopicTombstones] = ()
    records: Sequence[MembershipRecord] = ()
    part: int = 1
    parts: int = 1

    @property
    def newest_source(self) -> int:
        """The greatest offset in the source at which something of this stood; -1 if there is nothing."""
        columns = [max(o.source_offset, default=-1) for o in self.offsets]
        columns += [max(t.source_offset, default=-1) for t in self.tombstones]
        return max((*columns, *(r.source_offset for r in self.records)), default=-1)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the pipeline has read one partition of ``__consumer_offsets``.

    ``start`` and ``offset``: the interval [start, offset) that this trigger covered (equal when idle).
    ``log_end`` and ``stable_end``: high watermark and last stable offset, asked when the trigger ended.
    ``trigger``: seconds between triggers, from which a reader knows what "fresh" means.
    ``run_id`` changes with every start of the pipeline; ``replay`` marks a run that fills a gap from the log's start.
    """

    cluster: str
    source: int
    start: int
    offset: int
    log_end: int
    stable_end: int
    time: int
    run_id: str
    trigger: float
    replay: bool = False


@dataclass(frozen=True, slots=True)
class Beat:
    """The progress on all source partitions at one moment, as it goes over the wire: parallel lists."""

    cluster: str
    time: int
    run_id: str
    trigger: float
    replay: bool
    source: Sequence[int]
    start: Sequence[int]
    offset: Sequence[int]
    log_end: Sequence[int]
    stable_end: Sequence[int]

    def each(self) -> Iterator[Progress]:
        """One progress record per source partition."""
        columns = zip(self.source, self.start, self.offset, self.log_end, self.stable_end, strict=True)
        for source, start, offset, log_end, stable_end in columns:
            yield Progress(
                cluster=self.cluster,
                source=source,
                start=start,
                offset=offset,
                log_end=log_end,
                stable_end=stable_end,
                time=self.time,
                run_id=self.run_id,
                trigger=self.trigger,
                replay=self.replay,
            )


@dataclass(frozen=True, slots=True)
class LogCut:
    """Where logs of ``__consumer_offsets`` were cut short: parallel lists of its partitions and the first offsets that were lost."""

    cluster: str
    time: int
    source: Sequence[int]
    offset: Sequence[int]


KINDS = {GroupEvent: "group", Beat: "progress", LogCut: "cut"}
Message: TypeAlias = GroupEvent | Beat | LogCut


def encode(message: Message) -> bytes:
    """The JSON bytes of one message (not split; see :func:`split`). Lists may be numpy arrays."""
    kind = KINDS[type(message)]
    fields = {name: getattr(message, name) for name in message.__slots__}
    # orjson writes numpy arrays itself: no Python integer is made per commit.
    return orjson.dumps({"schema": SCHEMA, "type": kind, **fields}, option=orjson.OPT_SERIALIZE_NUMPY)


def split(event: GroupEvent, limit: int = MAX_BYTES) -> Iterator[bytes]:
    """The event as one or more messages of at most about ``limit`` bytes: cut by topic, then by partition or record.

    Each part is an event of its own (``part`` of ``parts``) that can be applied without the others. A single
    membership record larger than the limit cannot be cut and goes alone.
    """
    whole = encode(event)
    if len(whole) <= limit:
        yield whole
        return
    # All first: each part says how many there are.
    pieces = list(_packed(_pieces(event, limit), limit))
    for index, piece in enumerate(pieces, 1):
        yield encode(replace(piece, part=index, parts=len(pieces)))


def _pieces(event: GroupEvent, limit: int) -> Iterator[GroupEvent]:
    """The smallest events it may be cut into, in order: records first, as membership explains the offsets."""
    bare = replace(event, offsets=(), tombstones=(), records=())
    rows = max(1, limit // 64)  # a commit is under 64 bytes of JSON in parallel lists
    for record in event.records:
        yield replace(bare, records=(record,))
    for o in event.offsets:
        for at in range(0, len(o.partition), rows):
            cut = slice(at, at + rows)
            yield replace(
                bare,
                offsets=(
                    replace(
                        o,
                        partition=o.partition[cut],
                        committed=o.committed[cut],
                        time=o.time[cut],
                        source_offset=o.source_offset[cut],
                    ),
                ),
            )
    for t in event.tombstones:
        for at in range(0, len(t.partition), rows):
            cut = slice(at, at + rows)
            yield replace(
                bare, tombstones=(replace(t, partition=t.partition[cut], source_offset=t.source_offset[cut]),)
            )


def _packed(pieces: Iterator[GroupEvent], limit: int) -> Iterator[GroupEvent]:
    """Neighbouring pieces joined while they fit."""
    held: GroupEvent | None = None
    size = 0
    for piece in pieces:
        # A little too much, as every piece has the event's head: the sum never passes the limit.
        more = len(encode(piece))
        if held is not None and size + more <= limit:
            held = replace(
                held,
                offsets=(*held.offsets, *piece.offsets),
                tombstones=(*held.tombstones, *piece.tombstones),
                records=(*held.records, *piece.records),
            )
            size += more
            continue
        if held is not None:
            yield held
        held, size = piece, more
    if held is not None:
        yield held
