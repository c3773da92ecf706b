"""The model of one group at one moment: what each member has to do, can do and does. Detectors read it and nothing else.

``observe`` builds it from an observation and what is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kagent.contract.recommendation import GroupKind
from kagent.detect import busy_windows, habits, late_on_purpose, pauses, standstill
from kagent.detect import inflow as inflows
from kagent.detect.backlog import backlog
from kagent.detect.capacity import Capacity, kept, waits_on_purpose
from kagent.detect.evidence import LatenessLimits, idle_s
from kagent.detect.forecast import Placement, best_drain_s, drain_s
from kagent.detect.inflow import Interval
from kagent.detect.lateness import continued_inflow, lateness_s, virtual_lateness_s
from kagent.detect.load import load_of, mix_of, owner_of_counted, per_partition
from kagent.detect.observed_columns import ObservedColumns, columns_of
from kagent.detect.peers import inflow_by_topic
from kagent.detect.record_costs import BusyMix
from kagent.detect.start_position import located, next_offset
from kagent.detect.state import JudgeState, MemberState, Window
from kagent.detect.without_members import has_no_reader
from kagent.lag.chance import NOT_CHANCE
from kagent.lag.measure import Flags, Floats, Lags, Longs, ages
from kagent.lag.membership import NOBODY, Roster
from kagent.lag.observation import Observation
from kagent.policy import Policy


@dataclass(frozen=True)
class GroupModel:
    """A group as the detectors see it. All per-member columns are in the order of ``names``.

    ``state``: what is remembered after this look; ``mix``: what was done of each topic; ``excluded``: partitions that stand; ``lateness``: V in s; ``work``: backlog
    times cost, in records of mean cost; ``delayed``: the columns and the observation by log ends as they are, where topics are read late on purpose and so count as arriving later;
    ``inflow``, ``capacity``: work/s; ``drain``, ``drain_low``: T in s, likeliest and at the
    optimist's ends.
    """

    seen: Observation
    policy: Policy
    state: JudgeState
    columns: ObservedColumns
    mix: BusyMix
    cost: Floats
    excluded: Flags
    work: Floats
    lateness: Floats
    inflow: Interval
    capacity: Capacity
    delayed: tuple[ObservedColumns, Observation] | None = None

    @property
    def now(self) -> int:
        """The tick's time, ms."""
        return self.seen.now

    @property
    def as_of(self) -> int:
        """The moment that the commits tell of: the pipeline's progress, ms."""
        return min(self.seen.as_of or self.seen.now, self.seen.now)

    @property
    def settles(self) -> bool:
        """Whether the group rebalanced so lately that its lag may come from that pause."""
        return self.as_of - self.state.assigned_at < self.policy.settle * 1000

    @property
    def roster(self) -> Roster | None:
        return self.seen.roster

    @property
    def kind(self) -> GroupKind:
        return self.columns.kind

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

    def windows_of(self, at: int) -> tuple[Window, ...]:
        """The busy windows of a member that are young enough."""
        return kept(self.member_state(at).windows, self.now)

    def has_work(self, member: int) -> bool:
        """Whether more waits for the member than a few seconds of its inflow."""
        return bool(self.work[member] > idle_s(self.policy) * self.inflow.mid[member])

    @cached_property
    def counted(self) -> Flags:
        """Partitions that count as some member's work."""
        return np.asarray(self.relevant & ~self.excluded & (self.owner >= 0))

    def records_per_work(self, member: int | None = None) -> float:
        """How many records a unit of work is, of what arrives for a member or for the group: people count records."""
        mine = self.counted if member is None else self.counted & (self.owner == member)
        rates = self.columns.usual_rates[mine]
        work = float((rates * self.cost[mine]).sum())
        return float(rates.sum()) / work if work > 0 else 1.0

    @cached_property
    def inflow_by_topic(self) -> Floats:
        """Records/s that arrive: [span, member, topic], see ``kagent.detect.peers``."""
        return inflow_by_topic(self.columns, self.counted, self.seen)

    @cached_property
    def topic_cost(self) -> Floats:
        """The cost of a record by topic."""
        out = np.ones(len(self.lags.topics))
        out[self.lags.topic] = self.cost
        return out

    @cached_property
    def least_lateness(self) -> Floats:
        """V, never more than each member's oldest unread record is known to be old, s: what was read of before the known log ends is as late as
        the inflow of now makes it."""
        oldest = np.zeros(len(self.names))
        waits = self.counted & (self.columns.backlog > 0)
        # maximum.at: an assignment by index would keep one of a member's partitions, not the greatest.
        np.maximum.at(oldest, self.owner[waits], self.age[0][waits])
        return np.minimum(self.lateness, oldest)

    @cached_property
    def lateness_at_commit(self) -> Floats:
        """V with every offset taken as it stood at the member's latest commit, s: the measure of trends. In ``lateness``, a bound
        from below, a partition that waits while its siblings are committed counts up to three commit gaps too little, until its turn
        comes."""
        columns, owner, waits = self.columns, self._counted_owner, self._waiting_at_commit
        if waits is columns.backlog:
            return self.lateness
        held = owner >= 0
        work = inflows.totals(owner[held], (waits * self.cost)[held], columns.members)
        idle = idle_s(self.policy)
        return lateness_s(columns, owner, self.cost, work, self.inflow, self.state, self.seen, idle)

    @cached_property
    def _counted_owner(self) -> npt.NDArray[np.int32]:
        return owner_of_counted(self.columns, self.excluded)

    @cached_property
    def _waiting_at_commit(self) -> Floats:
        """Records that wait in each partition, its offset taken as it stood at its member's latest commit."""
        columns, owner = self.columns, self._counted_owner
        held = owner >= 0
        times = columns.judged_at.copy()
        times[held] = columns.committed_at[owner[held]]
        if (times == columns.judged_at).all():
            return columns.backlog
        return backlog(self.lags, self.seen.ends, times, self.policy.allowed_lag)[0]

    @cached_property
    def swing(self) -> float | None:
        """How far what arrives for a member strays from minute to minute: variance ÷ mean, work/s, the mean over the members; None below
        three known minutes. By their size, since the sum of ten partitions swings less than one of them."""
        return self._swing(self._counted_owner, self.cost)

    def _swing(self, owner: npt.NDArray[np.int32], weight: Floats) -> float | None:
        by_minute = inflows.summed(self.columns.rates, owner, self.columns.members, weight)
        usual = by_minute.mean(axis=0)
        some = usual > 0
        if len(by_minute) < NOT_CHANCE or not some.any():
            return None
        return float((np.var(by_minute[:, some], axis=0, ddof=1) / usual[some]).mean())

    def swing_of(self, topic: str) -> float | None:
        """The same of one topic's records, records/s."""
        owner = np.where(self._is_of(topic), self._counted_owner, NOBODY).astype(np.int32)
        return self._swing(owner, np.ones(len(self.lags)))

    def _is_of(self, topic: str) -> Flags:
        return np.asarray(self.lags.topic == self.lags.topics.index(topic))

    def held_of(self, at: int, topic: str | None = None) -> Longs:
        """Places of the partitions that count as the member's work; of one topic, if it is named."""
        mine = self._counted_owner == at
        return np.flatnonzero(mine if topic is None else mine & self._is_of(topic))

    def continued_inflow(self, at: int) -> float:
        """The inflow (work/s) by which the member's lateness is extrapolated beyond the known log ends."""
        rows = self.held_of(at)
        return continued_inflow(self.lags, self.seen.ends, rows, self.cost, float(self.inflow.mid[at]))

    def drain_as_lately(self, at: int) -> float:
        """T of the member if as much arrives as in the last minute."""
        came = (self.columns.rates[0] * self.cost)[self.held_of(at)].sum()
        return float(drain_s(self.work[at], came, self.capacity.rate.mid[at]))

    def records_continued(self, rows: Longs) -> float:
        """The same in records/s, of these partitions of one topic: what a record costs does not change how late it is."""
        usual = float(self.columns.median_rates[rows].sum())
        return float(continued_inflow(self.lags, self.seen.ends, rows, np.ones(len(self.lags)), usual))

    def topic_lateness_at_commit(self, at: int) -> dict[str, float]:
        """V of each topic that the member holds, for itself, s; empty where it holds one alone."""
        held = self.held_of(at)
        codes = np.unique(self.lags.topic[held]).tolist()
        by_code = {code: held[self.lags.topic[held] == code] for code in codes} if len(codes) > 1 else {}
        return {self.lags.topics[code]: self._lateness_of(rows, at) for code, rows in by_code.items()}

    @cached_property
    def unmeasured_read_late_by_all(self) -> frozenset[str]:
        """Topics with records that wait from before the known log ends, which everyone who holds them reads late."""
        spells = (known.spell for known in self.state.members.values())
        # Asked once a look, and of few topics: for each late member anew, it would cost the square of their number.
        unmeasured = {topic for spell in spells if spell for topic in spell.older} & {*self.lags.topics}
        return frozenset(topic for topic in unmeasured if self._all_read_late(topic))

    @cached_property
    def is_all_late_and_unmeasured(self) -> bool:
        """Whether whoever gets records is late with records that are older than the known log ends: a group that reads so late on purpose, while
        what arrives rises, looks like one with too few members."""
        on_time_s = LatenessLimits.of(self.policy).on_time
        get = np.unique(self.owner[self.counted & (self.columns.usual_rates > 0)]).tolist()
        return all(
            self.lateness[at] >= on_time_s
            and self.beyond_known_s(at, self.held_of(at), float(self.lateness[at])) > 0
            for at in get
        )

    def beyond_known_s(self, at: int, rows: Longs, late_s: float) -> float:
        """How much of the lateness of these partitions of a member is older than their known log ends, s."""
        known_s = float(int(self.columns.committed_at[at]) - self.known_since(rows)) / 1000
        return max(0.0, late_s - known_s)

    def _all_read_late(self, topic: str) -> bool:
        on_time_s = LatenessLimits.of(self.policy).on_time
        holders = np.unique(self.owner[self.counted & self._is_of(topic)]).tolist()
        return all(self._lateness_of(self.held_of(at, topic), at) >= on_time_s for at in holders)

    def _lateness_of(self, rows: Longs, at: int) -> float:
        """V of these partitions of the member as if it held no others, s."""
        work, comes = (
            float((amount[rows] * self.cost[rows]).sum())
            for amount in (self._waiting_at_commit, self.columns.median_rates)
        )
        committed_at = int(self.columns.committed_at[at])
        return virtual_lateness_s(self.lags, self.seen.ends, rows, self.cost, work, committed_at, comes)

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
        rows = self.placement_rows
        # Per partition, not per member: a plan may part partitions that share a member today, and medians do not add up.
        flow = (self.columns.least_rates if optimist else self.columns.usual_rates)[rows]
        room = self._most if optimist else self.capacity.rate.mid
        work = self.columns.backlog[rows] * self.cost[rows]
        return best_drain_s(Placement(*self._units(rows, work, flow * self.cost[rows])), room, longest_s)

    @property
    def _most(self) -> Floats:
        """What each member can do at most, work/s: who waits on purpose, perhaps as much as the fastest."""
        high = self.capacity.rate.high
        waits = [self.waits_on_purpose(at) for at in range(len(self.names))]
        return np.where(waits, high.max(initial=0.0), high)

    def waits_on_purpose(self, at: int) -> bool:
        """Whether the member may be late on purpose: it is neither later nor less late than some minutes ago."""
        if self.delayed is not None and self.lateness[at] < LatenessLimits.of(self.policy).on_time:
            return True
        return waits_on_purpose(self.windows_of(at), self.now, LatenessLimits.of(self.policy).rise)

    @cached_property
    def as_it_is(self) -> GroupModel:
        """The same by log ends as they are, where some are taken for later ones: what is shown."""
        if self.delayed is None:
            return self
        columns, seen = self.delayed
        owner, idle = owner_of_counted(columns, self.excluded), idle_s(self.policy)
        work, flow, _ = load_of(columns, owner, self.mix.costs, self.state, seen)
        late = lateness_s(columns, owner, self.cost, work, flow, self.state, seen, idle)
        return replace(self, seen=seen, columns=columns, work=work, lateness=late, delayed=None)

    def _units(
        self, rows: Longs, work: Floats, flow: Floats
    ) -> tuple[Floats, Floats, npt.NDArray[np.int32], Flags | None]:
        """What moves together, with its member and those that may hold it: those of one partition stand for the others."""
        units = self.columns.moved_together(rows)
        return units.sums(work), units.sums(flow), self.owner[units.first], self._eligible(units.first)

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
        """Age of each partition's oldest unread record in s, deleted since or not, and whether it is only a lower bound."""
        # A group is no less late for what it can never read any more.
        return ages(self.seen, self.lags.undeleted)

    @property
    def skew(self) -> float:
        """Greatest over mean work of the members, never overstated: the greatest at its least, the others at their most."""
        return skew_of(self.seconds_of_work)

    @property
    def shown_skew(self) -> float | None:
        """The skew as everything shows it: rounded once; None where there are no two members to compare."""
        if len(self.names) < 2 or has_no_reader(self.seen, self.state):
            return None
        return round(self.skew, 3)

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

    def at_costs(self, cost: Mapping[str, float]) -> GroupModel:
        """The same group if a record of each topic cost this."""
        work, flow, capacity = load_of(self.columns, self._counted_owner, cost, self.state, self.seen)
        return replace(
            self, cost=per_partition(self.columns, cost), work=work, inflow=flow, capacity=capacity
        )

    @property
    def longest_drain(self) -> float:
        """T of the group under today's assignment, s."""
        return float(self.drain.max(initial=0.0))

    @property
    def worst(self) -> int:
        """Code of the member with the greatest lateness, -1 without any."""
        return int(np.argmax(self.lateness)) if self.lateness.any() else -1

    def next_record(self, row: int) -> int | None:
        """The offset of the record that a partition's reader reads next; None without a commit: to skip it might skip all that was not read."""
        offset = next_offset(self.seen, *self.lags.name(row))
        # A committed offset is that of the next record to read (KafkaConsumer.commitSync), and what is deleted is not read.
        return max(offset, int(self.lags.start[row])) if offset is not None else None

    def topics_of(self, rows: Longs) -> list[str]:
        """The topics that these partitions are of."""
        return [self.lags.topics[code] for code in np.unique(self.lags.topic[rows]).tolist()]

    def known_since(self, rows: Longs) -> int:
        """Since when the log ends of all these partitions are known, ms; 0 without any."""
        return max((self.seen.ends[topic].first for topic in self.topics_of(rows)), default=0)

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
    """The model of a group as it is seen now. What stands and what members do while busy is in its ``state``; spells are advanced
    from it, by ``kagent.detect.spells``."""
    # The order matters. What stands is found first, because a record that no consumer can process proves no member busy and must be
    # out of the capacity windows.
    columns, seen, state, delayed = _columns(seen, state, policy)
    first = min((row.first for row in seen.commits.values()), default=0)
    clocks = standstill.advance(columns, state, _as_of(seen), first, policy)
    excluded = standstill.excluded_from(columns, clocks, policy)
    last_move = int(standstill.moved_at(columns).max(initial=0))
    state = habits.with_ended_pauses(state, clocks, _as_of(seen), last_move)
    state = pauses.learned(state, dict(zip(columns.units.names, columns.committed_at.tolist(), strict=True)))
    state = busy_windows.advance(columns, state, excluded, seen.ends, policy)
    mix = mix_of(columns, state, excluded, seen.now, policy)
    each = per_partition(columns, mix.costs)
    owner = owner_of_counted(columns, excluded)
    work, flow, capacity = load_of(columns, owner, mix.costs, state, seen)
    return GroupModel(
        seen=seen,
        policy=policy,
        state=state,
        columns=columns,
        mix=mix,
        cost=each,
        excluded=excluded,
        work=work,
        lateness=lateness_s(columns, owner, each, work, flow, state, seen, idle_s(policy)),
        inflow=flow,
        capacity=capacity,
        delayed=delayed,
    )


def _columns(
    seen: Observation, state: JudgeState, policy: Policy
) -> tuple[ObservedColumns, Observation, JudgeState, tuple[ObservedColumns, Observation] | None]:
    """The columns, with what is read late on purpose as if it were read on time; the observation and the state of which they are; and, where
    anything is, the columns and the observation by log ends as they are."""
    lags, state = located(seen, state, policy)
    columns = columns_of(lags, seen, state, policy)
    state = late_on_purpose.learned(columns, seen, state, policy)
    on_time = late_on_purpose.as_if_on_time(seen, state.delays)
    if on_time is seen:
        return standstill.waiting_as_known(columns, state), seen, state, None
    # What is shown is what waits, on purpose or not.
    lags = replace(located(on_time, state, policy)[0], shown=lags.shown)
    judged = standstill.waiting_as_known(columns_of(lags, on_time, state, policy), state)
    return judged, on_time, state, (columns, seen)


def _as_of(seen: Observation) -> int:
    return min(seen.as_of or seen.now, seen.now)
