"""The last hour of every group and member, in memory: what the page draws over time.

A quiet group gets a point a minute, a late one a point every ten seconds; within that stretch a newer value takes the
place of the older one, so the last point is always the present. Members are kept only for groups that are late. Both
are bounded: by the hour, and for members by a number of values over all groups.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HOUR_S = 3600
FINE_S, COARSE_S = 10, 60
SPARK_POINTS = 30
MEMBER_VALUES = 8_000_000
"""Most values kept for members over all groups: 32 MB. A group that comes when it is reached gets no member series."""
GROUP_FIELDS = ("lag", "seconds_behind", "skew")
MEMBER_FIELDS = ("lag", "seconds_behind", "inflow_per_s", "drain_per_s")


class Series:
    """Points of the last hour, oldest first: a time in s, and ``width`` values; nan where a value is not known."""

    __slots__ = ("times", "values", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        # array, not list: 4 bytes a value instead of a pointer and an object. Seconds fit 32 bits until 2106.
        self.times = array("I")
        self.values = array("f")

    def add(self, time_s: int, row: Sequence[float], spacing_s: int) -> None:
        """Append a point, or replace the last one if it lies in the same stretch of ``spacing_s`` seconds."""
        # A clock that was set back: times must not fall, as expire() looks from the front.
        if self.times and time_s < self.times[-1]:
            return
        if self.times and time_s // spacing_s == self.times[-1] // spacing_s:
            self.times[-1] = time_s
            self.values[-self.width :] = array("f", row)
            return
        self.times.append(time_s)
        self.values.extend(row)
        self.expire(time_s - HOUR_S)

    def expire(self, before_s: int) -> None:
        """Drop the points before this time."""
        old = next((at for at, time in enumerate(self.times) if time >= before_s), len(self.times))
        if old:
            del self.times[:old]
            del self.values[: old * self.width]

    def column(self, at: int) -> list[float | None]:
        """One value of every point; None where it is not known."""
        return [None if math.isnan(v) else round(v, 3) for v in self.values[at :: self.width]]

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """``{"time_s": […], name: […], …}``."""
        return {"time_s": list(self.times), **{name: self.column(at) for at, name in enumerate(names)}}

    def spark(self, now_s: int) -> list[float | None]:
        """The first value over the last hour as SPARK_POINTS maxima, oldest first."""
        found: list[float | None] = [None] * SPARK_POINTS
        width_s = HOUR_S / SPARK_POINTS
        for time, value in zip(self.times, self.values[:: self.width], strict=True):
            at = SPARK_POINTS - 1 - int((now_s - time) / width_s)
            if 0 <= at < SPARK_POINTS and not math.isnan(value):
                # Maxima: a short peak of lag must survive thirty points an hour.
                found[at] = max(value, found[at] or 0.0)
        return found


@dataclass(slots=True)
class SeriesStore:
    """The series of all groups of one worker, by key of the group."""

    groups: dict[str, Series] = field(default_factory=dict)
    members: dict[str, dict[str, Series]] = field(default_factory=dict)
    most_values: int = MEMBER_VALUES

    def note(self, key: str, time_s: int, row: Sequence[float], late: bool) -> None:
        """One group now; ``row`` as GROUP_FIELDS."""
        series = self.groups.setdefault(key, Series(len(GROUP_FIELDS)))
        series.add(time_s, row, FINE_S if late else COARSE_S)

    def due(self, key: str, time_s: int) -> bool:
        """Whether a quiet group's next point is due."""
        series = self.groups.get(key)
        return series is None or not series.times or time_s // COARSE_S != series.times[-1] // COARSE_S

    def note_members(self, key: str, time_s: int, rows: Mapping[str, Sequence[float]]) -> None:
        """The members of one group now; each row is lag, seconds behind and inflow, and drain is worked out."""
        known = self.members.get(key, {})
        # Checked for new groups only: what is kept already keeps its curve.
        if not known and self.kept_values() > self.most_values:
            return
        for series in known.values():
            series.expire(time_s - HOUR_S)
        kept = {name: series for name, series in known.items() if series.times}
        for name, (lag, behind, inflow) in rows.items():
            series = kept.setdefault(name, Series(len(MEMBER_FIELDS)))
            series.add(time_s, (lag, behind, inflow, _drain(series, time_s, lag, inflow)), FINE_S)
        self.members[key] = kept

    def kept_values(self) -> int:
        """How many values of members are kept."""
        return sum(len(s.values) for known in self.members.values() for s in known.values())

    def quiet(self, key: str, now_s: int) -> None:
        """Drop a group's member series once the hour has passed since its last point."""
        known = self.members.get(key)
        if known and all(not s.times or s.times[-1] < now_s - HOUR_S for s in known.values()):
            del self.members[key]

    def forget(self, key: str) -> None:
        """Drop what is kept of a group."""
        self.groups.pop(key, None)
        self.members.pop(key, None)

    def to_json(self, key: str) -> dict[str, Any]:
        """The body of ``/api/v1/group/series``: ``group``, and ``members`` by name."""
        group = self.groups.get(key) or Series(len(GROUP_FIELDS))
        members = self.members.get(key, {})
        return {
            "group": group.to_json(GROUP_FIELDS),
            "members": {name: s.to_json(MEMBER_FIELDS) for name, s in members.items()},
        }


def _drain(series: Series, time_s: int, lag: float, inflow: float) -> float:
    """Records per second that the member processed since the point before this interval; nan without such a point."""
    at = len(series.times) - 1
    if at >= 0 and time_s // FINE_S == series.times[at] // FINE_S:
        at -= 1
    # After a pause of the points, the mean over it would look like one stretch's rate.
    if at < 0 or time_s - series.times[at] > 6 * FINE_S:
        return math.nan
    passed = time_s - series.times[at]
    return max(0.0, inflow - (lag - series.values[at * series.width]) / passed)
