"""A recommendation as a person wants to read it: who is overloaded, what to do, what it gains. Plain text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kagent.contract.recommendation import (
    Action,
    ActionType,
    MemberWork,
    Recommendation,
    Resolution,
    State,
    Status,
)
from kagent.contract.words import VERDICTS, action_words, in_words
from kagent.text import counted, partition_name, shown, span

OLD_MS = 60_000
"""Numbers older than this are shown with their age."""
SILENT_MS = 120_000
"""State messages come every 30 s; without one for this long, no worker evaluates the cluster."""


SURE = {"yes": "", "no": " (not feasible)", "unknown": " (perhaps)"}
"""What follows an action, by whether it is feasible; at every width, as advice that may not work must not look sure."""


NO_LONGER = "its advice no longer applies"


def number(value: float | None) -> str:
    """``1.83``, or ``?`` where it is unknown."""
    return "?" if value is None else f"{value:.2f}"


def age(ms: int) -> str:
    """How long, as a person says it."""
    return span(max(0, ms) / 1000)


def first_action(rec: Recommendation) -> str:
    """The best action, and whether it can be done where that is not a plain yes; of a superseded message, that none applies."""
    if rec.status is Status.SUPERSEDED:
        return NO_LONGER
    return _titled(rec.actions[0]) if rec.actions else "none"


def how(rec: Recommendation) -> str:
    """How to do the best action; empty where there is none, or where it no longer applies."""
    return rec.applicable_actions[0].how if rec.applicable_actions else ""


def _titled(action: Action) -> str:
    return action_words(action.type, action.params) + SURE[action.feasible]


def skew_words(rec: Recommendation) -> str:
    """``skew 3.87 → 1.33``; only what it is now where the first action does not lower it."""
    return f"skew {skew_numbers(rec)}"


def skew_numbers(rec: Recommendation) -> str:
    """``3.87 → 1.33``, as :func:`skew_words`."""
    after = _skew_after(rec)
    now, then = number(rec.skew.now), number(after)
    lowers = after is not None and (rec.skew.now is None or after < rec.skew.now) and now != then
    return f"{now} → {then}" if lowers else now


def _skew_after(rec: Recommendation) -> float | None:
    """The skew after the first action; None where it moves no partitions, so that it promises none."""
    first = rec.applicable_actions[0] if rec.applicable_actions else None
    if first is None:
        return None
    if first.type is ActionType.SWITCH_ASSIGNOR:
        return next((o.skew for o in rec.alternatives if o.strategy == first.params.get("strategy")), None)
    # What the plan would give is not what restarting a member gives.
    return rec.skew.after if first.type is ActionType.FOLLOW_PLAN else None


def stale_note(rec: Recommendation) -> str:
    """What follows a sentence that kagent cannot confirm now; empty for one that it can."""
    return " (out of date: kagent cannot judge this group now)" if rec.stale else ""


def headline(rec: Recommendation, now: int | None = None, note: str = "") -> str:
    """One line: status, group, verdict, severity, skew now → after, first action; with ``now`` (ms) its age and that of its numbers,
    and the note."""
    ended = rec.resolution if rec.status is Status.RESOLVED else None
    what = in_words(ended.value) if ended else first_action(rec)
    stale = stale_note(rec)
    if now is not None:
        until = rec.as_of if rec.status is Status.RESOLVED else now
        is_open = rec.status is not Status.RESOLVED
        parts = [f"{'open' if is_open else 'was open'} for {age(until - rec.opened_at)}"]
        # A message is published again only when something changed: its numbers are of that moment.
        parts += [f"numbers from {age(now - rec.as_of)} ago"] if is_open and now - rec.as_of >= OLD_MS else []
        stale = f"  {', '.join(filter(None, [*parts, note]))}{stale}"
    return f"{rec.status.value.upper():<10} {shown(rec.group)}  {VERDICTS[rec.verdict].short}  {rec.severity.value}  {skew_words(rec)}  {what}{stale}"


def story(rec: Recommendation) -> list[str]:
    """The lines under the headline."""
    lines = [rec.reason]
    if rec.status is Status.RESOLVED:
        return lines + _outcome(rec)
    if rec.status is Status.SUPERSEDED:
        return [
            f"The group has changed since, or works off what is left: do not act on this any more. {rec.reason}"
        ]
    loads = sorted(rec.members, key=lambda m: (-(m.work_now or 0), -(m.lag or 0)))[:5]
    for member in loads:
        held = counted(member.partitions, "partition")
        lines.append(f"  {shown(member.member)}: {held}, {_work(member, rec)}")
    for move in rec.moves[:8]:
        source = shown(move.source) if move.source else "no member"
        lines.append(f"  move {partition_name(move.topic, move.partition)} from {source} to {shown(move.to)}")
    if rec.move_count > 8:
        lines.append(f"  … and {rec.move_count - 8} more moves")
    lines += [f"  {_titled(action)}: {action.how}" for action in rec.actions[:3]]
    return lines


def _work(member: MemberWork, rec: Recommendation) -> str:
    """``36 s to process its lag, 13 s after the moves``."""
    now, after = member.work_now, member.work_after
    if now is None:
        return "work unknown"
    # What stands is no work: who holds nothing else has none, and is behind all the same.
    if not now and member.lag:
        return f"{member.lag:,} records behind"
    seconds = rec.work_unit == "seconds"
    words = f"{span(now)} to process its lag" if seconds else f"{now:,.0f} records behind"
    if not rec.moves or after is None:
        return words
    return f"{words}, {span(after) if seconds else f'{after:,.0f}'} after the moves"


def _outcome(rec: Recommendation) -> list[str]:
    out = rec.outcome
    if out is None or rec.resolution not in (Resolution.FOLLOWED, Resolution.DRAINED):
        return []
    return [
        f"  time to drain: {_beside(out.predicted_drain_s, out.measured_drain_s, span)}",
        f"  skew: {_beside(out.predicted_skew, out.measured_skew, number)}",
    ]


def _beside(predicted: float | None, measured: float | None, shown_as: Callable[[float], str]) -> str:
    """What came, beside what the action that was followed predicted, if it predicted anything."""
    came = f"measured {'unknown' if measured is None else shown_as(measured)}"
    return came if predicted is None else f"predicted {shown_as(predicted)}, {came}"


def is_old(state: State, now: int) -> bool:
    """Whether the state is so old that kagent must be silent."""
    return now - state.time > SILENT_MS


def state_line(state: State, now: int | None = None) -> str:
    """The state of a cluster: whether silence means health. With ``now`` (ms) it says if the state itself is old."""
    name = shown(state.cluster)
    if now is not None and is_old(state, now):
        return (
            f"{name}: no worker has reported for {age(now - state.time)}; open incidents may be out of date"
        )
    words = {"watching": "is watched", "catching_up": "is catching up", "blind": "is blind"}
    reason = f"{state.reason}; " if state.reason else ""
    return f"{name} {words[state.status]}: {reason}{counted_groups(state)}; {counted(state.open, 'incident')} open"


def counted_groups(state: State) -> str:
    """How many groups are judged, of these learning and muted, and how many are blind and ignored; what there is none of is left
    out, but blind."""
    # Learning and muted groups are judged too: listed beside the judged ones, they read as if they could have no incident.
    marks = (
        (state.learning, "learning", state.learning_until),
        (state.muted, "muted", state.muted_until),
        (state.no_members, "without members while records wait", None),
    )
    found = [(n, f"{word}{_until(until)}") for n, word, until in marks if n]
    of_them = [
        f"{n if at else _share(n, state.judged)} {words}".lstrip() for at, (n, words) in enumerate(found)
    ]
    parts = [counted(state.judged, "group") + " judged" + (f" ({', '.join(of_them)})" if of_them else "")]
    # Of a cluster that is blind as a whole, its own reason stands beside.
    reason = state.blind_reason if state.blind and state.status == "watching" else None
    why = f" ({shown(reason, 120)})" if reason else ""
    parts.append(f"{state.blind} blind{why}")
    parts += [f"{state.ignored} ignored"] if state.ignored else []
    return ", ".join(parts)


def _share(part: int, whole: int) -> str:
    return f"{part} of them" if part < whole else "all" if whole > 1 else ""


def in_first_hour(groups: int, until: int | None) -> str:
    """What learning means for a reader. ``until``: ms, when the last of these groups is known."""
    are = "1 group is" if groups == 1 else f"{groups} groups are"
    their = "its" if groups == 1 else "their"
    return f"{are} new{_until(until)}: kagent does not know {their} usual delay yet, and reports incidents only on more evidence."


def _until(ms: int | None) -> str:
    return "" if ms is None else f" until {clock(ms)}"


def clock(ms: int) -> str:
    """The time of day, with the date unless it is today or within twelve hours; in the time zone of the terminal."""
    at, now = datetime.fromtimestamp(ms / 1000).astimezone(), datetime.now().astimezone()
    # Shortly before midnight, a mute of two hours ends at 01:40: a date would only push the time out of a narrow column.
    near = at.date() == now.date() or abs((at - now).total_seconds()) < 12 * 3600
    return at.strftime("%H:%M" if near else "%Y-%m-%d %H:%M")


def worst_member(rec: Recommendation) -> MemberWork | None:
    """The member that is furthest behind, else the one with the most work or records before it; None if no member has any."""
    # A stalled partition counts as no member's work: for a member that has nothing else, only the lag shows it.
    late = [m for m in rec.members if any((m.seconds_behind, m.work_now, m.lag))]
    return max(late, key=lambda m: (m.seconds_behind or 0, m.work_now or 0, m.lag or 0), default=None)


def seconds_behind(rec: Recommendation) -> float | None:
    """How far behind the group's worst member is, or the partition that stands, or a group without members; None where it is
    not known."""
    found = [m.seconds_behind for m in rec.members if m.seconds_behind is not None]
    # A partition that stands is left out of its member's time, which would be 0 s of one that does well besides.
    beside = (rec.evidence.get(name) for name in ("stands_s", "behind_s"))
    found += [float(each) for each in beside if isinstance(each, int | float)]
    return max(found, default=None)


def backlog(rec: Recommendation) -> int | None:
    """Records that the members have not read; None where it is not known."""
    found = [m.lag for m in rec.members if m.lag is not None]
    return sum(found) if found else None
