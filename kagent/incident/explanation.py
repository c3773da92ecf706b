"""The story of one group as it stands: who is overloaded, by what evidence, what to do, what it gains, and why it is not
spoken of when it is not. Pure: a look in, plain values out."""

from __future__ import annotations

from typing import Any

import numpy as np

from kagent.advice.judge import Judgement
from kagent.advice.look import Look
from kagent.advice.message import compose, span, tell
from kagent.advice.state import JudgeState
from kagent.advice.verdicts import Finding, findings
from kagent.contract.recommendation import Recommendation, Status
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.membership import NOBODY

WHY_NOT = {
    "ignored": "the settings leave this group out (`ignore`, or one of the built-in patterns)",
    "blind": "kagent cannot see the group now, so nothing opens and nothing resolves",
    "unwatched": "log ends were not read when it committed last; it is judged again from its next commits on",
    "muted": "somebody muted it",
    "cooldown": "an incident of it was resolved not long ago",
    "learning": "it is new to kagent: its habits are learned first",
    "min_behind": "the member is not far enough behind (`min_behind`)",
    "evaluations": "it has not held for enough evaluations in a row yet",
    "not_stable": "the group is rebalancing",
    "settling": "the last rebalance is too recent: lags are the pause's, not the assignment's",
    "one_commit": "it rests on a single commit of that member so far",
    "level": "all partitions of the topic are equally late and do not get later: a delay on purpose looks like that",
    "may_drain": "it has not lasted long enough to tell it from a burst that drains by itself (`hold`)",
    "draining": "at the present speed it will have drained by itself within `hold`",
    "confirming": "the coordinator has borne it out once and is asked again one commit gap later",
    "rewound": "somebody set the group back not long ago, and it is working through what it reads again",
}


def explain(judged: Judgement, look: Look | None = None) -> dict[str, Any]:
    """Everything there is to say of a group, as plain values. ``look``: where the judgement made none (a quiet group)."""
    look = look or judged.look
    if look is None:
        return {"verdict": judged.verdict, "not_opened": WHY_NOT.get(judged.held or "", judged.held)}
    found = findings(look)
    lead = found[0] if found else None
    story = tell(look, lead) if lead else None
    said = compose(story, "", look.now, Status.OPEN) if story else None
    return {
        "cluster": look.seen.cluster,
        "group": look.seen.group,
        "kind": str(look.kind),
        "state": look.roster.state if look.roster else None,
        "generation": look.roster.generation if look.roster else None,
        "protocol": look.roster.protocol if look.roster else None,
        "verdict": str(story.verdict) if story else "balanced",
        "open": judged.state.incident.id if judged.state.incident else None,
        "not_opened": _not_opened(judged, lead),
        "blind": look.seen.blind,
        "skew": round(look.load.skew, 3) if look.by_member else None,
        "threshold": look.policy.threshold,
        "reason": said.reason if said else "No member is behind for certain.",
        "since": judged.state.streak.since if judged.state.streak else None,
        "members": _members(look),
        "topics": _topics(look),
        "costs": {t: [k.value, k.intervals] for t, k in look.rates.cost.items()},
        "speeds": {n: [round(k.value, 3), k.intervals] for n, k in look.rates.speed.items()},
        "recommendation": said.model_dump(mode="json", by_alias=True) if said else None,
        "others": [str(f.verdict) for f in found[1:]],
        **_past(judged.state, look),
    }


def _past(state: JudgeState, look: Look) -> dict[str, Any]:
    """What is remembered of the group; times in ms."""
    incident, mute = state.incident, look.seen.mute
    return {
        "as_of": look.now,
        "known_since": state.first_seen,
        "rebalanced_at": state.generation_at or None,
        "cooldown_until": state.cooldown_until if state.cooldown_until > look.now else None,
        "muted": {"until": mute.until, "why": mute.why, "by": mute.by} if mute and look.seen.muted else None,
        "incident": incident
        and {
            "id": incident.id,
            "verdict": incident.verdict,
            "member": incident.member,
            "opened_at": incident.opened_at,
            "sent_at": incident.sent_at,
            "followed_at": incident.followed_at,
            "superseded": incident.superseded,
            "stale": incident.stale,
        },
        "track": dict(state.track),
    }


def _not_opened(judged: Judgement, lead: Finding | None) -> str | None:
    if judged.state.incident or (lead is None and judged.held is None):
        return None
    reason = judged.dropped or judged.held
    return WHY_NOT.get(reason, reason) if reason else None


def _members(look: Look) -> list[dict[str, Any]]:
    load = look.load
    order = np.argsort(-load.high, kind="stable").tolist() if len(load.names) else []
    return [
        {
            "member": load.names[at],
            "partitions": int(load.partitions[at]),
            "lag_at_least": round(float(load.lag[at])),
            "work_at_least": round(float(load.low[at]), 3),
            "work_at_most": round(float(load.high[at]), 3),
            "unit": load.unit,
            "inflow_per_s": round(float(load.inflow[at]), 2),
            "seconds_behind": round(float(load.behind[at]), 1),
            "known": bool(load.known[at]),
        }
        for at in order
    ]


def _topics(look: Look) -> list[dict[str, Any]]:
    """Per topic: shown lag, and what is not counted and why."""
    lags, out = look.lags, []
    for code, topic in enumerate(lags.topics):
        mine = lags.topic == code
        known = mine & (lags.shown != UNKNOWN)
        out.append(
            {
                "topic": topic,
                "partitions": int(mine.sum()),
                "lag": int(lags.shown[known].sum()),
                "no_commit": int((mine & ~known).sum()),
                "unassigned": int((mine & (lags.owner == NOBODY)).sum()) if look.by_member else 0,
                "orphaned": bool(mine.any() and lags.orphaned[mine].all()),
                "lost": int(lags.lost[mine].sum()),
                "standing": int((mine & look.stopped).sum()),
                "at_most": bool(lags.at_most[mine].any()),
                "paced": bool(look.paced[mine].any()),
                "oldest_unread_s": round(float(look.age[mine].max(initial=0.0)), 1),
                "older_than_known": bool(look.beyond[mine].any()),
                "cadence_s": round(float(lags.cadence[mine].max(initial=0.0)) / 1000, 1),
            }
        )
    return out


def lines(story: dict[str, Any]) -> list[str]:
    """The story for a person; names in it are escaped by whoever prints them."""
    if "group" not in story:
        return [f"verdict {story['verdict']}" + (f": {story['not_opened']}" if story["not_opened"] else "")]
    skew = "" if story["skew"] is None else f", skew {story['skew']:.2f} (threshold {story['threshold']:g})"
    out = [f"{story['group']}: {story['verdict']} ({story['kind']}, {story['state']}{skew})", story["reason"]]
    if story["blind"]:
        out.append(f"Blind: {story['blind']}.")
    if story["not_opened"]:
        out.append(f"Not spoken of: {story['not_opened']}.")
    out += _past_lines(story)
    for m in story["members"][:20]:
        out.append(_member_line(m))
    for t in story["topics"]:
        out.append(_topic_line(t))
    raw = story["recommendation"]
    return out + (_advice_lines(Recommendation.model_validate(raw)) if raw else [])


def _past_lines(story: dict[str, Any]) -> list[str]:
    """Since when it has been so, and what came of it before."""
    now, incident, out = story["as_of"], story["incident"], []

    def ago(at: int) -> str:
        return f"{span(max(0, now - at) / 1000)} ago"

    if incident:
        more = [f"followed {ago(incident['followed_at'])}"] if incident["followed_at"] else []
        more += [name for name in ("superseded", "stale") if incident[name]]
        said = "".join(f", {m}" for m in more)
        out.append(f"Open as {incident['id']} since {ago(incident['opened_at'])}{said}.")
    elif story["since"]:
        out.append(f"Seen like this since {ago(story['since'])}.")
    if story["muted"]:
        left = span((story["muted"]["until"] - now) / 1000)
        out.append(
            f"Muted by {story['muted']['by'] or 'somebody'} for another {left}: {story['muted']['why']}."
        )
    if story["cooldown_until"]:
        out.append(
            f"Silent for another {span((story['cooldown_until'] - now) / 1000)} after the last incident."
        )
    last = story.get("last")
    if last and not incident:
        how = f"resolved ({last['resolution']})" if last["resolution"] else last["status"]
        out.append(f"Last incident {last['id']}: {last['verdict']}, opened {ago(last['opened_at'])}, {how}.")
    if story["track"]:
        counted = ", ".join(f"{what} {count}" for what, count in sorted(story["track"].items()))
        out.append(f"So far: {counted}.")
    return out


def _member_line(m: dict[str, Any]) -> str:
    late = f"{span(m['seconds_behind'])} behind" if m["known"] else "not known now"
    unit = "s of work" if m["unit"] == "seconds" else "records"
    return (
        f"  {m['member']}: {m['partitions']} partitions, {m['work_at_least']:g}–{m['work_at_most']:g} {unit}, "
        f"{m['inflow_per_s']:g} records/s in, {late}"
    )


def _topic_line(t: dict[str, Any]) -> str:
    said = [f"lag {'≤ ' if t['at_most'] else ''}{t['lag']}"]
    for name, words in (
        ("no_commit", "without a commit"),
        ("unassigned", "held by nobody"),
        ("lost", "records lost"),
        ("standing", "standing still"),
    ):
        if t[name]:
            said.append(f"{t[name]} {words}")
    if t["orphaned"]:
        said.append("read by no member: not counted")
    if t["paced"]:
        said.append("always the same time behind: delayed on purpose, not counted")
    if t["oldest_unread_s"]:
        said.append(f"oldest unread {'≥ ' if t['older_than_known'] else ''}{span(t['oldest_unread_s'])}")
    return f"  {t['topic']}: {', '.join(said)}"


def _advice_lines(said: Recommendation) -> list[str]:
    marks = {"yes": "do", "unknown": "perhaps", "no": "not possible"}
    out = []
    for action in said.actions:
        why = f" ({action.reason})" if action.reason else ""
        out.append(f"  {marks[action.feasible]}: {action.how}{why}")
    if said.skew.after is not None and said.moves:
        bound = f", no assignment gets below {said.skew.lower_bound:.2f}" if said.skew.lower_bound else ""
        out.append(
            f"  ideal plan: {said.move_count} moves, skew {said.skew.now:.2f} → {said.skew.after:.2f}{bound}"
        )
    for other in said.alternatives:
        note = f", unsafe: {other.unsafe}" if other.unsafe else ""
        out.append(f"  under {other.strategy}: skew {other.skew:.2f}, {other.moves} moves{note}")
    if said.frontier:
        out.append("  frontier: " + ", ".join(f"{k} moves → {w:g}" for k, w in said.frontier))
    return out
