"""What happens at a rebalance: the open plan is followed, the last one kept, or the built-in assignor decides."""

from __future__ import annotations

from collections.abc import Mapping

from kagent.follow.decision_types import Decision, Followed, Held, Reason, Rules, Snapshot, View
from kagent.follow.followable import NotFollowed, plan_for


def decide(view: View, snapshot: Snapshot | None, now: float, rules: Rules) -> Decision:
    """The decision, with a sentence that says why. ``now``: seconds since the epoch.

    What it places is every subscribed partition exactly once, at a member that subscribes to its topic, whatever the
    recommendation and the members say; else it places nothing.
    """
    try:
        followed, plan = plan_for(view, snapshot, now, rules)
    except NotFollowed as error:
        kept = None if rules.off else _kept(view)
        if kept is None:
            return Decision(error.reason, f"{error.sentence}.")
        sentence = f"the plan that was followed last is kept; {error.sentence}."
        return Decision(Reason.KEPT, sentence, kept[1], kept[0])
    names = view.names or {}
    moved = sum(len(set(held) - set(names[name].held or ())) for name, held in plan.items())
    noun = "partition moves" if moved == 1 else "partitions move"
    placed = {names[name].member_id: held for name, held in plan.items()}
    return Decision(
        Reason.FOLLOWED, f"the open recommendation is followed: {moved} {noun}.", placed, followed
    )


def _kept(view: View) -> tuple[Followed, Mapping[str, Held]] | None:
    """The followed plan as the members hold it, if they are the same; one may have come back with empty hands."""
    reported = {peer.followed for peer in view.peers if peer.followed is not None}
    blank = [peer for peer in view.peers if peer.followed is None]
    # Of two that come back at once nothing says who had which part.
    if len(reported) != 1 or len(blank) > 1 or (followed := reported.pop()).roster != view.roster:
        return None
    if any(peer.held for peer in blank):  # it was in the group meanwhile, without the plan
        return None
    placed = {
        peer.member_id: peer.held if peer.target is None else peer.target
        for peer in view.peers
        if peer.followed is not None
    }
    if blank:
        held = {pair for pairs in placed.values() for pair in pairs or ()}
        placed[blank[0].member_id] = tuple(sorted(view.partitions - held))
    return (followed, whole) if (whole := _whole(view, placed)) is not None else None


def _whole(view: View, placed: Mapping[str, Held | None]) -> dict[str, Held] | None:
    """The assignment if it gives every subscribed partition once, to a subscriber."""
    topics = {peer.member_id: peer.topics for peer in view.peers}
    out: dict[str, Held] = {}
    for member_id, held in placed.items():
        if held is None or any(topic not in topics[member_id] for topic, _ in held):
            return None
        out[member_id] = held
    pairs = [pair for held in out.values() for pair in held]
    return out if len(pairs) == len(view.partitions) and set(pairs) == view.partitions else None
