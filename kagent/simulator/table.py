"""What the groups have committed, as the worker's tables hold it: the columns of many groups at once.

The rule of :func:`kagent.lag.commits.apply`, for a scenario's seeds side by side. A row made of the columns is the row
that ``apply`` would have made, commit by commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kagent.advice.judge import unread_since
from kagent.lag.commits import GAPS, GONE, TopicCommits
from kagent.lag.log_ends import UNKNOWN, EndHistory
from kagent.policy import Policy
from kagent.simulator.scenario import Topic
from kagent.simulator.world import Flags, Longs, World

NEVER = np.iinfo(np.int64).max
EPOCH = 1_700_000_000_000
"""The simulated clock starts here, in ms."""


@dataclass(slots=True)
class Table:
    """Columns as in :class:`TopicCommits`: (seeds, partitions), and (seeds, topics) for what is kept once a topic."""

    topics: tuple[Topic, ...]
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
    stood: int = 0

    @classmethod
    def begin(cls, world: World) -> Table:
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
            stood=time.size,
        )

    def known_before(self, gap: int) -> None:
        """As if there had been a thousand commits, at this usual gap in ms."""
        self.gaps[:, :, -5:] = gap
        self.commits[:] = 1000

    def take(self, world: World) -> None:
        """The commits made since the last time."""
        if not world.pending.any():
            return
        made, time, offset = world.pending, _ms(world.commit_time), world.committed.astype(np.int64)
        world.pending = np.zeros_like(made)
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
            self.rewound[:, code] = 0
        before, told = self.committed[:, here], self.time[:, here]
        again = made & (before != GONE)
        gap = np.where(again & (time > told), time - told, NEVER).min(axis=1)
        new = np.flatnonzero(gap < NEVER)
        self.gaps[new, code, :-1] = self.gaps[new, code, 1:]
        self.gaps[new, code, -1] = gap[new]
        back = np.where(again & (offset < before), time, 0).max(axis=1)
        self.rewound[:, code] = np.maximum(self.rewound[:, code], back)
        self.moved[:, here] = np.where(made & (offset != before), time, self.moved[:, here])
        self.committed[:, here] = np.where(made, offset, before)
        self.time[:, here] = np.where(made, time, told)
        self.stood += 1
        self.source[:, here] = np.where(made, self.stood, self.source[:, here])
        self.commits[:, code] += some

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
            )
        return made

    def loud(self, ends: Mapping[str, EndHistory], as_of: int, policy: Policy) -> Flags:
        """Which groups the judgement's cheap look does not pass over, or perhaps not."""
        out = np.zeros(len(self.committed), bool)
        for code, (topic, here) in enumerate(zip(self.topics, self.spans, strict=True)):
            history, shape = ends[topic.name], (len(out), topic.partitions)
            committed, start = self.committed[:, here], history.start.reshape(shape)
            unread = (history.end.reshape(shape) - committed > policy.allowed_lag) & (committed != GONE)
            gaps = self.gaps[:, code]
            least = np.where(gaps[:, -3] < NEVER, gaps.min(axis=1), 0)  # the usual gap is no shorter
            floor = as_of - np.maximum(unread_since(policy, 0), 2 * least)
            times = self.time[:, here].ravel()
            before, _ = history.bracket(np.arange(times.size), times, int(policy.clock_slack * 1000))
            before = before.reshape(shape)
            late = (before != UNKNOWN) & (before - committed > policy.allowed_lag)
            old = self.moved[:, here] < floor[:, None]
            out |= (unread & (late | old | (start > committed))).any(axis=1)
        return out


def _ms(time: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Longs:
    return EPOCH + np.round(time * 1000).astype(np.int64)
