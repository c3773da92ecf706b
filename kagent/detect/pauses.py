"""How long a group's members pause when partitions change hands, learned from their own gaps between commits.

A member that was busy before has one gap between commits across the change; what that gap is longer than its usual one is the
pause: the members' last polls, the coordinator's round trips, what the application does at a revocation, and a slow first poll.
Eager members all stop; cooperative ones and those of KIP-848 go on, and their gaps say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from kagent.detect.capacity import RECENT_MS
from kagent.detect.state import JudgeState
from kagent.lag.commits import GAPS
from kagent.policy import Policy

USUAL_S = Policy().cadence
"""Until one was seen, ten seconds: the members miss one commit, of which the time is not known either. Two heartbeats of KIP-848 take as long
(5 s by default), and groups of fast pollers with the eager protocol."""


def learned(state: JudgeState, committed_at: Mapping[str, int]) -> JudgeState:
    """The state after a look at when members committed last (ms); the same object where nothing was learned."""
    if not state.stopping:
        return state
    waiting, found = dict(state.stopping), list(state.pauses_s)
    for name, before in state.stopping.items():
        after, known = committed_at.get(name), state.members.get(name)
        # Who commits later than in ten minutes did not pause for the rebalance alone.
        if after is None or known is None or not known.gaps or after - before > RECENT_MS:
            del waiting[name]
        elif after > state.stopped_at:
            del waiting[name]
            # The gap across the change, less the gap that there would have been anyway.
            found.append(round(max(0.0, after - before - median(known.gaps)) / 1000, 1))
    if len(waiting) == len(state.stopping):
        return state
    return replace(state, stopping=waiting, pauses_s=tuple(found[-GAPS:]))


def usual_s(state: JudgeState) -> float:
    """The pause of the group's next rebalance, s: the median of those seen, or what is usual elsewhere."""
    return median(state.pauses_s) if state.pauses_s else USUAL_S
