"""stuck_member: a member is in the group and commits nothing of what waits for it, while others go on.

Holds where none of a member's unread partitions has moved for longer than 0.85 of `hold`, three of its commit gaps, 1.5 times
the longest such silence that ended by itself, and 1.5 times what its backlog takes at its speed, at most an hour of that: a
client without a bound on its poll commits nothing until a whole fetch is done (215–490 s were measured). Time in which no
other member moves does not count. A whole group at rest is stuck where it went on for three times as long before, without a
rest of its own habit. A group of one member, or of unknown cadence: an hour.
Severity: page from `page_behind` on, else ticket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.capacity import USABLE
from kagent.detect.commit_gaps import LONGEST_GAP_S
from kagent.detect.facts import at_stable, cadence_s, worst
from kagent.detect.fetch_processing import fetch_left_s, whole_fetch_s
from kagent.detect.finding import Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.habits import RESTS_UNKNOWN_S, habit
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND
from kagent.detect.standstill import waits_since
from kagent.lag.chance import CLEARLY, NOT_CHANCE
from kagent.lag.log_ends import PAUSE
from kagent.lag.measure import Longs
from kagent.text import counted, shown, span

VERDICT = Verdict.STUCK_MEMBER
SPREAD = False
URGENCY = Urgency.STANDSTILL
MEMBERS_MAY_HELP = False
MOVES_CURE = False
ONE_MEMBER = True
MEMBER_REMARK = "It makes no progress."
ASKS = Asks.ASSIGNMENT
SIGNS = BEHIND
REMEDIES = (Remedy.RESTART_MEMBER, Remedy.SUSPECT_RECORD)
HOLD_SHARE = USABLE
"""By default clients leave the group after 300 s in one poll (``max.poll.interval.ms`` of Java, librdkafka, aiokafka and
kafka-python, KIP-62), as long as ``hold``: the silence would begin anew at the next holder, which hangs at the same record, and never
last long enough. The rest is for a commit gap, a tick and the question to the coordinator."""


def find(model: GroupModel) -> Iterator[Finding]:
    """The silent members, or the whole group at rest. Who has no members is no_members' business."""
    if model.roster is not None and not model.roster.members and model.roster.type != "simple":
        return
    silent = [at for at in range(len(model.names)) if _silent(model, at)]
    if silent:
        yield _finding(model, silent, whole=False)
    elif _at_rest(model):
        waits = model.relevant & (model.columns.waiting_since > 0) & ~at_stable(model)
        codes = np.unique(model.owner[waits & (model.owner >= 0)]).tolist()
        if waits.any():
            yield _finding(model, codes, whole=True)


def _silent(model: GroupModel, at: int) -> bool:
    rows = model.relevant & (model.owner == at) & (model.columns.waiting_since > 0)
    length = model.member_state(at).silent_s
    # `hold` first: it is cheap, and limit_s interpolates log ends for the backlog.
    return length > _hold_s(model) and length > limit_s(model, at) and not (rows & at_stable(model)).any()


def _hold_s(model: GroupModel) -> float:
    return HOLD_SHARE * model.policy.hold


def limit_s(model: GroupModel, at: int) -> float:
    """For how long this member may be silent, s."""
    rows = np.flatnonzero(model.relevant & (model.owner == at))
    limit = max(
        _hold_s(model),
        NOT_CHANCE * float(model.columns.gap[at]),
        CLEARLY * habit(model.state.habits, "silent", model.now),
        fetch_left_s(model, rows, at),
    )
    unknown = len(model.names) < 2 or None in _cadences_s(model, rows)
    return max(limit, LONGEST_GAP_S) if unknown else limit


def _cadences_s(model: GroupModel, rows: Longs) -> list[float | None]:
    """Of each topic of these partitions."""
    return [cadence_s(model, topic) for topic in sorted(model.topics_of(rows))]


def _at_rest(model: GroupModel) -> bool:
    rest, usual = model.state.at_rest_s, habit(model.state.habits, "rest", model.now)
    limit = max(model.policy.hold, NOT_CHANCE * float(model.columns.gap.max(initial=0.0)), CLEARLY * usual)
    if rest <= limit:
        return False
    rows = np.flatnonzero(model.relevant)
    speed = float(model.capacity.rate.mid.sum())
    # Perhaps one large poll of a client that commits nothing until it is done (franz-go, kafkajs).
    fetch = speed <= 0 or rest < whole_fetch_s(model, rows, speed)
    # A single commit long ago does not show that the group went on since.
    if fetch or not any(_cadences_s(model, rows)):
        return rest > RESTS_UNKNOWN_S
    before = (model.as_of - model.state.going_since) / 1000 - rest
    # Of the limit, not of the rest, which grows: what was reported would be taken back while nothing has moved.
    # A group that went on without a rest for three times as long as it may rest has no habit of resting.
    return rest > RESTS_UNKNOWN_S or before >= NOT_CHANCE * limit


def _finding(model: GroupModel, members: list[int], whole: bool) -> Finding:
    lags = model.lags
    mine = model.relevant & np.isin(model.owner, members) & (model.columns.waiting_since > 0)
    rows = worst(mine, lags.shown)
    members = sorted(members, key=lambda m: -int(lags.shown[mine & (model.owner == m)].sum()))
    # Of each member, not of each partition: one that worked until a minute ago has partitions whose turn had not come for longer.
    since = waits_since(model.columns)[members]
    if whole and model.state.rest_since:
        since = np.minimum(since, model.state.rest_since)
    evidence = {
        "members": [model.names[m] for m in members][:50],
        "whole_group": whole,
        # The shortest: the sentence is about all of them.
        "stands_s": round((model.as_of - int(since.max(initial=0))) / 1000),
        # From the first sample that tells of them.
        "at_least": bool(since.max(initial=0) <= model.known_since(np.flatnonzero(mine)) + PAUSE),
        "unread": int(lags.shown[mine].sum()),
    }
    behind = float(model.age[0][mine].max(initial=0.0))
    return Finding(VERDICT, tuple(members), rows, behind, evidence, int(since.min(initial=model.now)))


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    if e["whole_group"]:
        return f"No member has made progress for {_at_least(e, e['stands_s'])}; {e['unread']:,} records wait."
    who, more = shown(e["members"][0]), len(e["members"]) - 1
    if not model.by_member:
        # The coordinator has no members of such a group, so none can be in it.
        others = f" and {counted(more, 'more reader')}" if more else ""
        return (
            f"{who}{others} committed nothing new for {_at_least(e, e['stands_s'])} though records wait ({_at_least(e, finding.behind)} behind), while other "
            "readers of the group went on."
        )
    others = f" and {counted(more, 'more member')} are" if more else " is"
    return (
        f"{who}{others} in the group but committed nothing new for {_at_least(e, e['stands_s'])} though records wait ({_at_least(e, finding.behind)} behind), "
        f"while other members went on: {'they hang, or their' if more else 'it hangs, or its'} commits fail."
    )


def _at_least(evidence: Mapping[str, Any], seconds: float) -> str:
    """This long; at least so, where it had lasted before the first log end was known."""
    return f"at least {span(seconds)}" if evidence["at_least"] else span(seconds)
