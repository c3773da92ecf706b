"""What is the matter with a group: each finding with the evidence that tells it from its neighbours.

stuck_member   none of the member's unread partitions moves   · stalled: one stands while its others move on
stalled        a record                                       · blocked_by_transaction: it stands at the last stable offset
slow_member    slower than the others at the same topics      · hot_partition, rebalance: as fast as they, but more to do
hot_partition  no assignment relieves it                      · rebalance: one does
under_provisioned  more arrives than all members can do       · rebalance: the others have room
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kagent.advice.load import NONE
from kagent.advice.look import Look
from kagent.contract.recommendation import GroupKind, Verdict
from kagent.lag.measure import Floats
from kagent.lag.membership import NOBODY

SLOW = 0.5
SLOW_AT_MOST = 0.85
"""Where only an upper bound of a member's relative speed is known, because the others have room: this is proof enough."""
NO_LESS = 0.8
KEEPS_UP = 10.0
"""Seconds by which a member may be behind and keeps up all the same."""
SLOW_INTERVALS = 3
RECENT = 2
DAY = 86_400_000
PATIENCE_AMBIGUOUS = 6
PATIENCE_WHOLE_GROUP = ((3, 1, 200_000), (1, 3, 0))
"""A group that went on without a pause for (first) times as long as it now stands is told (second) times the usual limit and
(third) ms after it stopped."""
PATIENCE_PAUSES = 9_000_000
"""One that may be a job that works now and then, in ms: longer than an hour's, whose habit is known thereafter."""

ORDER = (
    Verdict.LOST_DATA,
    Verdict.UNSTABLE,
    Verdict.BLOCKED_BY_TRANSACTION,
    Verdict.STALLED,
    Verdict.STUCK_MEMBER,
    Verdict.SLOW_MEMBER,
    Verdict.UNDER_PROVISIONED,
    Verdict.HOT_PARTITION,
    Verdict.REBALANCE,
    Verdict.NO_MEMBERS,
    Verdict.IDLE_MEMBERS,
)
SPREAD = frozenset({Verdict.REBALANCE, Verdict.HOT_PARTITION, Verdict.SLOW_MEMBER, Verdict.UNDER_PROVISIONED})
"""Verdicts about how work lies on the members: one question, so a change among them is the same incident."""


@dataclass(frozen=True)
class Finding:
    """``members``: codes of those concerned, the worst first; ``rows``: places of the partitions concerned, the worst
    first; ``behind``: seconds, at least."""

    verdict: Verdict
    members: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    behind: float = 0.0
    evidence: dict[str, Any] = field(default_factory=dict)
    ripe: bool = True
    """Whether it is bad enough to be spoken of; if not, only its age is counted."""

    @property
    def kind(self) -> str:
        """What a streak of findings is a streak of."""
        return "spread" if self.verdict in SPREAD else str(self.verdict)


def findings(look: Look) -> list[Finding]:
    """All that is the matter, the leading one first."""
    found = [f for finder in FINDERS for f in finder(look)]
    return sorted(found, key=lambda f: (not f.ripe, ORDER.index(f.verdict)))


def _unstable(look: Look) -> Iterator[Finding]:
    state, policy = look.state, look.policy
    turns = generations_within(look)
    if turns < policy.storm_generations or look.kind in (GroupKind.SIMPLE, GroupKind.SHARE):
        return
    back = {name: n for name, n in state.comings.items() if n >= 2}
    patience = max(policy.deploy_silence, 120.0 * len(state.names)) * 1000
    if not back and look.now - state.restless_since < patience:
        return  # everybody in turn: a deployment or a change of scale
    names = sorted(back, key=lambda n: (-back[n], n))
    codes = tuple(look.names.index(n) for n in names if n in look.names)
    evidence = {"generations": turns, "window_s": policy.storm_window, "come_and_go": names[:20]}
    yield Finding(Verdict.UNSTABLE, codes, behind=_worst_age(look), evidence=evidence)


def generations_within(look: Look) -> int:
    """How many generations the group has gone through within the storm window."""
    since = look.now - look.policy.storm_window * 1000
    inside = [g for t, g in look.state.generations if t >= since]
    before = [g for t, g in look.state.generations if t < since]
    return max(inside) - (before[-1] if before else min(inside)) if inside else 0


def _worst_age(look: Look) -> float:
    return float(look.age[look.relevant].max(initial=0.0))


def _lost_data(look: Look) -> Iterator[Finding]:
    lags = look.lags
    count = np.where(look.now - lags.time < DAY, lags.lost, 0)
    for place, (_, records) in look.state.lost.items():
        topic, _, number = place.rpartition("/")
        if topic in lags.topics:
            count[(lags.topic == lags.topics.index(topic)) & (lags.partition == int(number))] = records
    lost = look.relevant & (count > look.policy.allowed_lag)
    rows = _worst(lost, count)
    if rows:
        evidence = {"lost": int(count[lost].sum()), "partitions": _named(look, rows)}
        yield Finding(Verdict.LOST_DATA, _holders(look, rows), rows, float(look.age[lost].max()), evidence)


def _blocked(look: Look) -> Iterator[Finding]:
    blocked = look.relevant & at_stable(look) & (look.age >= look.policy.stall_after)
    rows = _worst(blocked, look.age)
    if rows:
        evidence = {
            "partitions": _named(look, rows),
            "last_stable_offset": int(look.lags.stable[rows[0]]),
            "end": int(look.lags.end[rows[0]]),
        }
        yield Finding(
            Verdict.BLOCKED_BY_TRANSACTION, _holders(look, rows), rows, float(look.age[rows[0]]), evidence
        )


def at_stable(look: Look) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Partitions whose commit stands at the last stable offset while the log goes on beyond it."""
    lags = look.lags
    allowed = look.policy.allowed_lag
    open_ = (lags.stable >= 0) & (lags.stable < lags.end - allowed)
    return open_ & (lags.committed >= lags.stable - allowed)


def _standing(look: Look) -> Iterator[Finding]:
    """Stalled partitions and stuck members."""
    lags = look.lags
    stopped = look.stopped & ~at_stable(look)
    if not stopped.any():
        return
    moving = look.relevant & (look.as_of - lags.moved <= np.maximum(RECENT * lags.cadence, 60_000))
    if not look.by_member:
        if moving.any():
            yield from _stalled(look, stopped)
        return
    stuck: list[int] = []
    for member in np.unique(lags.owner[stopped]).tolist():
        mine = lags.owner == member
        here = stopped & mine
        if not (moving & mine).any():
            unread = mine & look.relevant & (lags.shown > look.policy.allowed_lag)
            if here.sum() == unread.sum():
                alive = (lags.time - lags.moved)[here] > 2 * lags.cadence[here]
                if unread.sum() == 1 and alive.all() and (moving & ~mine).any():
                    yield from _stalled(look, here)
                else:
                    stuck.append(member)
            continue
        yield from _stalled(look, here & _a_record(look, here, moving & mine))
    yield from _stuck(look, stuck, stopped, bool(moving.any()))


def _a_record(look: Look, here: Any, moving: Any) -> Any:
    """Of one member's stopped partitions those that a record explains: others of the same topic move on and most do. A
    whole topic that stands while others move on is rather paused on purpose, and is given more time."""
    lags = look.lags
    out = np.zeros(len(lags), bool)
    for code in np.unique(lags.topic[here]).tolist():
        same = lags.topic == code
        if (moving & same).sum() >= (here & same).sum():
            out |= here & same
        else:
            out |= here & same & (look.waiting > PATIENCE_AMBIGUOUS * look.limit)
    return out


def _stalled(look: Look, rows_in: Any) -> Iterator[Finding]:
    rows = _worst(rows_in, look.standing)
    if rows:
        at = rows[0]
        evidence = {
            "partitions": _named(look, rows),
            "offset": int(look.lags.committed[at]),
            "stands_s": round(float(look.standing[at]) / 1000),
            "unread": int(look.lags.shown[at]),
        }
        yield Finding(Verdict.STALLED, _holders(look, rows), rows, float(look.age[at]), evidence)


def _stuck(look: Look, members: list[int], stopped: Any, others_move: bool) -> Iterator[Finding]:
    if not members:
        return
    lags = look.lags
    if not others_move:
        late = stopped & (look.waiting > _patience(look))
        members = [m for m in members if (late & (lags.owner == m)).any()]
        if not members:
            return
    mine = stopped & np.isin(lags.owner, members)
    rows = _worst(mine, lags.shown)
    members.sort(key=lambda m: -int(lags.shown[mine & (lags.owner == m)].sum()))
    evidence = {
        "members": [look.names[m] for m in members][:50],
        "whole_group": not others_move,
        "stands_s": round(float(look.standing[mine].min()) / 1000),
        "unread": int(lags.shown[mine].sum()),
    }
    yield Finding(Verdict.STUCK_MEMBER, tuple(members), rows, float(look.age[mine].max()), evidence)


def _patience(look: Look) -> Floats:
    """For how long partitions of a group that stands as a whole may stand, in ms. Batch jobs and pauses on purpose look just
    like it; but who went on for long without a pause has no such habit."""
    stopped = look.stopped & (look.lags.moved > 0)
    went_on = np.where(stopped, (look.lags.moved - look.since) / np.maximum(look.waiting, 1), 0).max(
        initial=0.0
    )
    for times, limits, more in PATIENCE_WHOLE_GROUP:
        if went_on >= times:
            return np.asarray(limits * look.limit + more)
    return np.asarray(np.maximum(3 * look.limit, PATIENCE_PAUSES))


def _spread(look: Look) -> Iterator[Finding]:
    """Skew, and which of the verdicts on it leads as far as that can be told without a plan."""
    load, policy = look.load, look.policy
    worst = load.greatest
    if not look.by_member or worst == NONE:
        return
    ripe = bool(load.behind[worst] >= policy.min_behind)
    need = needed_members(look)
    have = len(look.names)
    rows = _worst((look.lags.owner == worst) & (look.lags.low > 0), look.load.size)
    behind = float(load.behind[worst])
    everybody = bool((load.low[load.partitions > 0] > 0).all())
    if need is not None and need > have and everybody:
        evidence = {
            "needed": need,
            "members": have,
            "pressure": round(float(np.nansum(load.pressure)), 3),
        }
        yield Finding(Verdict.UNDER_PROVISIONED, (worst,), rows, behind, evidence, ripe)
    if load.skew < policy.threshold:
        return
    slow = slowness(look, worst)
    if slow is not None:
        intervals = int(look.state.busy[look.names[worst]].intervals)
        evidence = {"speed": round(slow, 3), "intervals": intervals}
        yield Finding(Verdict.SLOW_MEMBER, (worst,), rows, behind, evidence, ripe)
    yield Finding(Verdict.REBALANCE, (worst,), rows, behind, ripe=ripe)


def slowness(look: Look, member: int) -> float | None:
    """A member's speed over the others' at the same topics, where most of them are known to be much faster; else None. Of
    those that were never busy is known what they keep up with: they can do that at least."""
    done = _busy_rates(look, member)
    if done is None:
        return None
    against = [
        r
        for at in range(len(look.names))
        if at != member and (r := _against(look, member, done, at)) is not None
    ]
    faster = [ratio for ratio, sure in against if ratio < (SLOW if sure else SLOW_AT_MOST)]
    return float(np.median(faster)) if 2 * len(faster) > len(against) else None


def _against(look: Look, member: int, done: dict[str, float], other: int) -> tuple[float, bool] | None:
    """A member's speed over another's, and whether that is it, or at most about it; None if nothing can be said.

    At most: the other does no less of any topic, and so many times what the member does of those with which it is late.
    Whatever their records cost, it has the room for it.
    """
    known, names, lags = look.rates.speed, look.names, look.lags
    if names[member] in known and names[other] in known:
        return known[names[member]].value / max(known[names[other]].value, 1e-9), True
    theirs = _busy_rates(look, other)
    sure = theirs is not None and len(done) == 1
    if theirs is None:
        if look.load.behind[other] > KEEPS_UP:
            return None
        mine = lags.counted & (lags.owner == other)
        theirs = {
            lags.topics[code]: float(lags.inflow[mine & (lags.topic == code)].sum())
            for code in np.unique(lags.topic[mine]).tolist()
        }
    if not set(done) <= set(theirs):
        return None
    behind = (lags.owner == member) & (lags.low > 0) & ~look.aside & ~look.level
    behind &= look.late >= look.late[behind].max(initial=0.0) / 2
    late = {lags.topics[code] for code in lags.topic[behind].tolist()} & set(done)
    if not late:
        return None
    ratio = 1 / max(min(theirs[t] / done[t] for t in late), 1e-9)
    no_less = all(theirs[t] >= NO_LESS * rate for t, rate in done.items())
    return (ratio, sure) if no_less or ratio >= SLOW_AT_MOST else None


def _busy_rates(look: Look, member: int) -> dict[str, float] | None:
    """Records/s by topic that a member does when it is busy; None until known."""
    busy = look.state.busy.get(look.names[member])
    if busy is None or busy.intervals < SLOW_INTERVALS or busy.seconds <= 0:
        return None
    return {t: n / busy.seconds for t, n in busy.records.items() if n > 0} or None


def needed_members(look: Look) -> int | None:
    """How many members of usual speed the group's inflow takes, at most as many as it has partitions; None if unknown."""
    load = look.load
    if load.unit == "seconds" and np.isfinite(load.pressure).any():
        arriving: float | None = float(np.nansum(load.pressure * look.rates.speeds(look.names)))
    else:
        arriving = _arriving(look)
    if arriving is None:
        return None
    return int(min(np.ceil(arriving), max(1, int((look.lags.owner != NOBODY).sum()))))


def _arriving(look: Look) -> float | None:
    """Members' worth of work that arrives, where the costs of the topics cannot be told apart: of every topic that is late
    more arrives at each member than it has done of it while it was busy, whatever a record costs. None if that is not so. A
    topic that is perhaps late on purpose has no say against it."""
    lags, total = look.lags, 0.0
    use = lags.counted & ~look.aside & (lags.inflow > 0)
    for member in np.unique(lags.owner[use]).tolist():
        busy, mine = look.state.busy.get(look.names[member]), use & (lags.owner == member)
        if busy is None or busy.intervals < SLOW_INTERVALS or busy.seconds <= 0:
            return None
        late = {
            lags.topics[code]: not look.level[lags.topic == code].any()
            for code in lags.topic[mine & (lags.low > 0)].tolist()
        }
        flow = {
            lags.topics[code]: float(lags.inflow[mine & (lags.topic == code)].sum())
            for code in np.unique(lags.topic[mine]).tolist()
        }
        more = {t: flow[t] * busy.seconds > busy.records.get(t, 0.0) for t in late}
        if not any(more.values()) or any(sure and not more[t] for t, sure in late.items()):
            return None
        done = sum(busy.records.get(t, 0.0) for t in flow)
        if done <= 0:
            return None
        total += sum(flow.values()) * busy.seconds / done
    return total


def _no_members(look: Look) -> Iterator[Finding]:
    state, roster, policy = look.state, look.roster, look.policy
    if roster is None or roster.members or not state.empty_since or roster.type == "simple":
        return
    if look.now - state.members_at > DAY:
        return
    absent = look.now - state.empty_since
    grows = look.relevant & (look.lags.shown > policy.allowed_lag) & (look.lags.inflow > 0)
    if absent > max(policy.absent_after * 1000, 2 * state.longest_absence) and grows.any():
        evidence = {"absent_s": round(absent / 1000), "unread": int(look.lags.shown[grows].sum())}
        yield Finding(Verdict.NO_MEMBERS, (), _worst(grows, look.lags.shown), _worst_age(look), evidence)


def _idle_members(look: Look) -> Iterator[Finding]:
    if not look.by_member or look.now - look.state.generation_at < look.policy.idle_after * 1000:
        return
    idle = np.flatnonzero(look.load.partitions == 0)
    if len(idle):
        names = [look.names[at] for at in idle.tolist()]
        yield Finding(Verdict.IDLE_MEMBERS, tuple(idle.tolist()), (), 0.0, {"members": names[:50]})


FINDERS = (_unstable, _lost_data, _blocked, _standing, _spread, _no_members, _idle_members)


def _worst(which: Any, by: Floats | Any, limit: int = 200) -> tuple[int, ...]:
    rows = np.flatnonzero(which)
    return tuple(rows[np.argsort(-by[rows], kind="stable")][:limit].tolist())


def _named(look: Look, rows: tuple[int, ...], limit: int = 20) -> list[list[Any]]:
    return [list(look.lags.name(at)) for at in rows[:limit]]


def _holders(look: Look, rows: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(look.lags.owner[at]) for at in rows if look.lags.owner[at] != NOBODY))
