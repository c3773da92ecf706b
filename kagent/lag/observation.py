"""Everything that one evaluation of a group uses, gathered by the caller, who has the clock and the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kagent.lag.commits import TopicCommits
from kagent.lag.log_end_coverage import unwatched
from kagent.lag.log_ends import EndHistory
from kagent.lag.membership import Roster

UNKNOWN_CLUSTER = "--bootstrap-server <host:port>"
"""Placeholder for the cluster's address in advice, where it is unknown: in a replay or a simulation."""


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """What the cluster says of a topic. ``leaders``: broker id per partition, where known;
    ``replica_racks``: racks of the replicas per partition, empty where the brokers name none."""

    partitions: int
    topic_id: str | None = None
    compacted: bool = False
    leaders: tuple[int, ...] = ()
    replica_racks: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Mute:
    """Somebody asked for silence about a group. ``until`` in ms."""

    until: int
    why: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """One group at one moment. Times in ms.

    ``now``: the tick's time. ``blind``: why the group may not be judged, or None; then ``ends`` are those of :attr:`measured_at`, see
    :func:`of_its_data`. ``as_of``: time of the progress that it rests on. ``patience``: ms without a sample of the log ends that are no gap; None where gaps are not looked for.
    ``present_since``: since when the observer has looked without a break and by one clock.
    """

    cluster: str
    group: str
    now: int
    roster: Roster | None
    commits: Mapping[str, TopicCommits]
    ends: Mapping[str, EndHistory]
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    as_of: int | None = None
    blind: str | None = None
    mute: Mute | None = None
    patience: int | None = None
    present_since: int = 0
    tool_options: str = UNKNOWN_CLUSTER
    """How Kafka's own tools reach the cluster, for commands in advice."""
    command_options: str = ""
    """How ``kagent``'s commands reach it: :meth:`kagent.settings.Settings.command_options`."""

    @property
    def measured_at(self) -> int:
        """The time that lags and the ages of unread records are of, ms: the tick's; of a blind group, when its commits were last known."""
        return self.now if self.blind is None else min(self.as_of or self.now, self.now)

    @property
    def consumes(self) -> bool:
        """Whether the group consumes, as far as its membership tells."""
        return self.roster is None or self.roster.consumes

    @property
    def unwatched(self) -> bool:
        """Whether a newest commit comes from a time in which log ends were not read."""
        return self.patience is not None and unwatched(self.commits, self.ends, self.patience)

    @property
    def muted(self) -> bool:
        """Whether somebody's mute holds now."""
        return self.mute is not None and self.now < self.mute.until


def of_its_data(seen: Observation) -> Observation:
    """A blind group as it was when it was last seen: log ends of later, held against commits of then, would make a lag that grows as if it
    were measured."""
    newest = max((row.last for row in seen.commits.values()), default=seen.now)
    # Before any progress is heard, as after a start, the newest commit is all that is known of.
    time = min(seen.as_of or newest, seen.now)
    ends = {topic: history.until(time) for topic, history in seen.ends.items()}
    # Where the log ends are what is not read, they are the older ones.
    sampled = [history.last for history in ends.values() if history.samples]
    return replace(seen, ends=ends, as_of=min([time, *sampled]))
