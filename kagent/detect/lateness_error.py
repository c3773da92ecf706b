"""How far the difference of two latenesses may be off by what is known of the log ends: between two samples, or beyond the oldest one."""

from __future__ import annotations

import numpy as np

from kagent.detect import extrapolation
from kagent.detect.group_model import GroupModel
from kagent.detect.lateness import Curve, arrivals, off_between_samples_s
from kagent.detect.lateness_sample import LatenessSample
from kagent.detect.state import Spell
from kagent.lag.time_units import SECOND_MS


def unsure_s(model: GroupModel, at: int, spell: Spell | None, sample: LatenessSample) -> float:
    """How far what a member's lateness rose by since the spell began may be off, s."""
    if spell is None:
        return 0.0
    if spell.extrapolated_s and sample.extrapolated_s:
        return extrapolation.unsure_s(model, at, spell, sample.extrapolated_s)
    curve = arrivals(model.lags, model.seen.ends, model.held_of(at), model.cost)
    return _between_samples_s(curve, (spell.began, spell.reference), (sample.time, sample.trend))


def unsure_of_topics(
    model: GroupModel, at: int, spell: Spell | None, sample: LatenessSample
) -> dict[str, float]:
    """The same of each topic that it held when the spell began, s."""
    if spell is None:
        return {}
    return {t: round(_topic_s(model, at, t, spell, sample), 1) for t in sample.topics if t in spell.topics}


def _topic_s(model: GroupModel, at: int, topic: str, spell: Spell, sample: LatenessSample) -> float:
    if topic in spell.older and topic in sample.older:
        return extrapolation.topic_unsure_s(model, at, topic, spell.older[topic], sample.older[topic])
    curve = arrivals(model.lags, model.seen.ends, model.held_of(at, topic), np.ones(len(model.lags)))
    return _between_samples_s(
        curve, (spell.began, spell.topics[topic][0]), (sample.time, sample.topics[topic])
    )


def _between_samples_s(curve: Curve, *latenesses: tuple[int, float]) -> float:
    """Of all these latenesses of what arrived by this curve, each a time (ms) and how late it was then (s)."""
    return sum(off_between_samples_s(curve, time - late_s * SECOND_MS) for time, late_s in latenesses)
