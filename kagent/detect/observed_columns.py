"""What is seen of a group as numpy columns: what the clocks, the capacity and the lateness are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np
import numpy.typing as npt

from kagent.contract.recommendation import GroupKind
from kagent.detect import inflow as inflows
from kagent.detect.backlog import backlog, waiting_since
from kagent.detect.capacity import RECENT_MS
from kagent.detect.commit_gaps import USUAL_GAP_S, usual_gaps_ms
from kagent.detect.committers import Units, co_partitioned, units_of
from kagent.detect.state import JudgeState, MemberState
from kagent.lag.chance import NOT_CHANCE
from kagent.lag.commits import GONE
from kagent.lag.log_end_coverage import unseen
from kagent.lag.log_ends import EndHistory
from kagent.lag.measure import Flags, Floats, Lags, Longs
from kagent.lag.membership import NOBODY, kind_of
from kagent.lag.observation import Observation
from kagent.policy import Policy


@dataclass(frozen=True)
class MovedTogether:
    """Which of some partitions must move together. ``first``: the place of one partition of each unit; ``code``: each partition's
    unit, from 0."""

    first: Longs
    code: Longs

    def sums(self, amount: Floats) -> Floats:
        """An amount of each partition, summed for each unit."""
        return inflows.totals(self.code, amount, len(self.first))


@dataclass(frozen=True)
class ObservedColumns:
    """One group's partitions and members as numpy columns; what the clocks and estimates are made from.

    Per partition: ``owner`` (code of the member or NOBODY), ``backlog`` and ``backlog_high`` (records at ``judged_at``, ms),
    ``waiting_since`` (ms, 0: nothing unread), ``relevant``, ``rates`` [minute, partition] records/s, ``rates_since`` (records/s over
    the last stretch of lateness of its member, 0 where it has not been late for long), ``unit`` (a number, the same for partitions that must stay with one member:
    ``paired``). Per member: ``committed_at`` (ms), ``gap`` (s). Per topic: ``usual_gaps_ms`` between commits, None where unknown.
    ``unseen``: times in which no log end was read for a minute, (from, until) in ms.
    """

    kind: GroupKind
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
    rates_since: Floats
    paired: bool
    unit: Longs
    usual_gaps_ms: Mapping[str, float | None]
    unseen: tuple[tuple[int, int], ...] = ()

    @property
    def members(self) -> int:
        """How many members there are."""
        return len(self.units.names)

    def same_member(self, at: int) -> Flags:
        """The relevant partitions of the member that holds this one, which is one of them."""
        return np.asarray(self.relevant & (self.owner == self.owner[at]))

    def same_topic(self, at: int) -> Flags:
        """The relevant partitions of this one's topic, which is one of them."""
        return np.asarray(self.relevant & (self.lags.topic == self.lags.topic[at]))

    def moved_together(self, rows: Longs) -> MovedTogether:
        """The units that these partitions make up: partitions, or partition numbers of co-partitioned topics."""
        _, first, code = np.unique(self.unit[rows], return_index=True, return_inverse=True)
        return MovedTogether(rows[first], code)

    @cached_property
    def median_rates(self) -> Floats:
        """Records/s that arrive at each partition now: the median of the minutes."""
        return np.asarray(np.median(self.rates, axis=0))

    @cached_property
    def usual_rates(self) -> Floats:
        """Records/s to expect at each partition: the median of the minutes, or the mean while its member was late where that
        is more for all that it holds."""
        return self._at_least_since(self.median_rates)

    @cached_property
    def least_rates(self) -> Floats:
        """Records/s to expect at least: the newest minute where that is less."""
        return self._at_least_since(np.minimum(self.rates[0], self.median_rates))

    def _at_least_since(self, rates: Floats) -> Floats:
        if not self.rates_since.any():
            return rates
        held = self.owner >= 0
        now, since = (
            inflows.totals(self.owner[held], each[held], self.members) for each in (rates, self.rates_since)
        )
        # By member, not by partition: of a burst that comes to one after another of its partitions, the greater of each would add up to
        # more than ever arrived.
        return np.where(held & (since > now)[self.owner], self.rates_since, rates)


def columns_of(lags: Lags, seen: Observation, state: JudgeState, policy: Policy) -> ObservedColumns:
    """The columns of a group with these lags, before anything else is remembered or estimated."""
    kind = kind_of(seen.roster, seen.group, policy.kind)
    units, paired = units_of(seen.roster, lags, kind, state.committed_together), co_partitioned(policy, kind)
    relevant = np.asarray(lags.known & (lags.committed != GONE) & ~lags.orphaned & (units.owner != NOBODY))
    owner = np.where(relevant, units.owner, NOBODY).astype(np.int32)
    committed_at = _commit_times(lags, owner, len(units.names))
    waits = np.where(relevant, waiting_since(lags, seen.ends, policy.allowed_lag), 0)
    usual = usual_gaps_ms(seen, lags, units, committed_at, waits)
    cadence = _cadence(lags, usual, owner, len(units.names))
    gap = np.array([gap_s(state.members.get(n), float(c)) for n, c in zip(units.names, cadence, strict=True)])
    times = _judged_at(lags, owner.astype(np.int64), committed_at, gap)
    # Backlog at the time of the commit, not now: a commit is as old as commit interval, trigger and tick together, so a member
    # that has caught up would show its inflow times that age, and unequal inflow alone would look like skew.
    low, high = backlog(lags, seen.ends, times, policy.allowed_lag)
    rates = inflows.minutes(lags, seen.ends)
    return ObservedColumns(
        kind=kind,
        lags=lags,
        units=units,
        owner=owner,
        relevant=relevant,
        committed_at=committed_at,
        gap=gap,
        judged_at=times,
        backlog=np.where(relevant, low, 0.0),
        backlog_high=np.where(relevant, high, 0.0),
        waiting_since=waits,
        rates=rates,
        rates_since=_rates_since(_late_for_long(units.names, state), lags, seen.ends, owner, rates),
        paired=paired,
        unit=lags.partition if paired else np.arange(len(lags), dtype=np.int64),
        usual_gaps_ms=usual,
        unseen=_unseen(lags, seen),
    )


def _unseen(lags: Lags, seen: Observation) -> tuple[tuple[int, int], ...]:
    # What lasts for less than a minute says nothing of any clock.
    longest = max(seen.patience or 0, int(USUAL_GAP_S * 1000))
    return unseen((seen.ends[name] for name in lags.topics), longest, seen.as_of or seen.now)


def _late_for_long(names: Sequence[str], state: JudgeState) -> dict[int, tuple[int, int]]:
    """Code of each member that has been late for long → from when until when it is looked at, ms."""
    # The stretch of the backlog, not of the spell: a lull ends a spell, and the mean over it has to span bursts and lulls.
    known = {at: state.members[name].backlog for at, name in enumerate(names) if name in state.members}
    late = {at: b for at, b in known.items() if b and b.last - b.began >= RECENT_MS}
    return {at: (b.last - RECENT_MS, b.last) for at, b in late.items()}


def _rates_since(
    stretches: dict[int, tuple[int, int]],
    lags: Lags,
    ends: Mapping[str, EndHistory],
    owner: npt.NDArray[np.int32],
    rates: Floats,
) -> Floats:
    """Records/s of every partition over its member's stretch; 0 where the member has none, or where so much no longer comes."""
    found, held = inflows.since(stretches, lags, ends, owner), owner >= 0
    if not found.any():
        return found
    members = int(owner.max()) + 1
    minutes = inflows.summed(rates, owner, members, np.ones(len(lags)))
    # Of bursts that go on, one of the last minutes exceeds the mean.
    goes_on = inflows.totals(owner[held], found[held], members) <= minutes.max(axis=0)
    return np.where(held & goes_on[owner], found, 0.0)


def _commit_times(lags: Lags, owner: npt.NDArray[np.int32], members: int) -> Longs:
    """Time of each member's latest commit, ms; 0 where it has none."""
    times = np.zeros(members, np.int64)
    held = owner >= 0
    np.maximum.at(times, owner[held], lags.time[held])
    return times


def gap_s(known: MemberState | None, cadence_ms: float) -> float:
    """The member's median gap between commits, in s; the topic's until three gaps of its own are known."""
    if known is None or len(known.gaps) < NOT_CHANCE:
        return cadence_ms / 1000
    # Not numpy's, which takes forty times as long for nine numbers: every member of every group is asked at every tick.
    return float(median(known.gaps)) / 1000


def _judged_at(lags: Lags, owner: Longs, committed_at: Longs, gaps_s: Floats) -> Longs:
    """The time at which each partition's committed offset is known to hold, ms."""
    held = owner >= 0
    repeated = np.zeros(len(lags), np.int64)
    # Clients that commit only what moved do not repeat a waiting partition. Its own commit where it is younger: one member's partitions
    # may be committed seconds apart.
    repeated[held] = committed_at[owner[held]] - (NOT_CHANCE * 1000 * gaps_s[owner[held]]).astype(np.int64)
    return np.maximum(lags.time, repeated)


def _cadence(
    lags: Lags, usual_ms: Mapping[str, float | None], owner: npt.NDArray[np.int32], members: int
) -> Floats:
    """The usual gap between commits of each member's topics, ms."""
    out = np.zeros(members)
    held = owner >= 0
    # Where it is unknown, what the row or the policy says (``Lags.cadence``).
    usual = np.array([usual_ms.get(name) or 0.0 for name in lags.topics])[lags.topic]
    # ufunc.at, because out[owner] = maximum(…) keeps only the last of several partitions of one member:
    # https://numpy.org/doc/stable/reference/generated/numpy.ufunc.at.html
    np.maximum.at(out, owner[held], np.maximum(lags.cadence, usual)[held])
    return out
