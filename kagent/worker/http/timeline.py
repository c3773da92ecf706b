"""What happened to a group, in order: its rebalances, and its incident from first seen to resolved. Pure.

The worker remembers the last EVENTS of every group that had any. After a restart the published message and the state
give the outline again; the rest is gone, as are all events before this worker owned the group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kagent.contract.recommendation import Recommendation, Status
from kagent.contract.words import VERDICTS, in_words

EVENTS = 60
"""Most events kept for one group."""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """One thing that happened. ``time_ms``: since the epoch; ``what``: first_seen, confirmed, opened, updated, superseded,
    followed, resolved or rebalanced; ``text``: a sentence; ``incident``: its id, if it belongs to one."""

    time_ms: int
    what: str
    text: str
    incident: str | None = None


@dataclass(frozen=True, slots=True)
class Milestones:
    """What the worker remembers of a group's case. Times in ms since the epoch, None for what has not happened."""

    first_seen_ms: int | None = None
    incident: str | None = None
    opened_ms: int | None = None
    followed_ms: int | None = None
    generation: int | None = None
    rebalanced_ms: int | None = None


def events_between(before: Milestones, after: Milestones) -> list[Event]:
    """What happened between two judgements."""
    found = []
    if after.first_seen_ms is not None and before.first_seen_ms != after.first_seen_ms:
        found.append(Event(after.first_seen_ms, "first_seen", "First seen; not yet certain."))
    if after.followed_ms is not None and before.followed_ms != after.followed_ms:
        found.append(Event(after.followed_ms, "followed", "The advice was followed.", after.incident))
    if after.rebalanced_ms is not None and before.rebalanced_ms != after.rebalanced_ms:
        found.append(
            Event(after.rebalanced_ms, "rebalanced", f"The group rebalanced: generation {after.generation}.")
        )
    return found


def events_of(message: Recommendation) -> list[Event]:
    """A published message as events: what opens was confirmed by the coordinator just before."""
    if message.status is Status.OPEN:
        confirmed = Event(message.opened_at, "confirmed", "The coordinator confirmed it.", message.id)
        return [confirmed, Event(message.opened_at, "opened", message.reason, message.id)]
    text = message.reason
    if message.resolution is not None:
        text = f"{in_words(message.resolution.value)}: {text}{_drain(message)}"
    at_ms = max(message.as_of, message.opened_at)  # an update may rest on data of just before the opening
    return [Event(at_ms, message.status.value, text, message.id)]


def _drain(message: Recommendation) -> str:
    """How long draining was predicted to take, and how long it took, where both are known."""
    outcome = message.outcome
    if outcome is None or outcome.predicted_drain_s is None or outcome.measured_drain_s is None:
        return ""
    return f" Predicted to drain in {outcome.predicted_drain_s:.0f} s, drained in {outcome.measured_drain_s:.0f} s."


def outline(message: Recommendation | None) -> list[Event]:
    """The events of an incident that its published message alone implies."""
    if message is None:
        return []
    if message.status is Status.OPEN:
        return events_of(message)
    opened = Event(message.opened_at, "opened", f"Opened: {VERDICTS[message.verdict].short}.", message.id)
    return [opened, *events_of(message)]


def merged(*parts: Iterable[Event]) -> list[Event]:
    """All events, oldest first; of two of one kind, time and incident the first holds. At most EVENTS, the newest."""
    found: dict[tuple[int, str, str | None], Event] = {}
    for event in (event for part in parts for event in part):
        # The first holds: what was seen as it happened, then what a message or a row implies of it.
        found.setdefault((event.time_ms, event.what, event.incident), event)
    return sorted(found.values())[-EVENTS:]
