"""Topics that a group reads late on purpose: retries that wait for minutes, say.

Records of such a topic always wait, so they prove no member busy, and a member's lateness tells nothing as long as it contains theirs. Once
a topic has been as late as before for five minutes, its records count as arriving that much later: what is late then is late beyond that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kagent.detect import standstill
from kagent.detect.evidence import LatenessLimits
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.state import Delay, JudgeState
from kagent.lag.chance import TAIL
from kagent.lag.log_ends import LATELY_MS, PAUSE
from kagent.lag.measure import Flags
from kagent.lag.observation import Observation
from kagent.lag.time_units import SECOND_MS
from kagent.policy import Policy

# Not by the group's own policy: with `min_behind: 0` and `hold: 0` every lateness would be a purpose at once.
DEFAULTS = LatenessLimits.of(Policy())
LEAST_S = DEFAULTS.on_time
"""What is late by less is on time, and a topic that is read so much sooner than before is late on purpose by less, or no more."""
STEADY_S = PAUSE / TAIL / SECOND_MS
"""By so much the lateness of a topic that is read late on purpose swings at most, s: as far as two samples of its log ends lie apart. In half
an hour that of a group which reads two minutes late swung by 2.4 s, pauses apart."""


def learned(columns: ObservedColumns, seen: Observation, state: JudgeState, policy: Policy) -> JudgeState:
    """The state with what this look, by log ends as they are, tells of the delays of topics."""
    late_s: dict[str, float] = {}
    if columns.backlog.any():
        late_s = _late_s(columns, seen, standstill.excluded_from(columns, state, policy))
    # Read that much sooner it is late no more, or on purpose by less.
    delays = {
        topic: delay
        for topic, delay in state.delays.items()
        if late_s.get(topic, 0.0) > delay.most_s - LEAST_S
    }
    settles = columns.lags.time.max(initial=0) - state.assigned_at <= policy.settle * SECOND_MS
    # What is published is late, and a lateness that stays as it is no end of it.
    if state.incident is None and not settles:
        delays |= {
            topic: _next(delays.get(topic), late, _committed_at(columns, topic))
            for topic, late in late_s.items()
            if late >= LEAST_S
        }
    if delays == state.delays:
        return state
    return replace(_unmeasured(state) if _known(delays) != _known(state.delays) else state, delays=delays)


def _known(delays: Mapping[str, Delay]) -> set[str]:
    return {topic for topic, delay in delays.items() if delay.known}


def _unmeasured(state: JudgeState) -> JudgeState:
    """The state without what members did while they seemed busy: they were not, or are now."""
    members = {name: replace(known, windows=(), mark=None) for name, known in state.members.items()}
    return replace(state, members=members)


def _next(delay: Delay | None, late_s: float, committed_at: int) -> Delay:
    """The delay with one more look, or one that begins with it."""
    begun = Delay(late_s, late_s, committed_at, committed_at)
    if delay is None:
        return begun
    # Who is later than on purpose is late: that it lasts makes it no purpose.
    if delay.known or committed_at <= delay.last:
        return delay
    least_s, most_s = min(delay.least_s, late_s), max(delay.most_s, late_s)
    if most_s - least_s <= STEADY_S:
        lasts = committed_at - delay.since >= LATELY_MS
        return Delay(least_s, most_s, delay.since, committed_at, known=lasts)
    # Later for less time than is evidence: it paused.
    paused = late_s > delay.most_s and committed_at - delay.last < DEFAULTS.growing_need * SECOND_MS
    return delay if paused else begun


def _late_s(columns: ObservedColumns, seen: Observation, excluded: Flags) -> dict[str, float]:
    """How late each topic is read, s: how long before the commits its log ends, summed, were where these are. Partitions that stand are left out, and
    topics whose records are older than their history."""
    lags, found = columns.lags, {}
    for code, topic in enumerate(lags.topics):
        rows = np.flatnonzero((lags.topic == code) & columns.relevant & ~excluded)
        times, total = seen.ends[topic].curve(lags.partition[rows])
        reached = float(np.maximum(lags.committed, lags.start)[rows].sum())
        if len(rows) and len(times) and total[0] <= reached:
            when = float(np.interp(reached, total, times))
            found[topic] = max(0.0, (float(columns.judged_at[rows].mean()) - when) / SECOND_MS)
    return found


def _committed_at(columns: ObservedColumns, topic: str) -> int:
    lags = columns.lags
    return int(lags.time[lags.topic == lags.topics.index(topic)].max(initial=0))


def as_if_on_time(seen: Observation, delays: Mapping[str, Delay]) -> Observation:
    """The observation in which the records of topics that are read late on purpose arrive that much later."""
    late = {topic: round(delay.most_s * SECOND_MS) for topic, delay in delays.items() if delay.known}
    if not late:
        return seen
    ends = {
        topic: history.delayed(late[topic], seen.now) if topic in late else history
        for topic, history in seen.ends.items()
    }
    return replace(seen, ends=ends)
