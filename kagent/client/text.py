"""A recommendation as a person wants to read it: who is overloaded, what to do, what it gains. Plain text."""

from __future__ import annotations

from kagent.contract.recommendation import Recommendation, Resolution, State, Status
from kagent.text import shown, span

SILENT_MS = 120_000
"""State messages come every 30 s: after so long without one, nobody judges."""


def number(value: float | None, unit: str = "") -> str:
    """``1.83``, or ``?`` where it is unknown."""
    return "?" if value is None else f"{value:.2f}{unit}"


def age(ms: int) -> str:
    """How long, as a person says it."""
    return span(max(0, ms) / 1000)


def best(rec: Recommendation) -> str:
    """The best action, and whether it can be done where that is not a plain yes."""
    if not rec.actions:
        return "none"
    action = rec.actions[0]
    return (
        action.type.value + {"yes": "", "no": " (not feasible)", "unknown": " (if feasible)"}[action.feasible]
    )


def headline(rec: Recommendation, now: int | None = None) -> str:
    """One line: status, group, verdict, severity, skew now → after, best action, and with ``now`` (ms) its age."""
    skew = f"skew {number(rec.skew.now)}" + (
        f" → {number(rec.skew.after)}" if rec.skew.after is not None else ""
    )
    how = rec.resolution.value if rec.status is Status.RESOLVED and rec.resolution else best(rec)
    stale = " (stale: kagent is blind here)" if rec.stale else ""
    if now is not None:
        until = rec.as_of if rec.status is Status.RESOLVED else now
        stale = f"  {'open' if rec.status is not Status.RESOLVED else 'was open'} for {age(until - rec.opened_at)}{stale}"
    return f"{rec.status.value.upper():<10} {shown(rec.group)}  {rec.verdict.value}  {rec.severity.value}  {skew}  {how}{stale}"


def story(rec: Recommendation) -> list[str]:
    """The lines under the headline."""
    lines = [rec.reason]
    if rec.status is Status.RESOLVED:
        return lines + _outcome(rec)
    loads = sorted(rec.members, key=lambda m: -(m.work_now or 0))[:5]
    for member in loads:
        after = f" → {_work(member.work_after, rec)}" if member.work_after is not None else ""
        lines.append(
            f"  {shown(member.member)}: {_counted(member.partitions, 'partition')}, {_work(member.work_now, rec)}{after}"
        )
    for move in rec.moves[:8]:
        source = shown(move.source) if move.source else "nobody"
        lines.append(f"  move {shown(move.topic)}-{move.partition} from {source} to {shown(move.to)}")
    if rec.move_count > 8:
        lines.append(f"  … and {rec.move_count - 8} more moves")
    lines += [f"  {action.type.value} ({action.feasible}): {action.how}" for action in rec.actions[:3]]
    return lines


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _work(work: float | None, rec: Recommendation) -> str:
    if work is None:
        return "work unknown"
    return f"{work:,.0f} s of work" if rec.work_unit == "seconds" else f"{work:,.0f} records behind"


def _outcome(rec: Recommendation) -> list[str]:
    out = rec.outcome
    if out is None or rec.resolution not in (Resolution.FOLLOWED, Resolution.DRAINED):
        return []
    drain = f"  drain: predicted {number(out.predicted_drain_s, ' s')}, measured {number(out.measured_drain_s, ' s')}"
    return [drain, f"  skew: predicted {number(out.predicted_skew)}, measured {number(out.measured_skew)}"]


def is_old(state: State, now: int) -> bool:
    """Whether the state is so old that kagent must be silent."""
    return now - state.time > SILENT_MS


def state_line(state: State, now: int | None = None) -> str:
    """The state of a cluster: whether silence means health. With ``now`` (ms) it says if the state itself is old."""
    if now is not None and is_old(state, now):
        return f"{shown(state.cluster)}: kagent is silent since {age(now - state.time)}; what is open may be out of date"
    said = f": {state.reason}" if state.reason else ""
    counts = f"{state.judged} groups judged, {state.open} open, {state.blind} blind, {state.ignored} ignored"
    return f"{shown(state.cluster)} is {state.status}{said} ({counts}, {state.workers} workers)"
