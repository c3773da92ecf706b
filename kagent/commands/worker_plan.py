"""The plan of a worker's judgement in the form of ``kagent plan``: the moves and the skew that ``explain``, the API and messages have.

A plan from the cluster alone rests on the lag shown now. The worker's rests on judged lag, measured speeds and costs, so the
two differ, and only the worker's is called skew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kagent.contract.recommendation import Recommendation


def document(story: Mapping[str, Any]) -> dict[str, Any]:
    """What ``kagent plan --json`` prints, from what ``kagent explain --json`` prints; what the worker does not report is null."""
    from kagent.contract.recommendation import Recommendation

    raw = story.get("recommendation")
    rec = Recommendation.model_validate(raw) if raw else None
    return {
        "id": story.get("group"),
        "verdict": rec.verdict.value if rec else _verdict(story),
        "assignment": rec.assignment if rec else None,
        "moves": [move.model_dump(by_alias=True) for move in rec.moves] if rec else [],
        "move_count": rec.move_count if rec else 0,
        # Without a recommendation there is no plan: nothing moves, so after is as now.
        "skew": {
            "now": rec.skew.now if rec else story.get("skew"),
            "after": rec.skew.after if rec else story.get("skew"),
        },
        "greatest": {**_greatest(rec), "best": None, "lower_bound": None},
        "work_unit": rec.work_unit if rec else None,
        "members": [member.model_dump() for member in rec.members] if rec else [],
        "frontier": rec.frontier if rec else [],
        "alternatives": [other.model_dump() for other in rec.alternatives] if rec else [],
        "objective": None,
        "gap": None,
        "move_bound": None,
        "r_score": None,
        "drain": None,
        "notes": [],
        "as_of": story.get("as_of"),
        "blind": story.get("blind"),
        "error": None,
    }


def _verdict(story: Mapping[str, Any]) -> str | None:
    # As the planner's own: who has no members is not balanced, long before that is reported.
    return "no_members" if story.get("condition") == "no_members" else story.get("verdict")


def _greatest(rec: Recommendation | None) -> dict[str, float | None]:
    """The work of the member that has most, in ``work_unit``."""
    members = rec.members if rec else []
    now = [m.work_now for m in members if m.work_now is not None]
    after = [m.work_after for m in members if m.work_after is not None]
    return {"now": max(now, default=None), "after": max(after, default=None)}


def held_after(found: Mapping[str, Any]) -> dict[str, int]:
    """Partitions of each member once the moves are made."""
    counts = {m["member"]: m["partitions"] for m in found["members"]}
    for move in found["moves"]:
        counts[move["to"]] = counts.get(move["to"], 0) + 1
        # A partition may have no owner now, or one that left since.
        if move["from"] in counts:
            counts[move["from"]] -= 1
    return counts
