"""A topic that no member reads while the group goes on with others: its application pauses it, or what processes it hangs.

An application may pause a topic on purpose, as one of retries, and its first rest tells nothing of how long that lasts. It is reported
like a rest of the whole group: after an hour and a half, or earlier where the group went on for three times as long without
such a rest. No record is blamed: the topic's partitions stop together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kagent.contract.recommendation import Verdict
from kagent.detect.facts import at_stable, holders, named, worst
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.habits import RESTS_UNKNOWN_S, habit
from kagent.lag.chance import CLEARLY, NOT_CHANCE
from kagent.lag.measure import Flags
from kagent.text import counted, shown, span


def find(model: GroupModel) -> Iterator[Finding]:
    """The topic that has rested for longest, if that is for too long."""
    rests = {code: rest_s for code, rest_s in _rests(model).items() if rest_s > limit_s(model, rest_s)}
    if rests:
        code = max(rests, key=lambda c: rests[c])
        yield _finding(model, code, rests[code], limit_s(model, rests[code]))


def limit_s(model: GroupModel, rest_s: float) -> float:
    """For how long a topic may rest, s, of one that has rested for ``rest_s``."""
    usual = CLEARLY * habit(model.state.habits, "topic_rest", model.now)
    before_s = (model.as_of - model.state.going_since) / 1000 - rest_s
    known = before_s >= NOT_CHANCE * RESTS_UNKNOWN_S
    return max(NOT_CHANCE * model.policy.hold if known else RESTS_UNKNOWN_S, usual)


def _rests(model: GroupModel) -> dict[int, float]:
    """Code of a topic → for how long none of its partitions has moved, s."""
    place, lags, out = model.lags.places, model.lags, dict[int, float]()
    for key, clock in model.state.standing.items():
        if clock.topic_rest_s > 0 and key in place:
            code = int(lags.topic[place[key]])
            out[code] = max(out.get(code, 0.0), clock.topic_rest_s)
    return out


def _waiting(model: GroupModel, code: int) -> Flags:
    waits = model.relevant & (model.columns.waiting_since > 0) & ~at_stable(model)
    return np.asarray(waits & (model.lags.topic == code))


def _finding(model: GroupModel, code: int, rest_s: float, limit: float) -> Finding:
    waits = _waiting(model, code)
    rows = worst(waits, model.lags.shown)
    evidence = {
        "topic": model.lags.topics[code],
        "partitions": named(model, rows),
        "whole_topic": True,
        "stands_s": round(rest_s),
        "unread": int(model.lags.shown[waits].sum()),
    }
    behind = float(model.age[0][waits].max(initial=0.0))
    since = model.as_of - round(rest_s * 1000)
    members = holders(model, rows)
    return Finding(Verdict.STALLED, members, rows, behind, evidence, since, evidence_s=rest_s, needed_s=limit)


def reason(finding: Finding) -> str:
    """The sentence of the message."""
    e = finding.evidence
    return (
        f"No partition of {shown(e['topic'])} has moved for {span(e['stands_s'])}, though {counted(e['unread'], 'record')} wait, while the members go on "
        "with other topics: their application pauses it, or what processes it hangs."
    )
