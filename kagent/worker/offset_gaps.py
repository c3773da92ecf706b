"""Whether any message of the events topic was missed: its offsets are without holes, so a jump is a loss.

The topic is neither compacted nor transactional. A worker resumes at its group's committed offset; if the first
message that arrives lies beyond it, retention took what lay between.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Arrival:
    """The next offset to come, per owned partition of the events topic."""

    expected: dict[int, int] = field(default_factory=dict)

    def resume(self, partition: int, committed: int | None) -> None:
        """The partition was assigned to us; ``committed`` is the group's offset, None if it has none yet."""
        # Without a commit from 0: a first worker that meets a later offset has missed events all the same.
        self.expected[partition] = committed or 0

    def jumped(self, partition: int, offset: int) -> bool:
        """Whether this offset lies beyond the one that is due; it is a loss only if what lay between is gone."""
        return offset > self.expected.get(partition, 0)

    def lost(self, partition: int, offset: int) -> bool:
        """Take one message in; true if messages before it never came."""
        due = self.expected.get(partition, 0)
        # max: after a rebalance Faust hands out again what was not committed.
        self.expected[partition] = max(due, offset + 1)
        return offset > due
