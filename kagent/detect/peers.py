"""What arrives at a group's members by topic: the measure in which a late member is compared with its peers."""

from __future__ import annotations

import numpy as np

from kagent.detect.capacity import RECENT_MS
from kagent.detect.inflow import MINUTES, totals
from kagent.detect.observed_columns import ObservedColumns
from kagent.lag.measure import Flags, Floats, Longs
from kagent.lag.observation import Observation
from kagent.lag.time_units import MINUTE_MS

SPANS_MS = np.array([0, *range((MINUTES + 1) * MINUTE_MS, RECENT_MS + 1, MINUTE_MS)])
"""The means of six to ten minutes; 0: the median of the last five. By chance five minutes may have brought little to the one peer that gets
as much, and who is on time has done all of what came before, too."""


def inflow_by_topic(columns: ObservedColumns, counted: Flags, seen: Observation) -> Floats:
    """Records/s of every topic that arrive at every member: [span, member, topic], spans as in ``SPANS_MS``. Before the first sample of
    the log ends nothing arrived."""
    lags, rows = columns.lags, np.flatnonzero(counted)
    each = np.zeros((len(SPANS_MS), len(lags)))
    each[0] = columns.median_rates
    for code in np.unique(lags.topic[rows]).tolist():
        here = rows[lags.topic[rows] == code]
        # Rising times: the longest span first.
        ends = seen.ends[lags.topics[code]].interpolated(lags.partition[here], seen.now - SPANS_MS[::-1])
        each[1:, here] = (ends[-1] - ends[:-1])[::-1] * 1000 / SPANS_MS[1:, None]
    return np.stack([by_member_and_topic(columns, rows, span) for span in each])


def by_member_and_topic(columns: ObservedColumns, rows: Longs, rates: Floats) -> Floats:
    """The sums of the partitions' rates at these places: [member, topic]."""
    shape = columns.members, len(columns.lags.topics)
    codes = columns.owner[rows].astype(np.int64) * shape[1] + columns.lags.topic[rows]
    return totals(codes, rates[rows], shape[0] * shape[1]).reshape(shape)
