"""Partitions and members that stand: passed over, idle beside, silent.

Most clients serve one partition's fetch after another, so a partition that waits while its member is busy is no evidence of a
bad record. It is *passed over* only where a sibling of the same topic has been given records that arrived after that sibling
had already had a turn. All clocks run on commits of the member, or on moves of its peers, so blind time adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.evidence import LatenessLimits
from kagent.detect.finding import ROWS
from kagent.detect.observed_columns import ObservedColumns
from kagent.detect.state import JudgeState, MemberState, Standing
from kagent.lag.chance import NOT_CHANCE
from kagent.lag.measure import Flags, Lags, Longs, held_up
from kagent.lag.membership import NOBODY, client_of
from kagent.lag.time_units import MINUTE_MS
from kagent.policy import Policy


def advance(
    columns: ObservedColumns, state: JudgeState, as_of: int, first_commit: int, policy: Policy
) -> JudgeState:
    """The state with the clocks of partitions, members and the group that stand. ``first_commit``: of the group, ms."""
    rows = standing_rows(columns).tolist()
    names = dict(zip(rows, columns.lags.keys(rows), strict=True))
    clocks = _committed_ahead(columns, state.standing, as_of)
    clocks |= _clocks(columns, state, names, as_of, policy.allowed_lag)
    # Longer than a reassignment takes to settle it was given back, not handed over: a batch job ended, its members left.
    if as_of - state.assigned_at <= policy.settle * 1000:
        clocks = between_holders(columns.lags, columns.units.owner, state.standing) | clocks
    new = replace(state, standing=clocks)
    return _advance_rest(
        columns, _advance_silence(columns, new, LatenessLimits.of(policy)), as_of, first_commit
    )


def excluded_from(columns: ObservedColumns, state: JudgeState, policy: Policy) -> Flags:
    """Partitions that have been passed over, or idle or on time beside, for so long that they say nothing of their member's work: as long as
    another member must fall behind."""
    out = np.zeros(len(columns.lags), bool)
    if not state.standing:
        return out
    limit = LatenessLimits.of(policy).growing_need
    place = columns.lags.places
    # Over the few clocks, not over all partitions: in a healthy group there is none.
    for key, clock in state.standing.items():
        if key in place and max(clock.stood_s, clock.on_time_s) > limit:
            out[place[key]] = True
    return out


def waiting_as_known(columns: ObservedColumns, state: JudgeState) -> ObservedColumns:
    """The columns in which what stands waits since its clock began: deleting its oldest records makes it wait no less."""
    if not state.standing:
        return columns
    waits, moved, place = columns.waiting_since.copy(), columns.lags.moved, columns.lags.places
    for key, clock in state.standing.items():
        at = place.get(key)
        if at is not None and waits[at] > 0 and moved[at] <= clock.since:
            waits[at] = min(int(waits[at]), clock.since)
    return replace(columns, waiting_since=waits)


def moved_at(columns: ObservedColumns) -> Longs:
    """When a partition of each member last made progress, ms."""
    out = np.zeros(columns.members, np.int64)
    held = columns.owner >= 0
    np.maximum.at(out, columns.owner[held], columns.lags.moved[held])
    return out


def waits_since(columns: ObservedColumns) -> Longs:
    """Since when each member has had something unread and not moved, ms; 0 where it has nothing unread."""
    # The greatest integer stands for "nothing unread", so that np.minimum.at can find the least.
    oldest = np.full(columns.members, np.iinfo(np.int64).max)
    held = (columns.owner >= 0) & (columns.waiting_since > 0)
    np.minimum.at(oldest, columns.owner[held], columns.waiting_since[held])
    return np.where(oldest < np.iinfo(np.int64).max, np.maximum(oldest, moved_at(columns)), 0)


def _advance_silence(columns: ObservedColumns, state: JudgeState, limits: LatenessLimits) -> JudgeState:
    # Without a second member nothing tells a hang from a group that sleeps.
    if columns.members < 2:
        return state
    moved = moved_at(columns)
    return replace(
        state, members={**state.members, **_silences(columns, state.members, moved, limits.on_time)}
    )


def _silences(
    columns: ObservedColumns, before: Mapping[str, MemberState], moved: Longs, on_time_s: float
) -> dict[str, MemberState]:
    """Those members whose clock of silence runs on or ends."""
    since, members = waits_since(columns), dict[str, MemberState]()
    # The latest move of any other member is the group's latest, or the second latest for the member that made that one.
    first, second = np.sort(moved)[-1], np.sort(moved)[-2]
    for at, name in enumerate(columns.units.names):
        others = int(second if moved[at] == first else first)
        known = before.get(name, MemberState())
        quiet_s = _seen_s(columns, int(since[at]), others)
        if since[at] <= 0 or quiet_s < max(on_time_s, NOT_CHANCE * columns.gap[at]):
            if known.silent_s:
                members[name] = replace(known, silent_s=0.0, silent_seen=0)
            continue
        # After a sleep of the whole group, the first that wakes would otherwise make all others silent for the length of the sleep.
        cap = max(USUAL_GAP_S, NOT_CHANCE * float(columns.gap.max()))
        more_s = _seen_s(columns, known.silent_seen or int(since[at]), others)
        members[name] = replace(known, silent_s=silence(known.silent_s, more_s, cap), silent_seen=others)
    return members


def _advance_rest(columns: ObservedColumns, state: JudgeState, as_of: int, first_commit: int) -> JudgeState:
    """The whole group: how long it has been at rest, or since when it has gone on."""
    waits = waits_since(columns)
    began = int(waits[waits > 0].min(initial=np.iinfo(np.int64).max))
    moved = int(columns.lags.moved[columns.relevant].max(initial=0))
    # Without members nothing can move: that is an absence, and no rest.
    last = max(moved, state.returned_at)
    known = state if state.rest_since and last <= state.rest_since else None
    # A rest lasts until something moves: deleting the oldest records that wait makes it no shorter.
    since = min([max(began, last), *([known.rest_since] if known else [])])
    unseen_s = _unseen_s(columns, known, since)
    rest = max(0.0, (as_of - since) / 1000 - unseen_s) if (waits > 0).any() else 0.0
    going = state.going_since or first_commit
    if rest >= USUAL_GAP_S:
        return replace(state, at_rest_s=rest, rest_since=since, rest_unseen_s=unseen_s, going_since=going)
    if not state.at_rest_s:
        return state if going == state.going_since else replace(state, going_since=going)
    return replace(state, at_rest_s=0.0, rest_since=0, rest_unseen_s=0.0, going_since=moved)


def _unseen_s(columns: ObservedColumns, known: JudgeState | None, since: int) -> float:
    """For how long the cluster could not be seen in a rest that began at ``since`` (ms), so that no member could commit; ``known``: the state
    if it goes on."""
    before_s = known.rest_unseen_s if known else 0.0
    # Up to here it is counted already, and a rest may outlast what the log ends remember of their gaps.
    counted = known.rest_since + 1000 * (known.at_rest_s + before_s) if known else since
    return before_s + _away_s(columns, counted, math.inf)


def _seen_s(columns: ObservedColumns, since: int, until: int) -> float:
    """How much of this time (ms) the cluster could be seen, so that a member could commit, s."""
    return max(0.0, (until - since) / 1000 - _away_s(columns, since, until))


def _away_s(columns: ObservedColumns, since: float, until: float) -> float:
    """How much of this time (ms) the cluster could not be seen, s."""
    return sum(max(0.0, min(until, b) - max(since, a)) for a, b in columns.unseen) / 1000


def _clocks(
    group: ObservedColumns, state: JudgeState, names: Mapping[int, str], as_of: int, allowed: int
) -> dict[str, Standing]:
    """The clocks of all partitions that stand with something unread; ``names``: place → key, of those places; ``as_of``: ms; ``allowed``:
    records that count as caught up."""
    if not names:
        return {}
    members, open_ = group.units.names, held_up(group.lags, allowed)
    return {
        key: _held_by(
            _begun(group, at) if open_[at] else _clock(group, at, state.standing.get(key), state.assigned_at),
            members[group.owner[at]],
            as_of,
        )
        for at, key in names.items()
    }


def _committed_ahead(
    group: ObservedColumns, known: Mapping[str, Standing], as_of: int
) -> dict[str, Standing]:
    """The clocks of partitions that have moved nowhere and of which all is committed for a moment: a client that retries a record may
    commit ahead of it, up to the log end, and come back."""
    lags, places, long_ago = group.lags, group.lags.places, as_of - USUAL_GAP_S * 1000
    return {
        key: clock
        for key, clock in known.items()
        if (at := places.get(key)) is not None
        and group.waiting_since[at] <= 0
        and lags.moved[at] <= clock.since
        and lags.start[at] <= lags.committed[at]
        and clock.seen >= long_ago
    }


def _begun(group: ObservedColumns, at: int) -> Standing:
    """The clock of a partition that a transaction holds up: its member cannot go on, and what that shows is over once it ends."""
    now = int(group.committed_at[group.owner[at]])
    return Standing(now, seen=now)


def _held_by(clock: Standing, holder: str, as_of: int) -> Standing:
    if clock.holder == holder:
        return clock
    # A row of an older version names no holder: that is no other one, nor is the next process of the same client.
    another = clock.holder and client_of(clock.holder) != client_of(holder)
    handed_over = as_of if another else clock.handed_over
    return replace(clock, holder=holder, handed_over=handed_over)


def between_holders(
    lags: Lags, owner: np.ndarray[tuple[int, ...], np.dtype[np.int32]], known: Mapping[str, Standing]
) -> dict[str, Standing]:
    """The clocks of partitions that no member holds and that have not moved: a rebalance takes a partition from one member before
    it gives it to the next (KIP-429, KIP-848), and what the first showed is not over by that."""
    places = lags.places
    return {
        key: clock
        for key, clock in known.items()
        if key in places and owner[places[key]] == NOBODY and lags.moved[places[key]] <= clock.since
    }


def standing_rows(group: ObservedColumns) -> Longs:
    """Places of relevant partitions with unread records that did not move at their member's latest commit, or for a minute while
    others committed: a member that hangs commits nothing, and its partitions may be handed to the next one."""
    lags, held = group.lags, group.owner >= 0
    latest = np.zeros(len(lags), np.int64)
    latest[held] = group.committed_at[group.owner[held]]
    # By the clock of the group's commits, not by this machine's: time in which kagent was blind does not count.
    long_ago = int(group.committed_at.max(initial=0)) - int(USUAL_GAP_S * 1000)
    stands = (lags.moved < latest) | (_since(group) < long_ago)
    rows = np.flatnonzero(group.relevant & held & (group.waiting_since > 0) & stands)
    # Those that stand longest: the row goes to a changelog topic at each change: a group of 10,000 stopped partitions must not write all their clocks.
    return rows[np.argsort(_since(group)[rows], kind="stable")][:ROWS]


def _since(group: ObservedColumns) -> Longs:
    return np.maximum(group.lags.moved, group.waiting_since)


def _clock(group: ObservedColumns, at: int, known: Standing | None, assigned_at: int) -> Standing:
    now = int(group.committed_at[group.owner[at]])
    # When the record arrived is less exactly known once log-end samples are thinned out: the clock keeps its first answer.
    still = known is not None and group.lags.moved[at] <= known.since
    since = known.since if known is not None and still else int(_since(group)[at])
    clock = known if known is not None and still else Standing(since, seen=max(since, 0))
    # Only a newer commit of the member advances a clock: an evaluation that is repeated adds nothing, nor does blind time.
    if now <= clock.seen:
        return clock
    beside = group.same_member(at)
    beside[at] = False
    # Of the same topic: an application may read one topic before another on purpose (pause() and resume()), never one record.
    siblings = beside & group.same_topic(at)
    # Java hands out the fetch of one partition to its end before it begins the next, so waiting for a turn is healthy:
    # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/clients/consumer/internals/FetchCollector.java
    # What they did beside another member is no turn of theirs.
    turn = clock.turn or _first_turn(group, siblings, max(since, assigned_at))
    passed = _passed_over_s(group, siblings, turn) if turn else 0.0
    step_s = (now - clock.seen) / 1000
    idle, on_time = _is_idle(group, at, beside, since), _is_on_time(group, at, since, clock.seen)
    rests = on_time and _topic_rests(group, at, clock.seen)
    on_time = on_time and not rests and _reads_topic(group, at, since, now)
    # The clock never goes back: the siblings' oldest records are known less exactly once samples are thinned out.
    return replace(
        clock,
        turn=turn,
        passed_over_s=max(passed, clock.passed_over_s),
        idle_s=clock.idle_s + idle * step_s,
        on_time_s=clock.on_time_s + on_time * step_s,
        topic_rest_s=clock.topic_rest_s + step_s if rests else 0.0,
        seen=now,
    )


def _is_idle(group: ObservedColumns, at: int, beside: Flags, since: int) -> bool:
    """Whether a partition's member has nothing else to do, and goes on committing: what is ``beside`` it is read. Where it holds nothing else of
    the topic, the topic must be read elsewhere."""
    if (group.waiting_since[beside] > 0).any():
        return False
    siblings = beside & group.same_topic(at)
    return bool(siblings.any()) or _reads_topic(group, at, since, int(group.committed_at[group.owner[at]]))


def _is_on_time(group: ObservedColumns, at: int, since: int, before: int) -> bool:
    """Whether a partition's member goes on with other topics, and nothing of all that it goes on with is unread from before its last commit
    but one, ``before`` (ms)."""
    owner, now = group.owner[at], int(group.committed_at[group.owner[at]])
    # After a longer time without a commit it comes back from a rest.
    if now - before > 1000 * max(USUAL_GAP_S, NOT_CHANCE * float(group.gap[owner])):
        return False
    goes_on = group.same_member(at) & (group.lags.moved > since)
    waiting = group.waiting_since[goes_on]
    late = ((waiting > 0) & (waiting < before)).any()
    other_topics = (group.lags.topic[goes_on] != group.lags.topic[at]).any()
    return bool(other_topics and not late)


def _topic_rests(group: ObservedColumns, at: int, before: int) -> bool:
    """Whether no member reads the partition's topic: records wait in others of it as well, and none has moved since ``before`` (ms)."""
    same = group.same_topic(at)
    waiting = np.count_nonzero(same & (group.waiting_since > 0))
    # Of one partition alone, nothing tells a topic that no member reads from a record that cannot be processed.
    return bool(waiting > 1 and (group.lags.moved[same] <= before).all())


def _reads_topic(group: ObservedColumns, at: int, since: int, now: int) -> bool:
    """Whether the group reads the partition's topic, for all that is known: another partition of it, of whichever member, has been given records that
    arrived later, or there is no other. Of a topic that is read late on purpose, as one of retries, none is."""
    others = group.same_topic(at)
    others[at] = False
    if not others.any():
        return True
    waiting, came = group.waiting_since[others], (group.rates[:, others] > 0).any(axis=0)
    # Where nothing is unread, all that came in the known minutes has been given.
    all_given = came & (now - since > len(group.rates) * MINUTE_MS)
    return bool(np.where(waiting > 0, waiting > since + USUAL_GAP_S * 1000, all_given).any())


def _first_turn(group: ObservedColumns, siblings: Flags, since: int) -> int:
    moved = group.lags.moved[siblings]
    later = moved[moved > since]
    return int(later.min()) if len(later) else 0


def _passed_over_s(group: ObservedColumns, siblings: Flags, turn: int) -> float:
    """For how long siblings have been given records that arrived after one of them had had its turn. A sibling with nothing
    unread has been given all that came until it moved last."""
    oldest = group.waiting_since[siblings]
    # Not until now: to an empty partition nothing has been given, however long ago it was its turn.
    served = np.where(oldest > 0, oldest, group.lags.moved[siblings])
    return max(0.0, (int(served.max(initial=0)) - turn) / 1000)


def silence(before_s: float, more_s: float, cap_s: float) -> float:
    """For how long a member has not moved while others did, s: what it was before, and by how much the others' latest move is later than
    the one that was seen (or than its own wait began, at first). One long gap is a sleeping group's: it counts at most ``cap_s``."""
    return before_s + min(more_s, cap_s)


def reassigned(clock: Standing) -> Standing:
    """The clock of a partition after a change of the assignment: siblings must have their turn anew. The time that former holders had for it goes on to
    count, or a deployment would hide a record that none of them can process."""
    return replace(clock, turn=0, passed_over_s=0.0, idle_s=0.0, on_time_s=0.0, before_s=clock.stood_s)
