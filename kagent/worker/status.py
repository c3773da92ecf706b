"""What one partition's tick found, and the state message that all partitions' summaries add up to.

Every worker sends a summary of each of its partitions to partition 0 of the ticks topic; its owner
publishes the state message. So one message covers all workers, and a worker that stopped reporting is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from time import gmtime, strftime
from typing import Any

from kagent import __version__
from kagent.contract.admission import IncidentRow
from kagent.contract.recommendation import (
    MOST_INCIDENTS,
    IncidentNumbers,
    State,
    urgency,
)

RANK = {"watching": 0, "catching_up": 1, "blind": 2}
# One tick may be slow and one summary may meet a rebalance; a third is a worker that is gone.
SILENT_TICKS = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """One tick of one partition of the events topic, for one cluster. Times in ms."""

    cluster: str
    partition: int
    worker: str
    time: int
    status: str
    reason: str | None
    oldest_progress: int | None
    judged: int = 0
    blind: int = 0
    ignored: int = 0
    learning: int = 0
    learning_until: int | None = None
    muted: int = 0
    muted_until: int | None = None
    blind_reason: str | None = None
    open: int = 0
    set_aside: int = 0
    set_aside_reason: str | None = None
    no_members: int = 0
    incidents: Sequence[IncidentRow] = ()

    def to_json(self) -> dict[str, Any]:
        """As it goes over the ticks topic."""
        # As plain tuples: orjson writes no named ones.
        return {**asdict(self), "incidents": [tuple(row) for row in self.incidents]}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Summary:
        """The summary that :meth:`to_json` wrote; names a newer worker added are passed over."""
        known = {name: raw[name] for name in cls.__slots__ if name in raw}
        return cls(**known | {"incidents": tuple(IncidentRow(*row) for row in known.get("incidents", ()))})


def most_urgent(rows: Iterable[IncidentRow]) -> list[IncidentRow]:
    """The incidents whose numbers a state message carries, the most urgent first."""
    # By id where all else is equal, so that the same ones are listed each time.
    return nsmallest(
        MOST_INCIDENTS,
        rows,
        key=lambda row: (*urgency(row.severity, row.seconds_behind, row.lag), row.id),
    )


def _silent_since(summaries: Iterable[Summary]) -> str:
    """That no worker reports, and since when."""
    last_ms = max((s.time for s in summaries), default=None)
    if last_ms is None:
        return "no worker has reported yet"
    return f"no worker has reported since {strftime('%H:%M:%S UTC', gmtime(last_ms / 1000))}"


def state_message(
    cluster: str, summaries: Iterable[Summary], partitions: int, now: int, tick: float
) -> State:
    """The state of a cluster, from the latest summary of every partition. ``now`` in ms, ``tick`` in seconds.

    A partition without a summary for SILENT_TICKS ticks makes the cluster blind: no worker judges its groups.
    """
    latest = {s.partition: s for s in sorted(summaries, key=lambda s: s.time) if s.cluster == cluster}
    # At least 15 s: one long garbage collection must not make a cluster blind.
    limit = now - max(15_000.0, SILENT_TICKS * tick * 1000)
    heard = {p: s for p, s in latest.items() if s.time >= limit}
    silent = sorted(set(range(partitions)) - set(heard))
    # A status that a newer worker invented counts as blind: never better than it may be.
    worst = max(heard.values(), key=lambda s: RANK.get(s.status, 2), default=None)
    status, reason = (worst.status, worst.reason) if worst else ("blind", _silent_since(latest.values()))
    if silent and worst:
        which = ", ".join(map(str, silent[:8])) + (" …" if len(silent) > 8 else "")
        status, reason = "blind", f"no worker reports on partition {which} of the events topic; start one"
    return State(
        cluster=cluster,
        version=__version__,
        time=now,
        status=status if status in RANK else "blind",
        reason=reason,
        oldest_progress=min(
            (s.oldest_progress for s in heard.values() if s.oldest_progress is not None), default=None
        ),
        judged=sum(s.judged for s in heard.values()),
        # Groups of partitions without a worker count as blind: no worker judges them.
        blind=sum(s.blind for s in heard.values())
        + sum(s.judged + s.blind for p, s in latest.items() if p in silent),
        ignored=sum(s.ignored for s in heard.values()),
        learning=sum(s.learning for s in heard.values()),
        learning_until=max((s.learning_until for s in heard.values() if s.learning_until), default=None),
        muted=sum(s.muted for s in heard.values()),
        muted_until=max((s.muted_until for s in heard.values() if s.muted_until), default=None),
        blind_reason=next((s.blind_reason for s in heard.values() if s.blind_reason), None),
        set_aside=sum(s.set_aside for s in heard.values()),
        set_aside_reason=next((s.set_aside_reason for s in heard.values() if s.set_aside_reason), None),
        no_members=sum(s.no_members for s in heard.values()),
        # Of silent partitions too: their incidents are still open on the topic.
        open=sum(s.open for s in latest.values()),
        incidents=[
            IncidentNumbers(id=row.id, as_of=row.as_of, seconds_behind=row.seconds_behind, lag=row.lag)
            for row in most_urgent(row for s in heard.values() for row in s.incidents)
        ],
        workers=len({s.worker for s in heard.values()}),
    )
