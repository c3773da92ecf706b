"""Records that wait in a group that no consumer reads: from the first minute on, long before that is reported as `no_members`.

Without it such a group looks healthy: it has no member that could be late.
"""

from __future__ import annotations

from dataclasses import dataclass

from kagent.detect.signs import young_ms
from kagent.detect.state import JudgeState
from kagent.lag.chance import TAIL
from kagent.lag.commits import TopicCommits
from kagent.lag.measure import ages, measure, shown_lags
from kagent.lag.observation import Observation
from kagent.lag.time_units import DAY_MS
from kagent.policy import Policy
from kagent.text import counted, span

ANY = Policy()
"""How old a committed partition's unread records are does not depend on the policy."""
ENDED_AFTER_MS = DAY_MS
"""A group that has had neither members nor commits for a day is a job that ended: one that runs at all runs once a day (judgement,
not measured). Its committed offsets stay for ``offsets.retention.minutes``, a week by default, while its topics go on."""


@dataclass(frozen=True, slots=True)
class UnreadRecords:
    """``oldest_s``: age of the oldest unread record; ``at_least``: whether it may be older; ``absent_s``: for how long the group has
    had no members, None where kagent never saw one; ``reported_after_s``: how long an absence is reported, None where it is not."""

    records: int
    oldest_s: float
    at_least: bool
    absent_s: float | None
    reported_after_s: float | None
    is_absent_longer: bool = False
    """Whether the absence may be longer: a coordinator that is asked does not say since when a group is empty."""
    uncommitted_s: float | None = None
    """Time since the last commit, s, of a group that never has members (``assign()``, Flink, Spark); None for any other."""

    def __str__(self) -> str:
        waits = "waits" if self.records == 1 else "wait"
        oldest = f"the oldest for {_at_least(self.at_least)}{span(self.oldest_s)}"
        return (
            f"no members{self._absent}; {counted(self.records, 'record')} {waits}, {oldest}; {self._report}"
        )

    @property
    def sentence(self) -> str:
        """The same as a sentence."""
        return f"{str(self).capitalize()}."

    @property
    def _absent(self) -> str:
        if self.uncommitted_s is not None:
            return f" and no commits for {span(self.uncommitted_s)}"
        if self.absent_s is None:
            return ""
        return f" for {_at_least(self.is_absent_longer)}{span(self.absent_s)}"

    @property
    def _report(self) -> str:
        if self.uncommitted_s is not None:
            is_ended = self.uncommitted_s * 1000 > ENDED_AFTER_MS
            return (
                "not reported after a day"
                if is_ended
                else "reported once that is longer than its usual pauses"
            )
        if self.reported_after_s is not None:
            return f"reported after {span(self.reported_after_s)} without members, if records still arrive"
        if self.absent_s is None:
            return "not reported, as kagent has not seen it with members"
        return "not reported, as it has had no members for a day"


def _at_least(is_more: bool) -> str:
    return "at least " if is_more else ""


def reported_after_ms(state: JudgeState, policy: Policy) -> float:
    """How long an absence must last to be reported: a job that comes once a night is not missed in between."""
    return max(policy.absent_after * 1000, TAIL * state.longest_absence)


def is_ended(state: JudgeState, now_ms: int) -> bool:
    """Whether the group has had no members for a day: a job that ended."""
    return now_ms - state.members_at > ENDED_AFTER_MS


def has_no_reader(seen: Observation, state: JudgeState) -> bool:
    """Whether the coordinator knows no member of the group, and no commit comes for it either."""
    roster = seen.roster
    if roster is None or roster.members:
        return False
    if roster.type == "simple":
        return _stays_uncommitted(seen)
    for row in seen.commits.values():
        since = state.empty_since or roster.last_change or row.first
        # A consumer with assign(), or a Flink job, may commit under the name of a group whose members are gone.
        if row.last > since and _commits(seen, row):
            return False
    return True


def _commits(seen: Observation, row: TopicCommits) -> bool:
    """Whether the newest commit is as young as usual."""
    return (seen.as_of or seen.now) - row.last <= young_ms(row.cadence or 0)


def _stays_uncommitted(seen: Observation) -> bool:
    """Of a group that only ever commits: whether records wait that would have been committed if somebody read them."""
    if any(_commits(seen, row) for row in seen.commits.values()):
        return False
    # Where nothing arrives nothing is committed: a reader is missed once a record waits for as long.
    return any(
        1000 * float(part.age_s.max(initial=0.0)) > young_ms(seen.commits[part.topic].cadence or 0)
        for part in shown_lags(seen, ANY)
        if part.topic in seen.commits
    )


def unread_records(seen: Observation, state: JudgeState, policy: Policy) -> UnreadRecords | None:
    """What waits in a group without a reader; None where somebody reads, nothing waits, or it cannot be seen."""
    if seen.blind is not None or seen.unwatched or not has_no_reader(seen, state):
        return None
    lags = measure(seen, policy)
    unread = lags.known & ~lags.orphaned & (lags.shown > policy.allowed_lag)
    if not unread.any():
        return None
    age, is_older = ages(seen, lags)
    return UnreadRecords(
        records=int(lags.shown[unread].sum()),
        oldest_s=float(age[unread].max()),
        at_least=bool(is_older[unread].any()),
        absent_s=max(0, seen.now - state.empty_since) / 1000 if state.empty_since else None,
        reported_after_s=_reported_after_s(seen, state, policy),
        is_absent_longer=seen.roster is not None and not seen.roster.last_change,
        uncommitted_s=_uncommitted_s(seen),
    )


def _uncommitted_s(seen: Observation) -> float | None:
    if seen.roster is None or seen.roster.type != "simple":
        return None
    last = max((row.last for row in seen.commits.values()), default=seen.now)
    return max(0, seen.now - last) / 1000


def _reported_after_s(seen: Observation, state: JudgeState, policy: Policy) -> float | None:
    if not state.empty_since or is_ended(state, seen.now):
        return None
    return reported_after_ms(state, policy) / 1000
