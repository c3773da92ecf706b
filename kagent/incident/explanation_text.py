"""The story of a group in lines for a person. Apart from the judgement, so that a worker's answer is shown without loading it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kagent.contract.recommendation import ActionType, Recommendation, Verdict
from kagent.contract.words import in_words, verdict_words
from kagent.text import counted, rounded, span, spans

TRACK = {"group_changed": "ended as the group changed", "expired": "not seen to their end"}
"""How incidents ended, where the counted word is none for people."""
CATCHES_UP = ("draining", "after_pause")
LAG = "  Lag: log ends of the last sample less the committed offsets, in records. Work is that of the last commit, which kagent judges by."


def lines(story: dict[str, Any]) -> list[str]:
    """The story for a person; the caller escapes the names in it."""
    if "group" not in story:
        return [
            f"verdict: {verdict_words(story['verdict'])}"
            + (f": {story['not_opened']}" if story["not_opened"] else "")
        ]
    skew = "" if story["skew"] is None else f", skew {story['skew']:.2f} (threshold {story['threshold']:g})"
    raw = story["recommendation"]
    verdict = verdict_words(story["verdict"])
    if story["blind"] and not story["open"]:
        verdict = "not judged now"
    elif story.get("condition") == "no_members":
        verdict = "no members, records wait"
    elif story["verdict"] == Verdict.BALANCED and (
        story["not_opened"] or story.get("condition") == "suspect"
    ):
        # Beside "80 s behind" and a skew of 3 it would read as a mistake.
        verdict = "not reported"
    elif story["verdict"] == Verdict.BALANCED and (story["skew"] or 0.0) >= story["threshold"]:
        # So would it beside the uneven lags of a few records that members on time have.
        verdict = "keeps up"
    if story["open"] and raw and raw["verdict"] != story["verdict"]:
        # Another verdict is published only once it has led for a while; the sentence below is already about it.
        verdict = f"reported as {verdict}, now {verdict_words(raw['verdict'])}"
    out = [
        f"{story['group']}: {verdict} ({in_words(story['kind'])}, {story['state']}{skew})",
        story["reason"],
    ]
    if story["blind"]:
        out.append(f"kagent cannot judge this group now: {story['blind']}.{_of_then(story)}")
    if story["not_opened"]:
        out.append(f"Not reported: {story['not_opened']}.")
    out += _evidence_lines(story)
    out += _past_lines(story)
    for m in story["members"][:20]:
        out.append(_member_line(m))
    for t in story["topics"]:
        out.append(_topic_line(t))
    if story["topics"]:
        out.append(LAG)
    return out + (_advice_lines(Recommendation.model_validate(raw), _frontier_of(story)) if raw else [])


def _of_then(story: dict[str, Any]) -> str:
    """How old the figures of a blind group are; a worker of an older version does not say."""
    age_s = (story["as_of"] - story.get("lag_as_of", story["as_of"])) / 1000
    return f" What follows is as it was {span(age_s)} ago." if age_s >= 1 else ""


def _evidence_lines(story: dict[str, Any]) -> list[str]:
    found = story.get("evidence")
    # No evidence is missing of a member that catches up by itself: the reason says when it has.
    if not found or not found["missing"] or found["missing"] in CATCHES_UP:
        return []
    # Nor for what has been published, and is over but for its backlog.
    if story["incident"] and story["incident"]["superseded"]:
        return []
    adds = f" Missing: {found['adds']}." if found["adds"] else ""
    what = f"for {verdict_words(found['verdict'])}" if found["verdict"] else "that it stays behind"
    # Before a member has been late at two commits no length of time is asked for.
    if not found["needed_seconds"]:
        return [f"Evidence {what}: none yet.{adds}"]
    return [f"Evidence {what}: {found['seconds']} s; {found['needed_seconds']} s are needed.{adds}"]


def _past_lines(story: dict[str, Any]) -> list[str]:
    """Since when it has been so, and what came of it before."""
    now, incident, out = story["as_of"], story["incident"], []

    def ago(at: int) -> str:
        return f"{span(max(0, now - at) / 1000)} ago"

    if incident:
        more = [f"followed {ago(incident['followed_at'])}"] if incident["followed_at"] else []
        more += [name for name in ("superseded", "stale") if incident[name]]
        lasts = ago(incident["opened_at"]).removesuffix(" ago")
        out.append(f"Open for {lasts}, incident {incident['id']}{''.join(f', {m}' for m in more)}.")
    elif story["since"]:
        out.append(f"First seen {ago(story['since'])}.")
    if story["muted"]:
        left = span((story["muted"]["until"] - now) / 1000)
        who = f" by {story['muted']['by']}" if story["muted"]["by"] else ""
        why = f": {story['muted']['why']}" if story["muted"]["why"] else ""
        out.append(f"Muted{who} for another {left}{why}.")
    if story["cooldown_until"]:
        out.append(
            f"In cooldown for another {span((story['cooldown_until'] - now) / 1000)} after the last incident."
        )
    last = story.get("last")
    if last and not incident:
        how = f"resolved ({in_words(last['resolution'])})" if last["resolution"] else last["status"]
        was = verdict_words(last["verdict"])
        out.append(f"Last incident {last['id']}: {was}, opened {ago(last['opened_at'])}, {how}.")
    if story["track"]:
        out.append(f"Incidents so far: {_track_line(story['track'])}.")
    return out


def _track_line(track: dict[str, int]) -> str:
    """How many incidents there were, and what came of them."""
    counts = ", ".join(
        f"{count} {TRACK.get(what, what)}"
        for what, count in sorted(track.items(), key=lambda kept: (kept[0] != "opened", kept[0]))
        if what != "right"
    )
    if "right" not in track:
        return counts
    return f"{counts}; it helped in {track['right']} of those that were followed"


def _member_line(m: dict[str, Any]) -> str:
    if not m["partitions"]:
        return f"  {m['member']}: holds no partition"
    late = f"{span(m['seconds_behind'])} behind" if m["known"] else "its last commit is unknown"
    speed = f", can process {rounded(m['capacity_per_s'])} records/s" if m.get("capacity_per_s") else ""
    held = counted(m["partitions"], "partition")
    inflow = f"inflow {rounded(m['inflow_per_s'])} records/s"
    return f"  {m['member']}: {late}, {held}, {_waiting(m)}, {inflow}{speed}"


def _waiting(m: dict[str, Any]) -> str:
    """``lag 1,234, 80 to 82 s of work``; a part of a second is less than a commit tells."""
    # A worker of an older version names no lag of a member.
    lag = f"lag {m.get('lag', m['lag_at_least']):,}"
    return f"{lag}, {spans(m['work_at_least'], m['work_at_most'])} of work" if m["unit"] == "seconds" else lag


def _topic_line(t: dict[str, Any]) -> str:
    parts = [f"lag {'≤ ' if t['at_most'] else ''}{t['lag']:,}"]
    for name, words in (
        ("no_commit", "without a commit"),
        ("unassigned", "assigned to no member"),
        ("lost", "records lost"),
        ("standing", "stalled"),
    ):
        if t[name]:
            parts.append(f"{t[name]:,} {words}")
    if t["orphaned"]:
        parts.append("no member subscribes to it: not counted")
    if t["oldest_unread_s"]:
        parts.append(f"oldest unread {'≥ ' if t['older_than_known'] else ''}{span(t['oldest_unread_s'])}")
    return f"  {t['topic']}: {', '.join(parts)}"


MOVING = frozenset({ActionType.FOLLOW_PLAN, ActionType.SWITCH_ASSIGNOR})
"""The actions by which partitions get other members."""


def _advice_lines(message: Recommendation, frontier: str | None) -> list[str]:
    marks = {"yes": "do", "unknown": "perhaps", "no": "not possible"}
    out = []
    for action in message.actions:
        out.append(f"  {marks[action.feasible]}: {action.how}")
        # A line of its own: behind a command it would be pasted with it.
        out += [f"    ({action.reason})"] if action.reason else []
    # Where nothing moves, as with a stuck partition, what moves would do only misleads.
    moving = [action for action in message.actions if action.type in MOVING]
    if not moving:
        return out
    # A skew of 1.4 below "no assignment lets it catch up" would read as its opposite.
    if all(action.gain and action.gain.get("likely") is None for action in moving):
        out.append(
            "  Moving partitions is not likely to let the group catch up; it would only even out the lag of now:"
        )
    if message.skew.after is not None and message.moves:
        bound = (
            f"; no assignment has less than {message.skew.lower_bound:.2f}"
            if message.skew.lower_bound and message.skew.lower_bound > 1.0  # no skew is below 1
            else ""
        )
        out.append(
            f"  plan: {counted(message.move_count, 'move')}, skew {message.skew.now:.2f} → {message.skew.after:.2f}{bound}"
        )
    for other in message.alternatives:
        note = f", unsafe: {other.unsafe}" if other.unsafe else ""
        out.append(f"  with {other.strategy}: skew {other.skew:.2f}, {counted(other.moves, 'move')}{note}")
    if message.frontier:
        out.append(_frontier_line(message, frontier))
    return out


def _frontier_of(story: Mapping[str, Any]) -> str | None:
    """What the numbers of the frontier are, in words, where they are times until all have caught up; else None."""
    if story.get("frontier_unit") != "drain":
        return None
    # What is likely stands with the plan, and may be minutes where the cautious end is hours.
    cautious = ", estimated cautiously" if story.get("frontier_cautious") else ""
    return f"time until all members have caught up{cautious}"


def _frontier_line(message: Recommendation, frontier: str | None) -> str:
    """What each number of moves reaches; 3,525 s until all have caught up must not read as the time for the lag of now."""
    what = frontier or "longest time of a member to process its lag"
    amount: Callable[[float], str] = span
    if frontier is None and message.work_unit != "seconds":
        what, amount = "most records of a member", rounded
    reached = (f"{amount(value)} with {counted(moves, 'move')}" for moves, value in message.frontier)
    return f"  {what}: {', '.join(reached)}"
