"""The mutes in effect: of one group, by name or by pattern. Pure; times in ms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kagent.contract.mute import MuteRecord, from_bytes, is_pattern
from kagent.errors import SettingsError
from kagent.group_key import group_key
from kagent.group_pattern import matches
from kagent.pattern_cost import LONGEST_NAME, affordable


@dataclass(slots=True)
class Mutes:
    """What the mutes topic says. ``records``: key → record."""

    records: dict[str, MuteRecord] = field(default_factory=dict)

    def take(self, key: str, value: bytes | None) -> None:
        """The next record; None lifts the mute. Raises ValueError for a record that cannot be read."""
        if value is None:
            self.records.pop(key, None)
        else:
            self.records[key] = from_bytes(value)

    def of(self, cluster: str, group: str, now_ms: int) -> MuteRecord | None:
        """The mute that holds for this group now: its own, else a pattern's."""
        # The group's own first: a mute that names the group is meant for it, whatever a pattern says.
        own = self.records.get(group_key(cluster, group))
        if own is not None and now_ms < own.until:
            return own
        return by_pattern(self.records, cluster, group, now_ms)


def by_pattern(records: Mapping[str, MuteRecord], cluster: str, group: str, now_ms: int) -> MuteRecord | None:
    """The pattern's mute that holds for this group the longest."""
    found = covering(records, cluster, group, now_ms)
    return found[1] if found else None


def covering(
    records: Mapping[str, MuteRecord], cluster: str, group: str, now_ms: int
) -> tuple[str, MuteRecord] | None:
    """As :func:`by_pattern`, with the pattern under which it was written."""
    # By prefix, not by splitting: a pattern may hold slashes itself.
    head = f"{cluster}/"
    found = [
        (key[len(head) :], record)
        for key, record in records.items()
        if record.until > now_ms
        and key.startswith(head)
        and is_pattern(key[len(head) :])
        and covers(key[len(head) :], group)
    ]
    return max(found, key=lambda mute: mute[1].until, default=None)


def covers(pattern: str, group: str) -> bool:
    """Whether the mute of this pattern holds for the group."""
    # Whoever may mute writes the pattern, and any client names a group: together they must not keep a worker busy for ever.
    if pattern.startswith("/") and (len(group) > LONGEST_NAME or not affordable(pattern[1:-1])):
        return False
    try:
        return matches(pattern, group)
    except SettingsError:
        return False  # a group of that name was muted, which is no regular expression
