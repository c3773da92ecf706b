"""Which groups are muted: by their own record of the mutes topic, or by a pattern's."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from kagent.active_mutes import by_pattern
from kagent.contract import admission
from kagent.contract.mute import MuteRecord, is_pattern
from kagent.contract.mute import from_bytes as mute_from_bytes
from kagent.group_key import split_key
from kagent.lag.observation import Mute


@dataclass(slots=True)
class MuteState:
    """The latest record under each key of the mutes topic, ``<cluster>/<group or pattern>``."""

    by_key: dict[str, Mute] = field(default_factory=dict)
    patterns: dict[str, MuteRecord] = field(default_factory=dict)
    """Kept apart: a pattern also holds for groups that came after it was set."""
    changes: int = 0
    """Rises with every record taken."""

    def take(self, key: str, record: bytes | None) -> None:
        """Take one record; a tombstone removes the mute.

        Raises Refused for a record that cannot be read: it mutes no group, and the mute before it stays.
        """
        self.changes += 1
        if record is None:
            self.by_key.pop(key, None)
            self.patterns.pop(key, None)
            return
        mute = admission.mute(record)
        self.by_key[key] = Mute(mute.until, mute.why, mute.by)
        if is_pattern(split_key(key)[1]):
            self.patterns[key] = mute_from_bytes(record)

    def retain(self, keys: Container[str], now_ms: int) -> list[str]:
        """Drop all mutes except those under these keys; the keys of those that were still in effect."""
        self.changes += 1
        lost = [key for key, mute in self.by_key.items() if key not in keys and now_ms < mute.until]
        for known in (self.by_key, self.patterns):
            for key in [key for key in known if key not in keys]:
                del known[key]
        return lost

    def of(self, key: str, cluster: str, group: str, now_ms: int) -> Mute | None:
        """The mute of a group: its own while it holds, else a pattern's."""
        own = self.by_key.get(key)
        # A group's own record wins, also a shorter one: somebody decided for this group.
        if (own is not None and now_ms < own.until) or not self.patterns:
            return own
        found = by_pattern(self.patterns, cluster, group, now_ms)
        return own if found is None else Mute(found.until, found.why, found.by)
