"""What arrives at a group's members by topic: the measure in which a late member is compared with its peers."""

from __future__ import annotations

import numpy as np

from kagent.detect.capacity import RECENT_MS
from kagent.detect.inflow import MINUTES, totals
from kagent.detect.observed_columns import ObservedColumns
from kagent.lag.measure import Flags, Floats, Longs
from kagent.lag.observation import Observation
from kagent.lag.time_units import MINUTE_MS

_LENGTH_MS = MINUTES * MINUTE_MS
_LONGER = [(span, 0) for span in range(_LENGTH_MS + MINUTE_MS, RECENT_MS + 1, MINUTE_MS)]
_EARLIER = [(end + _LENGTH_MS, end) for end in range(MINUTE_MS, RECENT_MS - _LENGTH_MS + 1, MINUTE_MS)]
SPANS_MS = np.array([(0, 0), *_LONGER, *_EARLIER])
"""From and until how long ago. First, as (0, 0), the median of the last five minutes; then the means of six to ten minutes, and of five
minutes that ended earlier. By chance five minutes may have brought little to the one peer that gets as much, and who is on time has done
all of what came before, too."""


def inflow_by_topic(columns: ObservedColumns, counted: Flags, seen: Observation) -> Floats:
    """Records/s of every topic that arrive at every member: [span, member, topic], spans as in ``SPANS_MS``. Before the first sample of
    the log ends nothing arrived."""
    lags, rows = columns.lags, np.flatnonzero(counted)
    each = np.zeros((len(SPANS_MS), len(lags)))
    each[0] = columns.median_rates
    for code in np.unique(lags.topic[rows]).tolist():
        here = rows[lags.topic[rows] == code]
        # Each time once, and rising.
        ago, which = np.unique(SPANS_MS[1:], return_inverse=True)
        ends = seen.ends[lags.topics[code]].interpolated(lags.partition[here], seen.now - ago[::-1])[::-1]
        began, ended = which.reshape(-1, 2).T
        each[1:, here] = (ends[ended] - ends[began]) * 1000 / (ago[began] - ago[ended])[:, None]
    return np.stack([by_member_and_topic(columns, rows, span) for span in each])


def by_member_and_topic(columns: ObservedColumns, rows: Longs, rates: Floats) -> Floats:
    """The sums of the partitions' rates at these places: [member, topic]."""
    shape = columns.members, len(columns.lags.topics)
    codes = columns.owner[rows].astype(np.int64) * shape[1] + columns.lags.topic[rows]
    return totals(codes, rates[rows], shape[0] * shape[1]).reshape(shape)
