"""The story of one group as it stands: who is late, by what evidence, what to do, what it gains, and why it is not published
when it is not. Pure: a model in, plain values out."""

from __future__ import annotations

from typing import Any

import numpy as np

from kagent.contract.recommendation import Status
from kagent.detect.capacity import OLDEST_MS, kept
from kagent.detect.commit_gaps import USUAL_GAP_S
from kagent.detect.committers import co_partitioned
from kagent.detect.decision import examine
from kagent.detect.detectors import stalled_partition
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.seconds_behind import behind_s, is_unknown, members_behind_s, uncommitted_s, without_commit
from kagent.detect.state import JudgeState
from kagent.detect.without_members import UnreadRecords, has_no_reader, unread_records
from kagent.incident.condition import condition_of, is_late_for_now, waits_for_evidence
from kagent.incident.evaluate import Judgement
from kagent.incident.suppression import REASONS, waits_for
from kagent.lag.log_ends import UNKNOWN
from kagent.lag.membership import NOBODY
from kagent.lag.observation import Observation
from kagent.lag.time_units import SECOND_MS
from kagent.policy import Policy
from kagent.recommend.render import Diagnosis, compose, diagnose
from kagent.text import counted, partition_name, rounded, span

Looked = tuple[GroupModel, tuple[Finding, ...]]


def look_at(judged: Judgement, seen: Observation, state: JudgeState, policy: Policy) -> Looked:
    """The model and findings of a judgement; built anew where it made none (a healthy group)."""
    # The model that judged, not a new one: another look would advance clocks, and explain something else than what was decided.
    if judged.model is not None:
        return judged.model, judged.findings
    return examine(seen, state, policy)


def explain(judged: Judgement, looked: Looked | None = None) -> dict[str, Any]:
    """Everything there is to say of a group, as plain values."""
    if looked is None and judged.model is not None:
        looked = judged.model, judged.findings
    if looked is None:
        why = judged.suppressed_by
        return {"verdict": judged.verdict, "not_opened": REASONS.get(why or "", why), "seconds_behind": None}
    model, found = looked
    unread = unread_records(model.seen, judged.state, model.policy)
    lead = found[0] if found else None
    # Without a verdict there is no advice either: what helps depends on what is wrong.
    diagnosis = diagnose(model, lead) if lead and lead.verdict else None
    message = compose(diagnosis, "", model.now, Status.OPEN) if diagnosis else None
    roster, members = model.roster, judged.state.members
    return {
        "cluster": model.seen.cluster,
        # How Kafka's own tools reach it: by its address a client knows whether this is the cluster that it asked about.
        "tool_options": model.seen.tool_options,
        "group": model.seen.group,
        "kind": str(model.kind),
        "state": roster.state if roster else None,
        "generation": roster.generation if roster else None,
        "protocol": roster.protocol if roster else None,
        "verdict": _verdict(judged, lead),
        "condition": condition_of(
            blind=model.seen.blind is not None or judged.suppressed_by == "unwatched",
            is_open=judged.state.incident is not None,
            verdict=_verdict(judged, lead),
            unread=unread is not None,
            waits=waits_for_evidence(model, found),
        ),
        "seconds_behind": _behind_s(model, unread),
        "open": judged.state.incident.id if judged.state.incident else None,
        "not_opened": _not_opened(model, judged, lead),
        "blind": model.seen.blind,
        "lag_as_of": model.seen.measured_at,
        "skew": model.shown_skew,
        "threshold": model.policy.threshold,
        "reason": message.reason if message and lead and lead.ripe else _calm(model, unread),
        "since": lead.since if lead else None,
        "evidence": _evidence(model, lead),
        "members": _members(model),
        "topics": _topics(model),
        "costs": {t: [c, 0] for t, c in _costs(model).items()},
        "speeds": {
            n: [round(float(c), 3), len(kept(members[n].windows, model.now))]
            for n, c, m in zip(
                model.names, model.capacity.rate.mid.tolist(), model.capacity.measured.tolist(), strict=True
            )
            if m and n in members
        },
        "co_partitioned": co_partitioned(model.policy, model.kind),
        "recommendation": message.model_dump(mode="json", by_alias=True) if message else None,
        "frontier_unit": _frontier_unit(diagnosis),
        "frontier_cautious": bool(diagnosis and diagnosis.reassignment and diagnosis.reassignment.cautious),
        "others": [str(f.verdict) for f in found[1:] if f.verdict],
        **_past(judged.state, model),
    }


def _frontier_unit(diagnosis: Diagnosis | None) -> str | None:
    """What the frontier's numbers are: ``drain`` (seconds until all have caught up) or ``work`` (a member's greatest)."""
    made = diagnosis.reassignment if diagnosis else None
    return made.plan.objective if made else None


def _verdict(judged: Judgement, lead: Finding | None) -> str:
    if judged.state.incident is not None:
        return judged.state.incident.verdict
    return str(lead.verdict) if lead and lead.ripe else "balanced"


def _behind_s(model: GroupModel, unread: UnreadRecords | None) -> float | None:
    """How far the group is behind; None where that is not known of all its partitions."""
    if model.seen.blind is not None or model.seen.unwatched:
        return None
    return None if is_unknown(model) else round(behind_s(model, unread), 1)


def _calm(model: GroupModel, unread: UnreadRecords | None) -> str:
    """The explanation where nothing is reported: how late the latest member is."""
    if unread is not None:
        return unread.sentence
    standing = stalled_partition.next_to_find(model)
    if standing is not None:
        at, length_s, limit_s = standing
        return (
            f"{partition_name(*model.lags.name(at))} has made no progress for {span(length_s)} beside a member that had time for it; that is reported once it "
            f"has lasted {span(limit_s)}."
        )
    behind, uncommitted = members_behind_s(model), uncommitted_s(model)
    if not behind.any():
        return _in_time(model)
    at = int(np.argmax(behind))
    if uncommitted[at]:
        return f"{model.names[at]} commits nothing while records wait; the oldest that is not committed is {span(float(behind[at]))} old."
    if behind[at] < model.policy.min_behind:
        least, late_s = span(model.policy.min_behind), span(float(behind[at]))
        # Records from before the first log end that is known may be older than they seem.
        if model.as_it_is.age[1][model.owner == at].any():
            return f"No member is known to be late: {model.names[at]} is behind by {late_s} at least; late is {least} or more (`min_behind`)."
        return f"No member is late: {model.names[at]} is the furthest behind, by {late_s}; late is {least} or more (`min_behind`)."
    return f"{model.names[at]} {_was_behind(model, at, float(behind[at]))}{_caught_up(model, at)}."


def _was_behind(model: GroupModel, at: int, behind_s: float) -> str:
    """How far behind a member is, and when, where that was some time ago."""
    ago_s = (model.now - int(model.columns.committed_at[at])) / SECOND_MS
    if ago_s < USUAL_GAP_S:
        return f"is {span(behind_s)} behind"
    return f"was {span(behind_s)} behind at its last commit, {span(ago_s)} ago"


def _caught_up(model: GroupModel, at: int) -> str:
    """When a late member has caught up by itself, and what would change that; nothing where it does not, or that is not known."""
    if model.waits_on_purpose(at):
        return ", no more and no less than some minutes ago: it may read its records late on purpose"
    drain_s = float(model.drain[at])
    if not model.capacity.measured[at]:
        return "; how fast it can be is not known yet"
    # What is known now tells nothing of beyond two hours.
    if not 0 < drain_s <= OLDEST_MS / SECOND_MS:
        return ""
    records = model.records_per_work(at)
    gets, processes = (rounded(records * float(of.mid[at])) for of in (model.inflow, model.capacity.rate))
    return (
        f", and will have caught up in about {span(drain_s)} by the likeliest values: it gets {gets} records/s and can process {processes}. "
        "That changes if more arrives for it, or if it gets slower"
    )


def _in_time(model: GroupModel) -> str:
    """The explanation where no member is behind, as far as that is known."""
    never = without_commit(model)
    if len(never):
        return f"No member is known to be late. {counted(len(never), 'partition')} with records without a commit: how far its members are behind there is not known."
    if model.as_it_is.age[1].any():
        return "No member is known to be late. Some unread records came in before kagent knew the log ends, so it cannot tell how old they are."
    return "No member is late."


def _evidence(model: GroupModel, lead: Finding | None) -> dict[str, Any] | None:
    """How much evidence there is, how much is needed, and what would add to it."""
    if lead is None:
        return None
    missing = waits_for(model, lead)
    adds = {
        "evidence": "more commits that show the member late and falling further behind",
        "votes": "more judgements with the same result",
        "unsure": "intervals in which the members are busy, to measure their speed",
        "swing": "more minutes in which more arrives than the member can process",
        "draining": "nothing: it catches up by itself",
        "pausing": "more time in which it makes no progress while others do",
        "after_pause": "nothing: it catches up by itself after its pause",
        "perhaps_slow": "intervals in which it processes less, or in which its peers get more and keep up",
    }
    return {
        "verdict": str(lead.verdict) if lead.verdict else None,
        "seconds": round(lead.evidence_s),
        "needed_seconds": round(lead.needed_s),
        "missing": missing,
        "adds": adds.get(missing or ""),
        "longest_that_ended_by_itself": {k: h.longest_s for k, h in model.state.habits.items()},
    }


def _costs(model: GroupModel) -> dict[str, float]:
    """Relative cost of a record by topic."""
    topics, cost = model.lags.topics, model.cost
    return {
        t: round(float(cost[model.lags.topic == code][0]), 3)
        for code, t in enumerate(topics)
        if (model.lags.topic == code).any()
    }


def _past(state: JudgeState, model: GroupModel) -> dict[str, Any]:
    """What is remembered of the group; times in ms."""
    incident, mute = state.incident, model.seen.mute
    muted = mute is not None and model.seen.muted
    return {
        "as_of": model.now,
        "known_since": state.first_seen,
        "rebalanced_at": state.generation_at or None,
        "cooldown_until": state.cooldown_until if state.cooldown_until > model.now else None,
        "muted": {"until": mute.until, "why": mute.why, "by": mute.by} if mute and muted else None,
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


def _not_opened(model: GroupModel, judged: Judgement, lead: Finding | None) -> str | None:
    if judged.state.incident:
        return None
    reason = judged.rejected_by or judged.suppressed_by
    # Right after a rebalance nothing is found of a late member.
    if lead is None and reason is None and model.settles and is_late_for_now(model):
        reason = "settling"
    return REASONS.get(reason, reason) if reason else None


def _members(model: GroupModel) -> list[dict[str, Any]]:
    # What is left of a group without members is no reader that could be 0 s behind.
    if has_no_reader(model.seen, model.state):
        return []
    (low, high), behind = model.seconds_of_work, members_behind_s(model)
    held = np.bincount(model.owner[model.owner >= 0], minlength=len(model.names))
    waits = np.bincount(
        model.owner[model.owner >= 0], model.columns.backlog[model.owner >= 0], len(model.names)
    )
    known = model.lags.known & (model.owner >= 0)
    lag = np.bincount(model.owner[known], model.lags.shown[known], len(model.names))
    records = [model.records_per_work(at) for at in range(len(model.names))]
    return [
        {
            "member": model.names[at],
            "partitions": int(held[at]),
            "lag": round(float(lag[at])),
            # What waited at its latest commit, which the judgement rests on: no figure to show beside the lag of now.
            "lag_at_least": round(float(waits[at])),
            "work_at_least": round(float(low[at]), 3),
            "work_at_most": round(float(high[at]), 3),
            "unit": "seconds" if model.works_in_seconds else "records",
            "inflow_per_s": round(records[at] * float(model.inflow.mid[at]), 2),
            "capacity_per_s": round(records[at] * float(model.capacity.rate.mid[at]), 2)
            if model.capacity.measured[at]
            else None,
            "drain_s": round(float(model.drain[at])) if np.isfinite(model.drain[at]) else None,
            "seconds_behind": round(float(behind[at]), 1),
            "known": bool(model.columns.committed_at[at] > 0),
        }
        for at in np.argsort(-high, kind="stable").tolist()
    ]


def _topics(model: GroupModel) -> list[dict[str, Any]]:
    """Per topic: shown lag, and what is not counted and why."""
    lags, out = model.lags, []
    age, beyond = model.as_it_is.age
    for code, topic in enumerate(lags.topics):
        mine = lags.topic == code
        known = mine & (lags.shown != UNKNOWN)
        out.append(
            {
                "topic": topic,
                "partitions": int(mine.sum()),
                "lag": int(lags.shown[known].sum()),
                "no_commit": int((mine & ~known).sum()),
                "unassigned": int((mine & (lags.owner == NOBODY)).sum()) if model.by_member else 0,
                "orphaned": bool(mine.any() and lags.orphaned[mine].all()),
                "lost": int(lags.lost[mine].sum()),
                "standing": int((mine & model.excluded).sum()),
                "at_most": bool(lags.at_most[mine].any()),
                # Kept for readers of the JSON: a delay on purpose is no longer flagged by topic.
                "paced": False,
                "oldest_unread_s": round(float(age[mine].max(initial=0.0)), 1),
                "older_than_known": bool(beyond[mine].any()),
                "cadence_s": round(float(lags.cadence[mine].max(initial=0.0)) / 1000, 1),
            }
        )
    return out
