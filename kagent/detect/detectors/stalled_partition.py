"""stalled: one partition stopped although its member had time for it: a record that cannot be processed.

Holds where a partition has been passed over, or idle beside, for longer than `hold` and 1.5 times the longest such pause of the
group that ended by itself (``kagent.detect.standstill``: a sibling of the same topic has been given records that arrived after it
had already had a turn; waiting one's turn, priorities and sleep cannot produce that), or on time beside: its member goes on with
other topics, whose records do not wait, while others of its topic, if there are any, go on elsewhere. The only partition of a topic,
beside other topics, waits three times as long: it may be paused on purpose. A topic of several partitions that no member reads:
``kagent.detect.topic_rest``. A cadence that is unknown: an hour. In a group without members (`assign()`, Flink) three commits of the partition must be missing besides.
Holds too where several members failed at the record (``failed_again``): the partition has stood for longer than `hold`, its
former holder's other partitions went on elsewhere, and its new holder stands as well, for longer than its fetch may take, with
no other partition whose records waited at the change; or it stands through three generations, in which some come and go while
others stay, while all other partitions of its topic move (a client that crashes at the record and comes back), those beside it
apart once another client has got it; else, what waits beside it has moved within the latest three, or its turn may not have come.
Severity: page from `page_behind` on, else ticket. Where the member has done nothing else meanwhile, it may hang as well, so a restart comes
first and the record is only suspected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect import topic_rest
from kagent.detect.commit_gaps import LONGEST_GAP_S, USUAL_GAP_S
from kagent.detect.deployments import TURNS, crashes_in_turn
from kagent.detect.facts import at_stable, cadence_s, holders, named
from kagent.detect.fetch_processing import fetch_s
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.habits import habit
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND
from kagent.detect.state import Standing
from kagent.lag.chance import CLEARLY, NOT_CHANCE
from kagent.lag.measure import Flags
from kagent.text import partition_name, span

VERDICT = Verdict.STALLED
SPREAD = False
URGENCY = Urgency.STANDSTILL
MEMBERS_MAY_HELP = False
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.STABLE
SIGNS = BEHIND
REMEDIES = (Remedy.FIX_RECORD, Remedy.RESTART_MEMBER, Remedy.SUSPECT_RECORD)


@dataclass(frozen=True, slots=True)
class _Stands:
    """A partition that stands: for how long beside a member with time for it, and for how long it may, s."""

    length_s: float
    limit_s: float
    at: int
    clock: Standing


def find(model: GroupModel) -> Iterator[Finding]:
    """The partitions that stand beside a member with time for them, or a topic that no member reads."""
    stands = [s for s in _standing(model) if s.length_s > s.limit_s or failed_again(model, s.at, s.clock)]
    if stands:
        yield _finding(model, sorted(stands, key=lambda s: (-s.length_s, s.at)))
    else:
        yield from topic_rest.find(model)


def next_to_find(model: GroupModel) -> tuple[int, float, float] | None:
    """The place of the partition that has been set aside for longest, for how long it has stood beside a member with time for it, and
    after how long that is reported, s; None where none is set aside."""
    aside = [stands for stands in _standing(model) if model.excluded[stands.at]]
    longest = max(aside, key=lambda s: (s.length_s, s.at), default=None)
    return (longest.at, longest.length_s, longest.limit_s) if longest else None


def _standing(model: GroupModel) -> Iterator[_Stands]:
    """Partitions that stand."""
    place, held_up = model.lags.places, at_stable(model)
    for key, clock in model.state.standing.items():
        at = place.get(key)
        # At the last stable offset an open transaction is the cause, not the record; and of what is committed ahead nothing is unread now.
        if at is not None and not held_up[at] and model.relevant[at] and model.columns.waiting_since[at] > 0:
            yield _longest(model, at, clock)


def _longest(model: GroupModel, at: int, clock: Standing) -> _Stands:
    """By what its siblings were given, or, where that is for longer, by what other topics were."""
    stood = _Stands(clock.stood_s, limit_s(model, at), at, clock)
    if stood.length_s > stood.limit_s or clock.on_time_s <= clock.stood_s:
        return stood
    # The cheap bound first: the limit asks for log ends, and nearly every clock is far below.
    cheap = _limit_s(model, at, "on_time")
    limit = _topic_limit_s(model, at) if clock.on_time_s > cheap else cheap
    return _Stands(clock.on_time_s, limit, at, clock)


def _finding(model: GroupModel, stands: list[_Stands]) -> Finding:
    longest = stands[0]
    at, clock = longest.at, longest.clock
    rows = tuple(each.at for each in stands)
    offset = model.next_record(at)
    evidence = {
        "partitions": named(model, rows),
        # Not `or`: the first record of a partition has the offset 0.
        "offset": int(model.lags.committed[at]) if offset is None else offset,
        "stands_s": round((model.as_of - clock.since) / 1000),
        "passed_over_s": round(longest.length_s),
        "unread": int(model.lags.shown[at]),
        "other_members_failed": failed_again(model, at, clock),
        "handed_over": bool(clock.handed_over),
        "member_went_on": _went_on(model, at, clock),
        "only_partition": _alone(model, at),
        "whole_share": _whole_share(model, at, clock),
    }
    behind = float(model.age[0][at])
    return Finding(
        VERDICT,
        holders(model, rows),
        rows,
        behind,
        evidence,
        clock.since,
        evidence_s=longest.length_s,
        needed_s=longest.limit_s,
    )


def is_proven(finding: Finding) -> bool:
    """Whether a record is the cause for certain: its member had time for it, or several failed at it."""
    e = finding.evidence
    went_on = e.get("member_went_on") and not (e.get("only_partition") or e.get("whole_share"))
    return bool(went_on or e.get("other_members_failed"))


def _went_on(model: GroupModel, at: int, clock: Standing) -> bool:
    """Whether other partitions of its holder have moved while it stood; of a partition without a known holder it is taken for granted."""
    # aiokafka commits in the background, whether its application polls or hangs: that a member commits does not show that it works.
    # https://aiokafka.readthedocs.io/en/stable/consumer.html#offsets-and-consumer-position
    others = model.owner == model.owner[at]
    others[at] = False
    return bool(model.owner[at] < 0 or (model.lags.moved[others] > clock.since).any())


def failed_again(model: GroupModel, at: int, clock: Standing) -> bool:
    """Whether more than one member failed at the partition's next record."""
    if (model.as_of - clock.since) / 1000 <= model.policy.hold:
        return False
    return _crash_loop(model, at, clock) or _new_holder_stands(model, at, clock)


def stands_through(model: GroupModel) -> bool:
    """Whether a partition stands while the group rebalances again and again and the others move: a record may be the cause."""
    place = model.lags.places
    return any(
        key in place and _crash_loop(model, place[key], clock) for key, clock in model.state.standing.items()
    )


def _others(model: GroupModel, at: int) -> Flags:
    """Other partitions of the topic with something unread lately."""
    others = model.columns.same_topic(at) & (model.lags.inflow > 0)
    others[at] = False
    return others


def _crash_loop(model: GroupModel, at: int, clock: Standing) -> bool:
    # At each restart a client fetches anew, and a partition may have to wait for its turn again and again.
    if not crashes_in_turn(model):
        return False
    others = _others(model, at)
    if clock.handed_over:  # a member that crashes at a record leaves its other partitions unserved too
        others &= model.owner != model.owner[at]
    elif _had_no_turn(model, at):
        return False
    # By time, so that only rebalances count that the partition stood through.
    generations = sum(time > clock.since for time, _ in model.state.generations)
    # A member that leaves and comes back though it did not hold the partition did not fail at its record.
    failed = generations - TURNS * clock.others_left
    return bool(failed >= NOT_CHANCE and others.any() and (model.lags.moved[others] > clock.since).all())


def _had_no_turn(model: GroupModel, at: int) -> bool:
    """Whether its holder may not have come to it in the lives that it had: something else of it waits as well, and has not moved in the latest
    three of them either."""
    beside = model.columns.same_member(at) & (model.columns.waiting_since > 0)
    beside[at] = False
    latest = [time for time, _ in model.state.generations][-NOT_CHANCE:]
    return model.owner[at] >= 0 and bool((model.lags.moved[beside] < min(latest, default=0)).any())


def _new_holder_stands(model: GroupModel, at: int, clock: Standing) -> bool:
    holder = int(model.owner[at])
    if not clock.handed_over or holder < 0:
        return False
    mine = model.columns.same_member(at)
    # It may have fetched all that waits, and commit nothing until that is done.
    needed_s = max(USUAL_GAP_S, fetch_s(model, np.flatnonzero(mine), holder))
    if (model.as_of - clock.handed_over) / 1000 < needed_s:
        return False
    if _also_waited(model, mine, clock.handed_over) != [at]:
        return False
    moved_on = _others(model, at) & (model.owner != holder) & (model.lags.moved > clock.handed_over)
    return bool((model.lags.moved[mine] <= model.as_of - USUAL_GAP_S * 1000).all() and moved_on.any())


def _also_waited(model: GroupModel, rows: Flags, handed_over: int) -> list[int]:
    """Those of these partitions whose next record waited for a minute already when one was handed over: where there are several,
    it is unknown at which of them the new holder fails."""
    since = model.columns.waiting_since
    return np.flatnonzero(rows & (since > 0) & (since < handed_over - USUAL_GAP_S * 1000)).tolist()


def limit_s(model: GroupModel, at: int) -> float:
    """For how long this partition may be passed over before a record is blamed, s."""
    return _limit_s(model, at, "passed_over", "idle")


def _topic_limit_s(model: GroupModel, at: int) -> float:
    """For how long this partition may stand beside a member that is on time with other topics, s: it may read one partition's fetch in
    a thread of its own."""
    return max(_limit_s(model, at, "on_time"), fetch_s(model, np.array([at]), int(model.owner[at])))


def _limit_s(model: GroupModel, at: int, *kinds: str) -> float:
    usual = max(habit(model.state.habits, kind, model.now) for kind in kinds)
    limit = max(model.policy.hold, CLEARLY * usual)
    # Of one partition, nothing tells a topic that is paused on purpose from a record that cannot be processed.
    return (NOT_CHANCE if _alone(model, at) else 1) * max(limit, _unknown_s(model, at))


def _unknown_s(model: GroupModel, at: int) -> float:
    """What its commits do not show, s."""
    cadence = cadence_s(model, model.lags.topics[model.lags.topic[at]])
    if cadence is None:
        return LONGEST_GAP_S
    # Each partition of a group without members may have a reader that commits at times of its own.
    return 0.0 if model.by_member else NOT_CHANCE * cadence


def _alone(model: GroupModel, at: int) -> bool:
    """Whether it is the only partition of its topic, on a member that reads other topics too."""
    partitions, held = model.columns.same_topic(at), model.columns.same_member(at)
    return bool(np.count_nonzero(partitions) == 1 and np.count_nonzero(held) > 1)


def _whole_share(model: GroupModel, at: int, clock: Standing) -> bool:
    """Whether all that its member reads of the topic, several partitions, has stood since the same minute: no record does that."""
    mine = model.columns.same_member(at) & model.columns.same_topic(at)
    waits = mine & (model.columns.waiting_since > 0)
    together = model.lags.moved[mine] <= clock.since + USUAL_GAP_S * 1000
    return bool(model.by_member and np.count_nonzero(waits) > 1 and together.all())


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    if e.get("whole_topic"):
        return topic_rest.reason(finding)
    topic, partition = model.lags.name(finding.rows[0])
    named_record = model.next_record(finding.rows[0]) is not None
    stuck = f"stuck at offset {e['offset']}" if named_record else "without a commit"
    return (
        f"{partition_name(topic, partition)} has been {stuck} for {span(e['stands_s'])} {_beside(finding)}."
    )


def _beside(finding: Finding) -> str:
    """What else happened meanwhile, and what that means."""
    if finding.evidence["other_members_failed"]:
        where = (
            "whichever member holds it"
            if finding.evidence["handed_over"]
            else "through restarts of its member"
        )
        return f"{where}, while other partitions move: most likely a record that cannot be processed"
    if finding.evidence["only_partition"] and finding.evidence["member_went_on"]:
        return "while its member went on with other topics: either its application pauses the topic, or the record cannot be processed"
    if finding.evidence["whole_share"] and finding.evidence["member_went_on"]:
        return "like all that its member reads of the topic, while it went on with other topics: what reads the topic there hangs, or pauses"
    if finding.evidence["member_went_on"]:
        return "while its member went on with newer records of other partitions: most likely a record that cannot be processed"
    return "while its member goes on committing: either the member hangs, or the record cannot be processed"
