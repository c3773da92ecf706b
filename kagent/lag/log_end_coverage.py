"""Whether log ends were read when a group committed. Without them its lag is a guess, and a lag that is guessed too small
looks like health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kagent.lag.commits import GONE, TopicCommits
from kagent.lag.log_ends import AWAY_KEPT_MS, LATELY_MS, EndHistory


def unread(
    commits: Mapping[str, TopicCommits], ends: Mapping[str, EndHistory], longest: int, now: int
) -> str | None:
    """Why the group's lag is not known: it goes on committing to a topic whose log ends were last read more than
    ``longest`` ms before its newest commit. None if it is known."""
    for name, row in commits.items():
        history = ends.get(name)
        if history is None or not history.samples:
            # A new topic is committed to before its first sample; a deleted one is never sampled again, and no group commits to it.
            if row.last - row.first > longest and now - row.last < LATELY_MS:
                return f"the log ends of {name} have never been read, though the group commits to it"
        elif row.last - history.last > longest:
            age = (row.last - history.last) / 1000
            return f"the log ends of {name} were last read {age:.0f} s before the group's newest commit"
    return None


def unwatched(commits: Mapping[str, TopicCommits], ends: Mapping[str, EndHistory], patience: int) -> bool:
    """Whether a partition's newest commit comes from a time, not long ago, when log ends had not been read for more than
    ``patience`` ms. The next commits will tell; until then what lay before this one is unknown."""
    for name, row in commits.items():
        history = ends.get(name)
        if history is None or not history.samples:
            continue
        since = history.last + patience
        gaps = history.gaps(patience)
        if not gaps and row.last <= since:
            continue
        times, valid = np.asarray(row.time, np.int64), np.asarray(row.committed, np.int64) != GONE
        dark = times > since
        # What a coordinator was asked for, as its row was lost, has no place in the source. Its time is when it was asked, a moment before
        # the log ends were read again, so it lies in the gap; and no next commit may come to mend that.
        recorded = np.asarray(row.source_offset, np.int64) >= 0
        for answered, again in gaps:
            # A commit shortly after the last sample is still bracketed by it: the log cannot have grown much.
            dark |= recorded & (times > answered + patience) & (times < again)
        if (dark & valid).any():
            return True
    return False


def unseen(ends: Iterable[EndHistory], longest: int, now: int) -> tuple[tuple[int, int], ...]:
    """The times, in the last hour, in which the log ends of none of these topics were read for more than ``longest`` ms (at least a minute), from and until in ms:
    the cluster could not be reached, by consumers neither."""
    common: list[tuple[int, int]] | None = None
    for history in ends:
        away = history.gaps(longest, AWAY_KEPT_MS)
        if now - history.last > longest:
            away = [*away, (history.last, now)]
        common = away if common is None else _in_both(common, away)
        # Nearly always.
        if not common:
            return ()
    return tuple(common or ())


def _in_both(some: Iterable[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    pairs = [(max(a, c), min(b, d)) for a, b in some for c, d in others]
    return [(since, until) for since, until in pairs if since < until]
