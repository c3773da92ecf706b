"""The history of one topic's log ends: where each log stood, and when.

It answers two questions without reading a record. *Where was the log end when this commit was made?* lies between the
samples around the commit, because a log end only grows: :meth:`EndHistory.bracket`. *How old is the record at this
offset?* lies between the samples around the offset: :meth:`EndHistory.age`.

Samples are kept finer when they are young (see ``SPACING``), so that a topic costs about 2 kB a partition whatever the
time it has been watched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kagent.lag.bound import Bound
from kagent.lag.time_units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from kagent.policy import Policy

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNKNOWN = -1
"""In place of an offset that was not read."""
IN_FLIGHT_MS = MINUTE_MS
"""What is on its way comes no later than this: a sample, whose request is given up long before, and a tick, which comes over a topic at
least once, so that some come again after a restart."""
SPACING = (
    (3 * MINUTE_MS, 30 * SECOND_MS),
    (30 * MINUTE_MS, 5 * MINUTE_MS),
    (6 * HOUR_MS, 30 * MINUTE_MS),
    (2 * DAY_MS, 2 * HOUR_MS),
)
"""The age from which samples are that far apart, up to OLDEST: at most a sixth of their age, so that any time is known to a sixth and a
partition costs about 2 kB."""
YOUNG = SPACING[0][0]
BY_THE_MINUTE = SPACING[1][0]
PAUSE = 10 * SECOND_MS
"""Twice the default interval between samples: two that are further apart are noted as a gap, and tell of no rate."""
AWAY_KEPT_MS = HOUR_MS
"""For how long a gap of more than a minute is remembered: as long as a client may go without a commit, since the clock of its silence begins in
retrospect. Where samples are far apart, each of them ends a shorter gap."""
LATELY_MS = round(Policy().hold * SECOND_MS)
"""What arrives is measured over as long as `hold` by default, five minutes: a longer time doubles the time to detect (measured in the simulator)."""
OLDEST = 7 * DAY_MS
"""What groups do repeats itself by the day and the week: what was longer ago is forgotten."""
GROWTH: Bound = 64
"""Rows that are added at a time: numpy arrays do not grow, and copying all samples for each new one would be quadratic."""
SHORTENED_AFTER_MS = PAUSE
"""A leader that does not know yet that it leads no longer names an older end, but not for longer: its session has ended by then."""
STORED_CELLS: Bound = 20_000
"""Most numbers in a stored row, which keeps it far below the broker's ``message.max.bytes``."""


class EndHistory:
    """Log starts, ends and last stable offsets of all partitions of one topic. Mutable; rows by :meth:`to_row`.

    ``start`` and ``stable`` are the newest known (int64, one a partition; ``stable`` is UNKNOWN where it was not requested).
    ``growths`` rises with every sample in which an end rose, ``revisions`` with everything else in which a sample changes what was
    known before it: log starts, partitions, a topic made anew, a clock set back.
    ``born``: time in ms since which the logs are these logs; commits made before it belong to a deleted topic.
    """

    __slots__ = (
        "_asked",
        "_count",
        "_ends",
        "_fell",
        "_pauses",
        "_rates",
        "_seen",
        "_thin_at",
        "born",
        "growths",
        "revisions",
        "stable",
        "start",
        "topic_id",
    )

    def __init__(self, partitions: int = 0, topic_id: str | None = None) -> None:
        self.topic_id = topic_id
        self.born = 0
        self.growths = self.revisions = 0
        self.start: Longs = np.zeros(partitions, np.int64)
        self.stable: Longs = np.full(partitions, UNKNOWN, np.int64)
        self._asked: Longs = np.zeros(GROWTH, np.int64)
        self._seen: Longs = np.zeros(GROWTH, np.int64)
        self._ends: Longs = np.zeros((GROWTH, partitions), np.int64)
        self._count = 0
        self._thin_at = GROWTH
        self._rates: tuple[int, int, Floats] | None = None
        self._pauses: list[tuple[int, int]] = []
        # Partition → since when its end has been less than it was, in ms.
        self._fell: dict[int, int] = {}

    @property
    def partitions(self) -> int:
        """How many partitions are known."""
        return len(self.start)

    @property
    def last(self) -> int:
        """When the newest sample had been answered, in ms; 0 before the first."""
        return int(self._seen[self._count - 1]) if self._count else 0

    @property
    def first(self) -> int:
        """When the oldest sample kept was asked, in ms; 0 before the first."""
        return int(self._asked[0]) if self._count else 0

    @property
    def samples(self) -> int:
        """How many samples are kept."""
        return self._count

    @property
    def end(self) -> Longs:
        """The newest log ends; zeros before the first sample."""
        return self._ends[self._count - 1] if self._count else np.zeros(self.partitions, np.int64)

    def add(
        self,
        asked: int,
        seen: int,
        start: npt.ArrayLike,
        end: npt.ArrayLike,
        stable: npt.ArrayLike | None = None,
        topic_id: str | None = None,
    ) -> None:
        """Take one sample: asked and answered at these times (ms), log starts and ends of all partitions.

        A partition that could not be asked is UNKNOWN: what was known of it stands. Another topic id, or an end that
        fell below the log start of before, means that the topic was created anew: the history starts afresh.
        """
        ends, starts = np.asarray(end, np.int64), np.asarray(start, np.int64)
        self._widen(len(ends))
        if self.last - seen > IN_FLIGHT_MS:
            self._cut(asked)
        # Samples may arrive out of order: the sampler and a confirmation both ask.
        if self._count and seen <= self.last:
            return
        # Before anything is merged: an end of the new topic must not be compared with the deleted one's. Topic ids tell them apart:
        # https://cwiki.apache.org/confluence/display/KAFKA/KIP-516%3A+Topic+Identifiers
        if self._another(ends, topic_id):
            self._forget(asked)
        known = self.end
        # A leader that did not answer costs precision, not the partition: the end before it is a lower bound.
        ends = np.where(ends == UNKNOWN, known, np.maximum(ends, 0))
        self.topic_id = topic_id or self.topic_id
        starts = np.where(starts == UNKNOWN, self.start, starts)
        # As bytes: for the few partitions of most topics numpy takes ten times as long to compare them.
        self.revisions += not self._count or starts.tobytes() != self.start.tobytes()
        self.start = starts
        if stable is not None:
            self.stable = np.asarray(stable, np.int64).copy()
        else:
            self.stable = np.full(len(ends), UNKNOWN, np.int64)
        ends = self._risen(ends, known, asked) if self._count else ends
        self.growths += ends.tobytes() != self.end.tobytes()
        self._append(asked, seen, ends)

    def _risen(self, ends: Longs, known: Longs, asked: int) -> Longs:
        """The ends, none of them less than before, as the binary searches need it: one that stays less takes down the samples of before."""
        fell = np.flatnonzero(ends < known).tolist()
        self._fell = {p: self._fell.get(p, asked) for p in fell}
        # Nearly always.
        if not fell:
            return ends
        risen = np.maximum(ends, known)
        for p in [p for p, since in self._fell.items() if asked - since >= SHORTENED_AFTER_MS]:
            # Records were lost in an unclean leader election: as if they had never been there, or no member could read up to the end.
            np.minimum(self._ends[: self._count, p], ends[p], out=self._ends[: self._count, p])
            risen[p] = ends[p]
            self.revisions += 1
            self._rates = None
            del self._fell[p]
        return risen

    def _another(self, ends: Longs, topic_id: str | None) -> bool:
        if topic_id and self.topic_id and topic_id != self.topic_id:
            return True
        known = self.end
        fell = ends < known
        # At nearly every sample no end falls.
        if not self._count or not fell.any():
            return False
        # An unclean leader election may take back a few records; a new topic begins below the old one's start.
        return bool((fell & (ends != UNKNOWN) & (ends < np.maximum(self.start, known // 2))).any())

    def _cut(self, time: int) -> None:
        """Forget what was sampled after this time: the clock was ahead then, and has been set back since."""
        self.revisions += 1
        self._count = int(self._seen[: self._count].searchsorted(time))
        self._pauses = [pause for pause in self._pauses if pause[1] < time]
        self._rates = None

    def _forget(self, born: int) -> None:
        self.born = born
        self._fell.clear()
        self.revisions += 1
        self._count = 0
        self._pauses = []
        self.start = np.zeros(self.partitions, np.int64)

    def _widen(self, partitions: int) -> None:
        more = partitions - self.partitions
        if more <= 0:
            return
        self.revisions += 1
        # A partition that was not there had its end at 0, so the older samples are true for it as they are.
        self._ends = np.pad(self._ends, ((0, 0), (0, more)))
        self.start = np.pad(self.start, (0, more))
        self.stable = np.pad(self.stable, (0, more), constant_values=UNKNOWN)
        self._rates = None

    def _append(self, asked: int, seen: int, ends: Longs) -> None:
        if self._count and seen - self.last > PAUSE:
            self._pauses = [*(p for p in self._pauses if _is_kept(p, seen)), (self.last, seen)]
        if self._count >= self._thin_at:
            self._thin(seen)
        if self._count == len(self._asked):
            self._asked = np.concatenate([self._asked, np.zeros(GROWTH, np.int64)])
            self._seen = np.concatenate([self._seen, np.zeros(GROWTH, np.int64)])
            self._ends = np.concatenate([self._ends, np.zeros((GROWTH, self.partitions), np.int64)])
        self._asked[self._count], self._seen[self._count] = asked, seen
        self._ends[self._count, : len(ends)] = ends
        self._count += 1

    def _thin(self, now: int) -> None:
        """Keep every young sample and one per spacing of the older ones."""
        keep = kept(self._seen[: self._count], now)
        count = len(keep)
        self._asked[:count], self._seen[:count] = self._asked[keep], self._seen[keep]
        self._ends[:count] = self._ends[keep]
        self._count = count
        # Not at every sample: thinning copies the matrix.
        self._thin_at = count + GROWTH // 2

    def bracket(self, partitions: Longs, times: Longs) -> tuple[Longs, Longs]:
        """The log end at these times lies in [low, high]: per (partition, time) the end in the last sample before it and
        in the first one after it, UNKNOWN where there is none."""
        count = self._count
        # A log end answered by then is a true lower bound, one asked for after it a true upper one: the request's own duration
        # widens the bracket, so it holds whenever in between the broker looked.
        before = self._seen[:count].searchsorted(times, side="right") - 1
        after = self._asked[:count].searchsorted(times, side="left")
        low = self._ends[np.maximum(before, 0), partitions]
        high = self._ends[np.minimum(after, max(count - 1, 0)), partitions]
        low = np.where(before >= 0, low, UNKNOWN)
        return low, np.where(after < count, high, UNKNOWN)

    def gaps(self, longest: int, within: int = YOUNG) -> list[tuple[int, int]]:
        """The times between two samples that are further apart than ``longest`` ms (at least PAUSE), if they ended
        no more than ``within`` ms ago: (answered, answered again) in ms. Beyond YOUNG, those of more than a minute are known, up to AWAY_KEPT_MS."""
        since = self.last - within
        return [pause for pause in self._pauses if pause[1] - pause[0] > longest and pause[1] > since]

    def at(self, time: int) -> Longs:
        """The ends of all partitions in the last sample before ``time``, or in the oldest one."""
        row = int(self._seen[: self._count].searchsorted(time, side="right")) - 1
        return self._ends[max(row, 0)] if self._count else self.end

    def interpolated(self, partitions: Longs, times: Floats) -> Floats:
        """The log ends of these partitions at these rising times (ms), as if logs grew evenly between two samples: an array
        [time, partition]. Before the first and after the last sample the nearest one stands."""
        count = self._count
        if not count:
            return np.zeros((len(times), len(partitions)))
        seen = self._seen[:count]
        after = np.clip(seen.searchsorted(times, side="left"), 1, max(count - 1, 1))
        if count == 1:
            return np.repeat(self._ends[:1, partitions].astype(np.float64), len(times), axis=0)
        before = after - 1
        share = np.clip((times - seen[before]) / np.maximum(seen[after] - seen[before], 1), 0.0, 1.0)
        low = self._ends[before][:, partitions]
        return np.asarray(low + share[:, None] * (self._ends[after][:, partitions] - low))

    def curve(self, partitions: Longs) -> tuple[Longs, Longs]:
        """The sum of these partitions' log ends over time: times of the samples (ms) and the sums."""
        return self._seen[: self._count], self._ends[: self._count, partitions].sum(axis=1)

    def first_beyond(self, partitions: Longs, offsets: Longs) -> Longs:
        """When the records at these offsets were in the log for certain: the time of the first sample whose end lies beyond
        them, ms; 0 where nothing is unread in the newest sample."""
        if not self._count:
            return np.zeros(len(partitions), np.int64)
        ends = self._ends[: self._count, partitions]
        # Ends rise along time, so the number of samples at or below the offset is the place of the first one beyond it.
        first = np.minimum((ends <= offsets).sum(axis=0), self._count - 1)
        return np.where(ends[-1] > offsets, self._seen[first], 0)

    def grown(self, without: Sequence[int]) -> bool:
        """Whether any partition but these has received records since the oldest sample."""
        if not self._count:
            return False
        grown: npt.NDArray[np.bool_] = self._ends[self._count - 1] > self._ends[0]
        grown[np.asarray(without, np.int64)] = False
        return bool(grown.any())

    def rates(self, window: int = LATELY_MS) -> Floats:
        """Inflow of every partition in records/s over the last ``window`` ms that were watched; 0 before two samples."""
        if self._rates is not None and self._rates[:2] == (self.last, window):
            return self._rates[2]
        count = self._count
        # From the newest sample back, not from now: a sampler that stood still must not lower the rate.
        first = int(np.searchsorted(self._seen[:count], self.last - window, side="left"))
        span = self.last - int(self._seen[first]) if count else 0
        if span <= 0:
            rates = np.zeros(self.partitions)
        else:
            rates = (self._ends[count - 1] - self._ends[first]) * (1000.0 / span)
        self._rates = (self.last, window, rates)
        return rates

    def least_rates(self, horizon: int, window: int = LATELY_MS) -> Floats:
        """What :meth:`rates` will not fall below in samples of the next ``horizon`` ms, however little is received."""
        if not self._count:
            return np.zeros(self.partitions)
        # The window moves on by at most the horizon, and begins later by a spacing where samples are thinned out meanwhile.
        since = self.last + horizon + SPACING[0][1] - window
        first = int(np.searchsorted(self._seen[: self._count], since, side="left"))
        certain = self._ends[self._count - 1] - self._ends[min(first, self._count - 1)]
        return np.asarray(certain * (1000.0 / window))

    def age(self, partitions: Longs, offsets: Longs, now: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """How long ago the records at these offsets were written, in s, and whether that is only a lower bound (``≥``).

        0 where nothing is unread. The record at offset o was written after the last sample whose end is ≤ o; the age is
        counted from the first sample in which the end lay beyond it, so it is never too great.
        """
        ages, beyond = np.zeros(len(partitions)), np.zeros(len(partitions), bool)
        if not self._count:
            return ages, ~beyond
        ends = self._ends[: self._count, partitions]
        unread = ends[-1] > offsets
        first = (ends <= offsets).sum(axis=0)  # ends are sorted along time
        place = np.minimum(first, self._count - 1)
        ages[:] = np.where(unread, (now - self._seen[place]) / 1000.0, 0.0)
        return np.maximum(ages, 0.0), unread & (first == 0)

    def late(self, partitions: Longs, offsets: Longs, times: Longs) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """How old the records at these offsets were at these times (ms), in s: as :meth:`age`, but estimated, as if logs had
        grown evenly between two samples, and before the first one as they did since (flagged). 0 where in the future."""
        late, beyond = np.zeros(len(partitions)), np.zeros(len(partitions), bool)
        if not self._count:
            return late, ~beyond
        ends, seen = self._ends[: self._count, partitions], self._seen[: self._count]
        after = (ends <= offsets).sum(axis=0)
        beyond = after == 0
        after, before = np.minimum(after, self._count - 1), np.maximum(after - 1, 0)
        column = np.arange(len(partitions))
        low, high = ends[before, column], ends[after, column]
        share = np.clip((offsets - low) / np.maximum(high - low, 1), 0.0, 1.0)
        written = seen[before] + share * (seen[after] - seen[before])
        if beyond.any():
            grown = np.maximum((ends[-1] - ends[0])[beyond], 1)
            early = (ends[0] - offsets)[beyond] * ((seen[-1] - seen[0]) / grown)
            written[beyond] -= np.minimum(early, OLDEST)
        return np.maximum((times - written) / 1000.0, late), beyond

    def part(self, first: int, after: int) -> EndHistory:
        """The history of some of the partitions, in a view that shares this one's samples and takes no new ones."""
        made = EndHistory(0, self.topic_id)
        made.born, made.start, made.stable = self.born, self.start[first:after], self.stable[first:after]
        made._asked, made._seen, made._count = self._asked, self._seen, self._count
        made._pauses = self._pauses
        made._ends = self._ends[:, first:after]
        if self._rates is not None:
            made._rates = (*self._rates[:2], self._rates[2][first:after])
        return made

    def until(self, time: int) -> EndHistory:
        """The history as it was at ``time`` (ms), in a view that shares this one's samples and takes no new ones; of the oldest sample
        where that is later."""
        count = max(1, int(self._seen[: self._count].searchsorted(time, side="right")))
        if count >= self._count:
            return self
        made = self.part(0, self.partitions)
        made._count, made._rates = count, None
        return made

    def delayed(self, by: int, now: int) -> EndHistory:
        """The history as if records had arrived ``by`` ms later, up to ``now`` (ms), in a view that takes no new samples; of the oldest sample where that is
        later."""
        made = self.until(now - by).part(0, self.partitions)
        made._asked, made._seen = made._asked[: made._count] + by, made._seen[: made._count] + by
        made._pauses = [(began + by, ended + by) for began, ended in self._pauses if ended + by <= now]
        made._rates = None
        return made

    def to_row(self) -> dict[str, Any]:
        """A coarse form for a table: the newest samples and ever fewer older ones, about 200 kB at most."""
        keep = kept(self._seen[: self._count], self.last)
        # A row above message.max.bytes would fail its transaction, and with it the whole flush.
        room = max(2, STORED_CELLS // max(1, self.partitions))
        if len(keep) > room:
            # Evenly over what was kept, the first and the last among them: np.unique drops the doubles that rounding makes.
            keep = keep[np.unique(np.linspace(0, len(keep) - 1, room).astype(int))]
        return {
            "topic_id": self.topic_id,
            "born": self.born,
            "start": self.start.tolist(),
            "asked": self._asked[keep].tolist(),
            "seen": self._seen[keep].tolist(),
            "ends": self._ends[keep].tolist(),
            "gaps": self._pauses,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> EndHistory:
        """The history that :meth:`to_row` wrote."""
        history = cls(len(row["start"]), row["topic_id"])
        for asked, seen, ends in zip(row["asked"], row["seen"], row["ends"], strict=True):
            history._append(asked, seen, np.asarray(ends, np.int64))
        # The samples alone do not tell them from where samples were thinned out. Older rows have none.
        history._pauses = [(began, ended) for began, ended in row.get("gaps", ())]
        history.start = np.asarray(row["start"], np.int64)
        history.born = row["born"]
        return history


def _is_kept(gap: tuple[int, int], now: int) -> bool:
    began, ended = gap
    return ended > now - (AWAY_KEPT_MS if ended - began > MINUTE_MS else YOUNG)


def spacing_ms(ages_ms: Longs) -> Longs:
    """How far apart samples of these ages are kept, ms: all young ones."""
    spacing = np.ones(len(ages_ms), np.int64)
    for since, space in SPACING:
        spacing[ages_ms >= since] = space
    return spacing


def kept(times: Longs | Sequence[int], now: int) -> Longs:
    """Which of these rising times are kept at ``now``: all young ones, then the first in each span of ``SPACING``."""
    stamps = np.asarray(times, np.int64)
    age = now - stamps
    spacing = spacing_ms(age)
    # Slots by absolute time, not by age: a sample stays the first of its slot at every later thinning, and is never lost by drift.
    slot = stamps // spacing
    first = np.ones(len(stamps), bool)
    first[1:] = (slot[1:] != slot[:-1]) | (spacing[1:] != spacing[:-1])
    return np.flatnonzero(first & (age <= OLDEST))
