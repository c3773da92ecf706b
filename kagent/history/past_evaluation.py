"""One group's history through the very judgement that the worker runs, tick by tick. Pure: rows in, a result out.

Rows are dicts with ``kind``, in any order; times in ms:

    lag       time, topic, topic_id, partition, committed (None: removed), source, source_offset
    changes   time, source, source_offset, message (a record as JSON)
    ends      time, topic, topic_id, partition, log_start, log_end, stable_end

What the worker asks the coordinator before it opens an incident is answered by the records, as they were.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import orjson

from kagent.contract.admission import Refused, checked
from kagent.contract.events import TopicOffsets, TopicTombstones
from kagent.contract.recommendation import Recommendation, Status
from kagent.detect.group_model import GroupModel, observe
from kagent.group_key import group_key
from kagent.groups import KnownRecords, apply, view, well_typed
from kagent.incident.session import EvaluationSession
from kagent.lag.commits import TopicCommits
from kagent.lag.commits import apply as commit
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.membership import Roster
from kagent.lag.observation import Observation, TopicInfo
from kagent.offsets import Record
from kagent.policy import Policy

log = logging.getLogger(__name__)
Row = Mapping[str, Any]
FLAP = 3_600_000
"""An opening so soon after a resolution, in ms, is a flap."""
GAP = 600_000
"""Without a row of the group or its logs for this long, kagent was not running: blind, as the worker would be."""


@dataclass(slots=True)
class ReplayedTick:
    """What was to be seen at one moment: time in ms, member skew (greatest ÷ mean), the greatest time behind in s, the
    group's lag, and each member's."""

    time: int
    skew: float | None
    behind: float
    lag: int
    work: Mapping[str, float]


@dataclass(slots=True)
class Result:
    """One group under one policy. ``saved``: strategy → seconds of the greatest drain it would have saved, summed over the
    openings whose work was known in seconds."""

    policy: str
    messages: list[Recommendation] = field(default_factory=list)
    ticks: list[ReplayedTick] = field(default_factory=list)
    judged: int = 0
    skewed_ms: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def openings(self) -> list[Recommendation]:
        return [m for m in self.messages if m.status is Status.OPEN]

    @property
    def flaps(self) -> int:
        ended = [m.as_of for m in self.messages if m.status is Status.RESOLVED]
        return sum(any(0 <= m.as_of - end < FLAP for end in ended) for m in self.openings)

    @property
    def moves(self) -> int:
        return sum(m.move_count for m in self.openings)

    @property
    def by_itself(self) -> int:
        """Incidents that ended without anybody doing anything."""
        return sum(m.status is Status.RESOLVED and str(m.resolution) == "drained" for m in self.messages)

    @property
    def saved(self) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for m in self.openings:
            if m.work_unit != "seconds" or not m.members:
                continue
            now = max((member.work_now or 0.0 for member in m.members), default=0.0)
            after = [member.work_after for member in m.members if member.work_after is not None]
            found["kagent's plan"] += max(0.0, now - max(after, default=now))
            for other in m.alternatives:
                if other.greatest is not None and other.unsafe is None:
                    found[other.strategy] += max(0.0, now - other.greatest)
        return dict(found)


@dataclass(slots=True)
class ReplayedGroup:
    """What is known of the group at one moment of the replay."""

    cluster: str
    group: str
    commits: dict[str, TopicCommits] = field(default_factory=dict)
    ends: dict[str, EndHistory] = field(default_factory=dict)
    state: KnownRecords | None = None
    names: dict[str, str] = field(default_factory=dict)
    heard: int = 0
    _roster: Roster | None = None
    _logs: dict[str, dict[int, tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(dict))
    _ids: dict[str, str | None] = field(default_factory=dict)

    def take(self, rows: Sequence[Row]) -> None:
        """What came to be known since the last tick, in order of time."""
        self._commits([r for r in rows if r["kind"] == "lag"])
        for row in (r for r in rows if r["kind"] == "changes"):
            try:
                self.state, self._roster = checked(partial(self._changed, row))
            # The worker refused it too, so what it judged was judged without.
            except Refused as error:
                log.warning("A membership record of %s is passed over: %s", self.group, error)
        self._sampled([r for r in rows if r["kind"] == "ends"])
        if rows:
            self.heard = max(self.heard, max(r["time"] for r in rows))

    def _changed(self, row: Row) -> tuple[KnownRecords | None, Roster]:
        record = Record.from_json(orjson.loads(row["message"]))
        state = apply(self.state, record, row["source_offset"], row["time"])
        return state, self._roster_of(state)

    def _roster_of(self, state: KnownRecords | None) -> Roster:
        return Roster.of(well_typed(view(state, self.names, self.group)))

    def _commits(self, rows: Sequence[Row]) -> None:
        of: dict[tuple[str, str | None, bool], list[Row]] = defaultdict(list)
        for row in sorted(rows, key=lambda r: r["source_offset"]):
            of[row["topic"], row["topic_id"], row["committed"] is None].append(row)
        for (topic, topic_id, gone), found in of.items():
            partition = [r["partition"] for r in found]
            at = [r["source_offset"] for r in found]
            update: TopicOffsets | TopicTombstones = TopicTombstones(topic, partition, at)
            if not gone:
                committed, times = [r["committed"] for r in found], [r["time"] for r in found]
                update = TopicOffsets(topic, topic_id, partition, committed, times, at)
            self.commits[topic] = commit(self.commits.get(topic), update)
            self._learn(topic, topic_id)

    def _sampled(self, rows: Sequence[Row]) -> None:
        of: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            of[row["time"]].append(row)
        for time in sorted(of):
            for row in of[time]:
                logs = self._logs[row["topic"]]
                logs[row["partition"]] = (row["log_start"], row["log_end"], row["stable_end"])
                self._ids[row["topic"]] = row["topic_id"]
                self._learn(row["topic"], row["topic_id"])
            for topic, logs in self._logs.items():  # what is not written has not changed
                known = [logs.get(p, (UNKNOWN, UNKNOWN, UNKNOWN)) for p in range(max(logs) + 1)]
                start, end, stable = zip(*known, strict=True)
                history = self.ends.setdefault(topic, EndHistory(len(known), self._ids[topic]))
                history.add(time, time, start, end, stable, self._ids[topic])

    def _learn(self, topic: str, topic_id: str | None) -> None:
        if topic_id and self.names.get(topic_id) != topic:
            self.names[topic_id] = topic
            self._roster = None

    @property
    def roster(self) -> Roster:
        if self._roster is None:
            self._roster = self._roster_of(self.state)
        return self._roster

    def observed(self, now: int) -> Observation:
        """All that a judgement rests on now."""
        infos = {t: TopicInfo(len(self._logs[t]), self._ids.get(t)) for t in self._logs}
        # As the worker would be: without progress records it judges nothing.
        blind = "nothing was recorded" if now - self.heard > GAP else None
        return Observation(
            self.cluster, self.group, now, self.roster, self.commits, self.ends, infos, as_of=now, blind=blind
        )


def replay(
    cluster: str,
    group: str,
    rows: Iterable[Row],
    policies: Mapping[str, Policy],
    start: int,
    end: int,
    tick: int = 10_000,
    keep_every: int = 0,
) -> list[Result]:
    """Judge every ``tick`` ms of [start, end] under each policy. Rows before ``start`` are what was known then.

    ``keep_every``: interval in ms at which observations are kept; 0: keep none.
    """
    watcher = ReplayedGroup(cluster, group)
    results = {name: Result(name) for name in policies}
    sessions = {name: _session(policy) for name, policy in policies.items()}
    for now, new in _by_tick(rows, start, end, tick):
        watcher.take(new)
        if not watcher.commits:
            continue
        seen = watcher.observed(now)
        for name, policy in policies.items():
            _judged(seen, sessions[name], policy, results[name], tick, keep_every)
    for name, session in sessions.items():
        results[name].dropped = dict(session.dropped)
    return list(results.values())


def _session(policy: Policy) -> EvaluationSession:
    return EvaluationSession(lambda group: policy)


def _by_tick(rows: Iterable[Row], start: int, end: int, tick: int) -> Iterator[tuple[int, list[Row]]]:
    """Each tick with the rows that came since the one before."""
    # Commits of one batch share a time: their order is that of the source.
    ordered = sorted(rows, key=lambda r: (r["time"], r.get("source_offset") or 0))
    at = 0
    for now in range(start, end + 1, tick):
        begin = at
        while at < len(ordered) and ordered[at]["time"] <= now:
            at += 1
        yield now, ordered[begin:at]


def _judged(
    seen: Observation, session: EvaluationSession, policy: Policy, result: Result, tick: int, keep: int
) -> None:
    # The coordinator's answer is the observation itself: its answer of then is not recorded.
    result.messages += session.evaluate(seen, lambda asked: asked)
    result.judged += seen.blind is None
    key = group_key(seen.cluster, seen.group)
    found = session.judgements[key]
    if found.skew is not None and found.skew >= policy.threshold:
        result.skewed_ms += tick
    # The first tick in each interval, whatever the range began with.
    if keep and seen.now % keep < tick:
        result.ticks.append(_tick(observe(seen, found.state, policy)))


def _tick(model: GroupModel) -> ReplayedTick:
    lags = model.lags
    lag = int(lags.shown[lags.known & ~lags.orphaned].sum())
    if not model.by_member:
        return ReplayedTick(model.now, None, 0.0, lag, {})
    held = model.owner >= 0
    waits = np.bincount(model.owner[held], model.columns.backlog[held], len(model.names))
    work = dict(zip(model.names, waits.tolist(), strict=True))
    return ReplayedTick(model.now, model.skew, float(model.lateness.max(initial=0.0)), lag, work)
