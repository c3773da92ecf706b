"""In which condition a group is. Decided here alone: for the explanation, the API, the page and the counts."""

from __future__ import annotations

from typing import Literal

Condition = Literal["open", "suspect", "blind", "no_members", "healthy"]
"""open: an incident is open; suspect: something is the matter, not published (yet); blind: not judged now; no_members: records wait
in a group without members, not published (yet)."""


def condition_of(*, blind: bool, is_open: bool, verdict: str, unread: bool) -> Condition:
    """The condition of a group with this leading verdict; ``unread``: records wait in it, and it has no members."""
    if blind:
        return "blind"
    if is_open:
        return "open"
    if verdict != "balanced":
        return "suspect"
    return "no_members" if unread else "healthy"
