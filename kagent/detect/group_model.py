"""The model of one group at one moment: what each member has to do, can do and does. Detectors read it and nothing else.

``observe`` builds it from an observation and what is remembered, and advances the clocks of members that have committed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kagent.contract.recommendation import GroupKind
from kagent.detect import capacity as capacities
from kagent.detect import inflow as inflows
from kagent.detect import tracking
from kagent.detect.capacity import Capacity
from kagent.detect.committers import Units, units_of
from kagent.detect.evidence import idle_s
from kagent.detect.forecast import Placement, best_drain_s, drain_s
from kagent.detect.inflow import Interval
from kagent.detect.lateness import backlog, commit_times, gap_s, judged_at, virtual_lateness_s, waiting_since
from kagent.detect.start_position import begins_at_start, with_start_positions
from kagent.detect.state import JudgeState, MemberState, Window
from kagent.lag.commits import GONE
from kagent.lag.measure import Flags, Floats, Lags, Longs, ages, measure
from kagent.lag.membership import NOBODY, Roster, kind_of
from kagent.lag.observation import Observation
from kagent.policy import Policy

SET_ASIDE_SHARE = 0.2
"""A partition that stands for this share of ``hold`` (60 s) is excluded from lateness and plans."""
LATE_FOR_LONG_MS = 1_200_000
"""After twenty minutes of lateness the mean since then bounds the inflow from below, or frequent bursts with a calm median would
never be reported."""


@dataclass(frozen=True)
class ObservedColumns:
    """One group's partitions and members as numpy columns; what the clocks and estimates are made from.

    Per partition: ``owner`` (code of the member or NOBODY), ``backlog`` and ``backlog_high`` (records at ``judged_at``, ms),
    ``waiting_since`` (ms, 0: nothing unread), ``relevant``, ``cost`` (work per record), ``rates`` [minute, partition] records/s.
    Per member: ``committed_at`` (ms), ``gap`` (s).
    """

    lags: Lags
    units: Units
    owner: npt.NDArray[np.int32]
    relevant: Flags
    committed_at: Longs
    gap: Floats
    judged_at: Longs
    backlog: Floats
    backlog_high: Floats
    waiting_since: Longs
    rates: Floats

    @property
    def members(self) -> int:
        """How many members there are."""
        return len(self.units.names)


@dataclass(frozen=True)
class GroupModel:
    """A group as the detectors see it. All per-member columns are in the order of ``names``.

    ``state``: what is remembered after this look; ``excluded``: partitions that stand; ``lateness``: V in s; ``work``: backlog
    times cost, in records of mean cost; ``inflow``, ``capacity``: work/s; ``drain``, ``drain_low``: T in s, likeliest and at the
    optimist's ends.
    """

    seen: Observation
    policy: Policy
    state: JudgeState
    kind: GroupKind
    columns: ObservedColumns
    cost: Floats
    excluded: Flags
    work: Floats
    lateness: Floats
    inflow: Interval
    capacity: Capacity

    @property
    def now(self) -> int:
        """The tick's time, ms."""
        return self.seen.now

    @property
    def as_of(self) -> int:
        """The moment that the commits tell of: the pipeline's progress, ms."""
        return min(self.seen.as_of or self.seen.now, self.seen.now)

    @property
    def roster(self) -> Roster | None:
        return self.seen.roster

    @property
    def lags(self) -> Lags:
        return self.columns.lags

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns.units.names

    @property
    def owner(self) -> npt.NDArray[np.int32]:
        return self.columns.owner

    @property
    def relevant(self) -> Flags:
        return self.columns.relevant

    @property
    def by_member(self) -> bool:
        """Whether the coordinator knows who holds what, so that members can be named and partitions moved."""
        return self.columns.units.known

    def member_state(self, at: int) -> MemberState:
        """What is remembered of a member."""
        return self.state.members.get(self.names[at], MemberState())

    @cached_property
    def counted(self) -> Flags:
        """Partitions that count as some member's work."""
        return np.asarray(self.relevant & ~self.excluded & (self.owner >= 0))

    @cached_property
    def drain(self) -> Floats:
        """T per member under today's assignment, s."""
        return drain_s(self.work, self.inflow.mid, self.capacity.rate.mid)

    @cached_property
    def drain_low(self) -> Floats:
        """T at the optimist's ends: most capacity, least inflow."""
        return drain_s(self.work, self.inflow.low, self.capacity.rate.high)

    @cached_property
    def drain_high(self) -> Floats:
        """T at the pessimist's ends."""
        return drain_s(self.work, self.inflow.high, self.capacity.rate.low)

    @cached_property
    def placement_rows(self) -> Longs:
        """Places of the partitions that a plan may place."""
        return np.flatnonzero(self.counted)

    def best_drain(self, longest_s: float, optimist: bool = False) -> float:
        """The least T that any assignment was found to have, s; inf above ``longest_s``. ``optimist``: at the ends that favour
        it."""
        rates, rows = self.columns.rates[:, self.placement_rows], self.placement_rows
        # Per partition, not per member: a plan may part partitions that share a member today, and medians do not add up.
        usual = np.median(rates, axis=0)
        flow = np.minimum(rates[0], usual) if optimist else usual
        room = self.capacity.rate.high if optimist else self.capacity.rate.mid
        work = self.columns.backlog[rows] * self.cost[rows]
        return best_drain_s(Placement(*self._units(rows, work, flow * self.cost[rows])), room, longest_s)

    def _units(
        self, rows: Longs, work: Floats, flow: Floats
    ) -> tuple[Floats, Floats, npt.NDArray[np.int32], Flags | None]:
        """Partitions, or partition numbers of co-partitioned topics, as units with the members that may hold them."""
        unit = self.columns.units.together(self.lags, self.policy, self.kind)[rows]
        # `code` numbers the units from 0; `first` is one row of each, whose owner and subscribers stand for the whole unit.
        _, first, code = np.unique(unit, return_index=True, return_inverse=True)
        return (
            inflows.totals(code, work, len(first)),
            inflows.totals(code, flow, len(first)),
            self.owner[rows][first],
            self._eligible(rows[first]),
        )

    def _eligible(self, rows: Longs) -> Flags | None:
        roster = self.roster
        if roster is None or not self.by_member:
            return None
        topics = np.unique(self.lags.topic[rows]).tolist()
        may = {
            t: np.array([roster.eligible(m, self.lags.topics[t]) for m in range(len(self.names))])
            for t in topics
        }
        # Nearly every group: with everybody eligible the search takes the emptiest member from a heap, not from a column per unit.
        if all(m.all() for m in may.values()):
            return None
        return np.stack([may[t] for t in self.lags.topic[rows].tolist()])

    @cached_property
    def age(self) -> tuple[Floats, Flags]:
        """Age of each partition's oldest unread record in s, and whether it is only a lower bound."""
        return ages(self.seen, self.lags)

    @property
    def skew(self) -> float:
        """Greatest over mean work of the members, never overstated: the greatest at its least, the others at their most."""
        return skew_of(self.seconds_of_work)

    @cached_property
    def seconds_of_work(self) -> tuple[Floats, Floats]:
        """Work of each member at least and at most, in s of its own capacity (records where no capacity is known)."""
        held = self.counted
        high = np.bincount(self.owner[held], (self.columns.backlog_high * self.cost)[held], len(self.names))
        speed = self.capacity.rate.mid if self.works_in_seconds else np.ones(len(self.names))
        return self.work / speed, high / speed

    @property
    def works_in_seconds(self) -> bool:
        """Whether some member's capacity was measured, so that work is time."""
        return bool(self.capacity.measured.any() and (self.capacity.rate.mid > 0).all())

    @cached_property
    def usual_rates(self) -> Floats:
        """Records/s that arrive at each partition, the median of five minutes."""
        return np.asarray(np.median(self.columns.rates, axis=0))

    def if_only(self, topic: str) -> GroupModel:
        """The same group if the records of ``topic`` were all the work there is: what a member whose mix of topics never
        changes cannot refute."""
        cost = {t: float(t == topic) for t in self.lags.topics}
        owner = _owner_of_counted(self.columns, self.excluded)
        work, flow, capacity = _load(self.columns, owner, cost, self.state, self.seen)
        return replace(
            self, cost=_by_partition(self.columns, cost), work=work, inflow=flow, capacity=capacity
        )

    @property
    def longest_drain(self) -> float:
        """T of the group under today's assignment, s."""
        return float(self.drain.max(initial=0.0))

    @property
    def worst(self) -> int:
        """Code of the member with the greatest lateness, -1 without any."""
        return int(np.argmax(self.lateness)) if self.lateness.any() else -1

    def rows_of(self, member: int) -> Longs:
        """Places of the partitions of a member that count, most work first."""
        rows = np.flatnonzero(self.counted & (self.owner == member))
        return rows[np.argsort(-(self.columns.backlog * self.cost)[rows], kind="stable")]


def skew_of(work: tuple[Floats, Floats]) -> float:
    """Greatest over mean, of work at least and at most per member; 1.0 without work."""
    low, high = work
    if len(low) < 2 or low.max(initial=0.0) <= 0:
        return 1.0
    at = int(np.argmax(low))
    # Backlogs are intervals: with the late member at its least and the others at their most, the ratio is a lower bound.
    total = float(high.sum() - high[at] + low[at])
    return max(1.0, float(low[at]) * len(low) / total)


def observe(seen: Observation, state: JudgeState, policy: Policy) -> GroupModel:
    """The model of a group as it is seen now. What its clocks have learned is in the model's ``state``."""
    if not state.from_start and begins_at_start(seen.commits, seen.ends):
        state = replace(state, from_start=True)
    # The order matters. What stands is found first, because a record that no consumer can process proves no member busy and must be
    # out of the capacity windows; spells come last, because they need the lateness and T that those windows give.
    before, columns = state, columns_of(seen, state, policy)
    first = min((row.first for row in seen.commits.values()), default=0)
    state = tracking.advance_standing(columns, state, _as_of(seen), first)
    excluded = _excluded(columns, state, policy)
    state = tracking.advance_windows(columns, state, excluded, seen.ends, policy)
    cost = _costs(columns, state, seen.now)
    per_partition = _by_partition(columns, cost)
    owner = _owner_of_counted(columns, excluded)
    work, flow, capacity = _load(columns, owner, cost, state, seen)
    model = GroupModel(
        seen=seen,
        policy=policy,
        state=state,
        kind=kind_of(seen.roster, seen.group, policy.kind),
        columns=columns,
        cost=per_partition,
        excluded=excluded,
        work=work,
        lateness=_lateness(columns, owner, per_partition, work, flow, state, seen, idle_s(policy)),
        inflow=flow,
        capacity=capacity,
    )
    return replace(model, state=tracking.advance_clocks(model, before))


def _as_of(seen: Observation) -> int:
    return min(seen.as_of or seen.now, seen.now)


def columns_of(seen: Observation, state: JudgeState, policy: Policy) -> ObservedColumns:
    """The columns of a group, before anything is remembered or estimated."""
    lags = with_start_positions(measure(seen, policy), seen, state, policy)
    kind = kind_of(seen.roster, seen.group, policy.kind)
    units = units_of(seen.roster, lags, kind, state.committers)
    relevant = np.asarray(lags.known & (lags.committed != GONE) & ~lags.orphaned & (units.owner != NOBODY))
    owner = np.where(relevant, units.owner, NOBODY).astype(np.int32)
    committed_at = commit_times(lags, owner, len(units.names))
    cadence = _cadence(lags, owner, len(units.names))
    gap = np.array([gap_s(state.members.get(n), float(c)) for n, c in zip(units.names, cadence, strict=True)])
    times = judged_at(lags, owner.astype(np.int64), committed_at, gap)
    # Backlog at the time of the commit, not now: a commit is as old as commit interval, trigger and tick together, so a member
    # that has caught up would show its inflow times that age, and unequal inflow alone would look like skew.
    low, high = backlog(lags, seen.ends, times, policy.allowed_lag)
    return ObservedColumns(
        lags=lags,
        units=units,
        owner=owner,
        relevant=relevant,
        committed_at=committed_at,
        gap=gap,
        judged_at=times,
        backlog=np.where(relevant, low, 0.0),
        backlog_high=np.where(relevant, high, 0.0),
        waiting_since=np.where(relevant, waiting_since(lags, seen.ends), 0),
        rates=inflows.minutes(lags, seen.ends),
    )


def _cadence(lags: Lags, owner: npt.NDArray[np.int32], members: int) -> Floats:
    """The usual gap between commits of each member's topics, ms."""
    out = np.zeros(members)
    held = owner >= 0
    # ufunc.at, because out[owner] = maximum(…) keeps only the last of several partitions of one member:
    # https://numpy.org/doc/stable/reference/generated/numpy.ufunc.at.html
    np.maximum.at(out, owner[held], lags.cadence[held])
    return out


def _excluded(columns: ObservedColumns, state: JudgeState, policy: Policy) -> Flags:
    """Partitions that have been passed over, or idle beside, for so long that they say nothing of their member's work."""
    out = np.zeros(len(columns.lags), bool)
    if not state.standing:
        return out
    limit = SET_ASIDE_SHARE * policy.hold
    place = columns.lags.places
    # Over the few clocks, not over all partitions: in a healthy group there is none.
    for key, clock in state.standing.items():
        if key in place and max(clock.passed_over_s, clock.idle_s) > limit:
            out[place[key]] = True
    return out


def _windows(columns: ObservedColumns, state: JudgeState, now: int) -> list[tuple[Window, ...]]:
    """The busy windows of every member that are young enough."""
    known = [state.members.get(name) for name in columns.units.names]
    return [capacities.kept(m.windows, now) if m else () for m in known]


def _costs(columns: ObservedColumns, state: JudgeState, now: int) -> dict[str, float]:
    """The work of a record by topic."""
    if len(columns.lags.topics) < 2:
        return {}
    return capacities.costs([w for some in _windows(columns, state, now) for w in some])


def _by_partition(columns: ObservedColumns, cost: Mapping[str, float]) -> Floats:
    per_topic = np.array([cost.get(t, 1.0) for t in columns.lags.topics] or [1.0])
    return per_topic[columns.lags.topic] if len(columns.lags) else np.ones(0)


def _owner_of_counted(columns: ObservedColumns, excluded: Flags) -> npt.NDArray[np.int32]:
    held = columns.relevant & ~excluded & (columns.owner >= 0)
    return np.where(held, columns.owner, NOBODY).astype(np.int32)


def _load(
    columns: ObservedColumns,
    owner: npt.NDArray[np.int32],
    cost: Mapping[str, float],
    state: JudgeState,
    seen: Observation,
) -> tuple[Floats, Interval, Capacity]:
    """What waits for each member, what arrives and what it can do, all in work by one cost of a record per topic."""
    per_partition, held = _by_partition(columns, cost), owner >= 0
    work = inflows.totals(owner[held], (columns.backlog * per_partition)[held], columns.members)
    flow = inflows.estimate(inflows.summed(columns.rates, owner, columns.members, per_partition))
    flow = _since_late(columns, owner, per_partition, flow, state, seen)
    rates = [capacities.samples(w, cost, seen.now) for w in _windows(columns, state, seen.now)]
    return work, flow, capacities.of_members([capacities.estimate(r) for r in rates], flow.mid)


def _since_late(
    columns: ObservedColumns,
    owner: npt.NDArray[np.int32],
    cost: Floats,
    flow: Interval,
    state: JudgeState,
    seen: Observation,
) -> Interval:
    """Who has been late for long has at least the mean inflow since then."""
    low = flow.low.copy()
    for at, name in enumerate(columns.units.names):
        known = state.members.get(name)
        # The stretch of the backlog, not of the spell: a lull ends a spell, and this mean has to span bursts and lulls.
        late = known.backlog if known else None
        if late is None or late.last - late.began < LATE_FOR_LONG_MS:
            continue
        rows = np.flatnonzero(owner == at)
        grown = inflows.grown_since(seen.ends, columns.lags, rows, cost, late.began, late.last)
        low[at] = max(low[at], grown * 1000 / (late.last - late.began))
    # Raised alone, low could lie above mid and high.
    return Interval(low, np.maximum(flow.mid, low), np.maximum(flow.high, low))


def _lateness(
    columns: ObservedColumns,
    owner: npt.NDArray[np.int32],
    cost: Floats,
    work: Floats,
    flow: Interval,
    state: JudgeState,
    seen: Observation,
    idle: float,
) -> Floats:
    """V of every member, s. Members with next to nothing waiting, and no clock running, are on time."""
    out = np.zeros(columns.members)
    for at in np.flatnonzero(work > 0).tolist():
        known = state.members.get(columns.units.names[at])
        # The usual case: so small a backlog arrived within the last seconds, so its age is backlog ÷ inflow without a search.
        if work[at] < idle * flow.mid[at] and not (known and known.running):
            out[at] = work[at] / flow.mid[at]
            continue
        rows = np.flatnonzero(owner == at)
        out[at] = virtual_lateness_s(
            columns.lags,
            seen.ends,
            rows,
            cost,
            float(work[at]),
            int(columns.committed_at[at]),
            float(flow.mid[at]),
        )
    return out


__all__ = ["GroupModel", "ObservedColumns", "columns_of", "observe", "skew_of"]
