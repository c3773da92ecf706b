"""Signs that something may be the matter, which a cheap look finds without a model of the group: most groups, most of the time,
show none, and no detector is asked about them.

Each detector declares its own ``SIGNS`` and is asked only where a sign of some detector shows. A sign says from when on it shows
(ms), if no event of the group comes: ``seen.now`` where it shows now, ``NEVER`` where time alone does not bring it. It looks at
commits, membership, the state and the time. What new log ends can bring is :func:`unread` alone, and
``kagent.incident.validity`` knows how long that takes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.evidence import idle_s
from kagent.detect.state import JudgeState
from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.lag.observation import Observation
from kagent.policy import Policy

Sign = Callable[[Observation, JudgeState, Policy], int]
NEVER = 1 << 62
"""A time that does not come, and an offset that no log reaches."""


def clock_runs(seen: Observation, state: JudgeState, policy: Policy) -> int:
    """A member was late or a partition stood when it was last looked at closely: its clock must go on, or stop."""
    clocks = state.standing or state.at_rest_s or any(m.running or m.mark for m in state.members.values())
    return seen.now if clocks else NEVER


def unread(seen: Observation, state: JudgeState, policy: Policy) -> int:
    """Records wait: for long, or more of them than a moment brings, or where retention takes them, or where nothing was ever
    committed."""
    now = seen.as_of or seen.now
    healthy = all(
        _topic_healthy(commits, seen.ends[topic], policy, now - young_ms(commits.cadence or 0))
        for topic, commits in seen.commits.items()
        if topic in seen.ends and commits.partition
    ) and not (seen.roster is not None and seen.roster.members and _grows_uncommitted(seen))
    return NEVER if healthy else seen.now


BEHIND: tuple[Sign, ...] = (clock_runs, unread)
"""Of detectors of what waits, which are most."""


def young_ms(cadence_ms: float) -> int:
    """For how long unread records may wait without a second look, ms: two of the group's gaps between commits, if that is longer."""
    return max(int(USUAL_GAP_S * 1000), int(2 * cadence_ms))


def _grows_uncommitted(seen: Observation) -> bool:
    """Whether partitions that were never committed, of topics that the group commits, have received records."""
    return any(
        len(commits.partition) < seen.ends[topic].partitions and seen.ends[topic].grown(commits.partition)
        for topic, commits in seen.commits.items()
        if topic in seen.ends and commits.partition
    )


def _topic_healthy(commits: TopicCommits, ends: EndHistory, policy: Policy, floor: int) -> bool:
    """No commit left more than a little unread when it was made, none is overtaken by retention, no unread record is old."""
    listed, allowed = commits.partition, policy.allowed_lag
    if not ends.samples:
        return True
    # Committed beyond the partitions that were sampled: the topic has grown, which this look cannot judge.
    if listed[-1] >= ends.partitions:
        return False
    committed = np.array(commits.committed, np.int64)
    whole = len(listed) == ends.partitions  # partitions are listed in order, so these are all of them
    partition = slice(None) if whole else np.array(listed, np.int64)
    # The newest log ends are an upper bound: where even they leave nothing unread, no time need be looked up.
    unread = (ends.end[partition] - committed) > allowed
    if not unread.any():
        return True
    if min(commits.committed) == GONE:
        unread &= committed != GONE
    # min() of the list first: it is cheaper than an array for the many groups that commit everything at once.
    if min(commits.moved) < floor and (unread & (np.array(commits.moved, np.int64) < floor)).any():
        return False
    if (unread & (ends.start[partition] > committed)).any():
        return False
    spare = np.maximum(idle_s(policy) * ends.rates()[partition], allowed)
    # Again the cheap bound first: the log ends at the newest commit stand for those at each partition's own.
    late = unread & (ends.at(max(commits.time))[partition] - committed > spare)
    if not late.any():
        return True
    before, _ = ends.bracket(np.array(listed, np.int64), np.array(commits.time, np.int64))
    return not bool((late & (before != UNKNOWN) & (before - committed > spare)).any())
