"""What the groups have committed, as the worker's tables hold it: the columns of many groups at once.

The rule of :func:`kagent.lag.commits.apply`, for a scenario's seeds side by side. A row made of the columns is the row
that ``apply`` would have made, commit by commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kagent.lag.commits import GAPS, GONE, LATEST, TopicCommits, latest_beyond, remembered, without_passed
from kagent.simulator.committing import taken
from kagent.simulator.scenario_file import ScenarioTopic
from kagent.simulator.world import Flags, Longs, World

# Greater than any gap or offset, so that min() passes over places that hold nothing yet.
NEVER = np.iinfo(np.int64).max
# Fixed, so that a run gives the same messages to the millisecond whenever it is made.
EPOCH = 1_700_000_000_000
"""The simulated clock starts here, in ms."""


@dataclass(slots=True)
class CommitTable:
    """Columns as in :class:`TopicCommits`: (seeds, partitions), and (seeds, topics) for what is kept once a topic."""

    topics: tuple[ScenarioTopic, ...]
    spans: tuple[slice, ...]
    ids: list[str]
    committed: Longs
    time: Longs
    source: Longs
    moved: Longs
    gaps: Longs
    """(seeds, topics, GAPS), the newest last; NEVER where there was none yet."""
    commits: Longs
    first: Longs
    rewound: Longs
    recent: Longs
    """(seeds, partitions, GAPS): the latest different offsets, the newest last; NEVER where there was none yet, or is none any more."""
    clock: Longs
    """How far the broker's clock is ahead of kagent's, ms: one entry a seed."""
    stood: int = 0

    @classmethod
    def begin(cls, world: World) -> CommitTable:
        """What was committed before the scenario began."""
        seeds, topics = world.seeds, world.topics
        time = _ms(world.commit_time)
        return cls(
            topics=topics,
            spans=tuple(slice(*world.span(t.name)) for t in topics),
            ids=[world.ids[t.name] for t in topics],
            committed=world.committed.astype(np.int64),
            time=time,
            source=np.arange(time.size).reshape(time.shape),
            moved=time.copy(),
            gaps=np.full((seeds, len(topics), GAPS), NEVER),
            commits=np.ones((seeds, len(topics)), np.int64),
            first=np.repeat(time.min(axis=1)[:, None], len(topics), axis=1),
            rewound=np.zeros((seeds, len(topics)), np.int64),
            recent=_first(world.committed.astype(np.int64)),
            clock=np.zeros(seeds, np.int64),
            stood=time.size,
        )

    def known_before(self, gap: int) -> None:
        """As if there had been a thousand commits, at this usual gap in ms."""
        self.gaps[:, :, -5:] = gap
        self.commits[:] = 1000

    def take(self, world: World, until: float) -> None:
        """The commits made until then (s) that were not taken yet, by the broker's clock."""
        new = taken(world, until)
        if new is None or not new.made.any():
            return
        made, offset = new.made, new.offset.astype(np.int64)
        time = _ms(new.when) + self.clock[:, None]
        for code, here in enumerate(self.spans):
            self._topic(
                code, world.ids[self.topics[code].name], made[:, here], time[:, here], offset[:, here]
            )

    def _topic(self, code: int, topic_id: str, made: Flags, time: Longs, offset: Longs) -> None:
        here, some = self.spans[code], made.any(axis=1)
        if not some.any():
            return
        if topic_id != self.ids[code]:  # created anew: the old commits count no more
            self.ids[code] = topic_id
            self.committed[:, here] = GONE
            self.recent[:, here] = NEVER
            self.recent[:, here, -1] = GONE
            self.rewound[:, code] = 0
        before, before_at = self.committed[:, here], self.time[:, here]
        again = made & (before != GONE)
        self._progress(here, made & (offset != before), offset, time)
        # The shortest of the topic's partitions: one that is seldom committed says nothing about the group's cadence.
        gap = np.where(again & (time > before_at), time - before_at, NEVER).min(axis=1)
        new = np.flatnonzero(gap < NEVER)
        self.gaps[new, code, :-1] = self.gaps[new, code, 1:]
        self.gaps[new, code, -1] = gap[new]
        # A commit below the one before: an operator rewound the group, or a client took a commit back.
        back = np.where(again & (offset < before), time, 0).max(axis=1)
        self.rewound[:, code] = np.maximum(self.rewound[:, code], back)
        self.committed[:, here] = np.where(made, offset, before)
        self.time[:, here] = np.where(made, time, before_at)
        self.stood += 1
        self.source[:, here] = np.where(made, self.stood, self.source[:, here])
        self.commits[:, code] += some

    def _progress(self, here: slice, changed: Flags, offset: Longs, time: Longs) -> None:
        """Progress is a rise of the least of the remembered offsets, see :mod:`kagent.lag.commits`."""
        groups = np.flatnonzero(changed.any(axis=1))
        if not groups.size:
            return
        changed, known = changed[groups], self.recent[groups, here]
        kept = np.concatenate([known[:, :, 1:], offset[groups][:, :, None]], axis=2)
        falls = changed & ~_rises(kept)
        if falls.any():
            old = np.arange(GAPS) < GAPS - self._remembered(here, groups)[:, None]
            kept = np.where(falls[:, :, None] & old[:, None, :], NEVER, kept)
        _forget(kept, changed, latest_beyond)
        kept[:, :, :-LATEST] = np.where(_rises(kept)[:, :, None], NEVER, kept[:, :, :-LATEST])
        few = ((known != NEVER).sum(axis=2) < LATEST) | (known == GONE).any(axis=2)
        progress = changed & (few | (kept.min(axis=2) > known.min(axis=2)))
        self.moved[groups, here] = np.where(progress, time[groups], self.moved[groups, here])
        _forget(kept, changed, without_passed)
        self.recent[groups, here] = np.where(changed[:, :, None], kept, known)

    def _remembered(self, here: slice, groups: Longs) -> Longs:
        """How many different offsets are remembered where one goes back, by the topic's usual gap, of each of these groups."""
        gaps = self.gaps[groups, self.spans.index(here)]
        return np.array([remembered(each[each < NEVER].tolist()) for each in gaps])

    def rows(self, at: int) -> dict[str, TopicCommits]:
        """One group's rows of the lag table."""
        made = {}
        for code, (topic, here) in enumerate(zip(self.topics, self.spans, strict=True)):
            gaps = self.gaps[at, code]
            made[topic.name] = TopicCommits(
                topic.name,
                self.ids[code],
                list(range(topic.partitions)),
                self.committed[at, here].tolist(),
                self.time[at, here].tolist(),
                self.source[at, here].tolist(),
                self.moved[at, here].tolist(),
                gaps[gaps < NEVER].tolist(),
                int(self.commits[at, code]),
                int(self.first[at, code]),
                int(self.rewound[at, code]),
                [[o for o in latest if o != NEVER] for latest in self.recent[at, here].tolist()],
            )
        return made


def _forget(recent: Longs, which: Flags, rule: Callable[[Sequence[int]], list[int]]) -> None:
    """Forget what this rule forgets of the offsets that do not rise, in place: few."""
    for at, place in np.argwhere(which & ~_rises(recent)).tolist():
        found = rule([o for o in recent[at, place].tolist() if o != NEVER])
        recent[at, place, : GAPS - len(found)] = NEVER


def _first(committed: Longs) -> Longs:
    return np.concatenate([np.full((*committed.shape, GAPS - 1), NEVER), committed[:, :, None]], axis=2)


def _rises(recent: Longs) -> Flags:
    """Whether the offsets that are there, the newest last, rise."""
    return np.asarray(((recent[:, :, :-1] == NEVER) | (recent[:, :, 1:] > recent[:, :, :-1])).all(axis=2))


def _ms(time: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Longs:
    return EPOCH + np.round(time * 1000).astype(np.int64)
