"""A recommendation as a person wants to read it: who is overloaded, what to do, what it gains. Plain text."""

from __future__ import annotations

from kagent.advice.recommendation import Recommendation, Resolution, State, Status
from kagent.names import shown


def number(value: float | None, unit: str = "") -> str:
    """``1.83``, or ``?`` where it is unknown."""
    return "?" if value is None else f"{value:.2f}{unit}"


def headline(rec: Recommendation) -> str:
    """One line: status, group, verdict, severity, skew now → after, best action."""
    skew = f"skew {number(rec.skew.now)}" + (
        f" → {number(rec.skew.after)}" if rec.skew.after is not None else ""
    )
    action = rec.actions[0].type.value if rec.actions else "none"
    how = rec.resolution.value if rec.status is Status.RESOLVED and rec.resolution else action
    stale = " (stale: kagent is blind here)" if rec.stale else ""
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


def state_line(state: State) -> str:
    """The state of a cluster: whether silence means health."""
    said = f": {state.reason}" if state.reason else ""
    counts = f"{state.judged} groups judged, {state.open} open, {state.blind} blind, {state.ignored} ignored"
    return f"{shown(state.cluster)} is {state.status}{said} ({counts}, {state.workers} workers)"
