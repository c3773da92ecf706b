"""How long a judgement that found a group healthy stays valid, so that it need not be made again: ticks then cost what happens in
groups, not how many there are.

``fast_path_healthy`` looks at commits, log ends and the time. Of a group that has had no event since, only the last two can change
what it finds. Each detector's signs say when time does (``kagent.detect.signs``); of log ends a bound can be given beforehand:

* no log of its topics has grown: what was read up to then is still read;
* or they have grown, but no unread record is old enough to matter, and the inflow that its lateness is held against cannot fall
  below a known rate.

Too short a validity costs a judgement; too long a one would hide a finding. So whatever is not foreseen here ends it, and
``tests/worker/test_valid_judgements.py`` holds it against ticks that judge every group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kagent.detect import useful_members
from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.evidence import idle_s
from kagent.detect.signs import NEVER, young_ms
from kagent.detect.state import JudgeState
from kagent.incident.evaluate import Judgement
from kagent.incident.fast_path import abandoned, next_question_at
from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_ends import EndHistory
from kagent.lag.observation import Observation
from kagent.lag.time_units import HOUR_MS, SECOND_MS
from kagent.policy import Policy

GROWING_MS = round(USUAL_GAP_S * SECOND_MS)
"""How long it stays valid at most while logs grow. The longer, the lower the rate that is certain; most groups commit within it."""


@dataclass(frozen=True, slots=True)
class TopicValidity:
    """One topic of the group. ``revisions``, ``growths``: of its history when it was judged; ``growths`` is None where records were unread,
    so that time alone can make them matter. Growth cannot matter up to a sample of ``growing_until`` (0: it can) and to progress of
    ``old_at``, ms."""

    history: EndHistory
    revisions: int
    growths: int | None
    growing_until: int
    old_at: int

    def holds(self, as_of: int) -> bool:
        """Whether what the topic's logs did since cannot matter to a judgement with progress of ``as_of`` (ms)."""
        history = self.history
        if history.revisions != self.revisions:
            return False
        return history.growths == self.growths or (
            history.last <= self.growing_until and as_of <= self.old_at
        )


@dataclass(frozen=True, slots=True)
class Validity:
    """From tick ``since`` until tick ``until`` (ms), while it holds for each topic and no event of the group comes."""

    since: int
    until: int
    topics: tuple[TopicValidity, ...]

    def holds(self, at: int, as_of: int | None) -> bool:
        """Whether a judgement at tick ``at``, with progress of ``as_of``, would find the same."""
        if not self.since <= at < self.until:
            return False
        return all(topic.holds(as_of or at) for topic in self.topics)


def validity_of(seen: Observation, judgement: Judgement, policy: Policy) -> Validity | None:
    """The validity of what was just found; None where the next tick has to judge anew."""
    state = judgement.state
    if not _found_healthy(seen, judgement):
        return None
    if abandoned(seen):
        return Validity(seen.now, NEVER, ())
    until = min(next_question_at(seen, state, policy), _ripens_at(state, seen))
    roster = seen.roster
    # At the next tick, or sooner; and names may be found at any time.
    if until <= seen.now + 1 or (roster is not None and roster.unresolved):
        return None
    members = roster is not None and bool(roster.members)
    topics = []
    for name, commits in seen.commits.items():
        history = seen.ends.get(name)
        topic = _topic_validity(commits, history, policy, members) if history is not None else None
        if topic is None:
            return None
        topics.append(topic)
    return Validity(seen.now, until, tuple(topics))


def _found_healthy(seen: Observation, judgement: Judgement) -> bool:
    """Whether the group was judged at a glance, and nothing is pending."""
    state = judgement.state
    if judgement.model is not None or judgement.messages or judgement.suppressed_by is not None:
        return False
    # A tick at or before the last judged one finds nothing because it does not look.
    return state.incident is None and not seen.muted and state.last_tick < seen.now


def _ripens_at(state: JudgeState, seen: Observation) -> int:
    """When time alone gives a healthy group something to learn, ms."""
    members = seen.roster is not None and bool(seen.roster.members)
    looks = NEVER if state.useful is None else state.useful.looked_at + useful_members.LOOK_EVERY_MS
    # See update_membership: once an hour it notes that there are members.
    return min(looks, state.members_at + HOUR_MS + 1 if members else NEVER)


def _topic_validity(
    commits: TopicCommits, history: EndHistory, policy: Policy, members: bool
) -> TopicValidity | None:
    # Without a sample the first one decides; and partitions that were never sampled cannot be judged at a glance.
    if not history.samples or not commits.partition or commits.partition[-1] >= history.partitions:
        return None
    partitions, committed = np.array(commits.partition, np.int64), np.array(commits.committed, np.int64)
    live = committed != GONE
    still = not bool(((history.end[partitions] - committed > policy.allowed_lag) & live).any())
    until = _growing_until(commits, history, policy, partitions, np.where(live, committed, NEVER), members)
    if not still and not until:
        return None
    return TopicValidity(
        history, history.revisions, history.growths if still else None, until, _old_at(commits)
    )


def _old_at(commits: TopicCommits) -> int:
    """Progress of up to then finds no unread record that has waited for too long, ms."""
    moved = zip(commits.moved, commits.committed, strict=True)
    oldest = min((time for time, offset in moved if offset != GONE), default=NEVER)
    # An hour: samples of the log ends are dropped after a week, and a bound may rest on none that can be dropped meanwhile.
    return oldest + min(young_ms(commits.cadence or 0), HOUR_MS)


def _growing_until(
    commits: TopicCommits,
    history: EndHistory,
    policy: Policy,
    partitions: np.ndarray,
    committed: np.ndarray,
    members: bool,
) -> int:
    """The sample up to which the topic may grow without another judgement, ms; 0 if it may not."""
    newest = max(commits.time)
    # A later sample could still lie before the newest commit, and raise what is known of the log end then.
    if history.last < newest:
        return 0
    # Growth of a partition that was never committed may matter at once, see `unread` of kagent.detect.signs.
    if members and len(partitions) < history.partitions:
        return 0
    # A commit before the log start has lost records as soon as any record after it is unread.
    if (history.start[partitions] > committed).any():
        return 0
    least = history.least_rates(GROWING_MS)[partitions]
    spare = np.maximum(idle_s(policy) * least, policy.allowed_lag)
    late = history.at(newest)[partitions] - committed > spare
    return 0 if late.any() else history.last + GROWING_MS
