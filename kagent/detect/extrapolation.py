"""Lateness beyond the known log ends: it is extrapolated by the inflow that is known, and so it may be off.

Two that are compared must rest on the same inflow, and differ by more than the inflow of an unseen stretch may have strayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from statistics import NormalDist

from kagent.detect.capacity import pooled_variance
from kagent.detect.evidence import LatenessLimits
from kagent.detect.group_model import GroupModel
from kagent.detect.lateness_sample import LatenessSample
from kagent.detect.state import MemberState, Older, Spell
from kagent.lag.chance import RARE, TAIL, UNSEEN
from kagent.lag.time_units import MINUTE_MS


def older_of_topics(model: GroupModel, at: int, topics: Mapping[str, float]) -> dict[str, Older]:
    """How much of each topic's lateness (s) is older than its known log ends; those of which a part is."""
    found = {}
    for topic, late_s in topics.items():
        rows = model.held_of(at, topic)
        seconds = model.beyond_known_s(at, rows, late_s)
        if seconds > 0:
            found[topic] = Older(round(seconds, 1), round(model.records_continued(rows), 6))
    return found


def may_be_on_purpose(model: GroupModel, at: int) -> bool:
    """Whether all that a member is late with may be read late on purpose: topics that everyone who holds them reads late, beside others that it reads on
    time, and whose records that wait are older than the known log ends. Nothing tells such a delay from too little speed until these reach back."""
    spell = model.member_state(at).spell
    if spell is None or not spell.older:
        return False
    on_time_s, topics = LatenessLimits.of(model.policy).on_time, model.topic_lateness_at_commit(at)
    late = {topic for topic, late_s in topics.items() if late_s >= on_time_s}
    some_on_time = 0 < len(late) < len(topics)
    return some_on_time and late <= spell.older.keys() and late <= model.unmeasured_read_late_by_all


def rescaled(known: MemberState, sample: LatenessSample) -> MemberState:
    """The member with its earlier extrapolated lateness by the inflow that is known now: two that are compared rest on the same one, or
    each rise of the inflow would pass for the member catching up."""
    known = replace(known, spell=_topics_rescaled(known.spell, sample))
    if not known.continued or not sample.continued or known.continued == sample.continued:
        return known if known.continued == sample.continued else replace(known, continued=sample.continued)
    factor = known.continued / sample.continued
    latenesses = tuple(
        (time, round(late + (factor - 1) * _extrapolated_s(time, late, sample), 1))
        for time, late in known.lateness
    )
    return replace(
        known, continued=sample.continued, lateness=latenesses, spell=_spell_rescaled(known.spell, factor)
    )


def _extrapolated_s(time: int, late: float, sample: LatenessSample) -> float:
    """How much of an earlier lateness is older than the log ends that are known at a later, extrapolated sample."""
    known_s = sample.trend - sample.extrapolated_s - (sample.time - time) / 1000
    return max(0.0, late - known_s)


def _spell_rescaled(spell: Spell | None, factor: float) -> Spell | None:
    if spell is None or not spell.extrapolated_s:
        return spell
    older_s = spell.extrapolated_s
    return replace(
        spell,
        reference=round(spell.reference + (factor - 1) * older_s, 1),
        extrapolated_s=round(factor * older_s, 1),
    )


def _topics_rescaled(spell: Spell | None, sample: LatenessSample) -> Spell | None:
    if spell is None or not spell.older:
        return spell
    topics, older = dict(spell.topics), dict(spell.older)
    for topic, part in spell.older.items():
        if topic not in sample.older:
            continue
        factor = part.inflow / sample.older[topic].inflow
        then, latest = topics[topic]
        topics[topic] = round(then + (factor - 1) * part.seconds, 1), latest
        older[topic] = Older(round(factor * part.seconds, 1), sample.older[topic].inflow)
    return replace(spell, topics=topics, older=older)


def unsure_s(model: GroupModel, at: int, spell: Spell, extrapolated_s: float) -> float:
    """How far what the lateness rose by since the spell began may be off, s: what was read meanwhile came in a stretch of which the inflow
    is not known."""
    read_s = abs(spell.extrapolated_s - extrapolated_s)
    # Of all members, as the few minutes of one tell little of its own.
    usual = float(model.inflow.mid[at])
    variance = model.swing / usual if model.swing is not None and usual > 0 else 0.0
    return _strays(variance, len(model.columns.rates), read_s) * read_s


def topic_unsure_s(model: GroupModel, at: int, topic: str, then: Older, now: Older) -> float:
    """The same of one topic, s."""
    read_s = abs(then.seconds - now.seconds)
    return _topic_strays(model, at, topic, read_s) * read_s


def _topic_strays(model: GroupModel, at: int, topic: str, seconds: float) -> float:
    usual, known = float(model.columns.median_rates[model.held_of(at, topic)].sum()), len(model.columns.rates)
    # Three minutes that were alike by chance promise nothing for the stretch before them.
    variance = pooled_variance((model.swing_of(topic) or 0.0) / max(usual, 1e-3), known)
    return _strays(variance, known, seconds)


def _strays(variance: float, known: int, seconds: float) -> float:
    """How far the mean inflow of a stretch before the known log ends, ``seconds`` long, may have been from that of the ``known`` minutes, as a
    share of it: by the standard deviation of the difference of the two means. ``variance``: the relative one of a minute."""
    minutes = 1 / known + MINUTE_MS / 1000 / max(seconds, MINUTE_MS / 1000)
    # A tide of some hours: twice what an estimate may be off. Looked at every few seconds, at each member: what comes once in twenty looks
    # comes in every hour.
    return TAIL * UNSEEN + NormalDist().inv_cdf(1 - 1 / RARE) * sqrt(variance * minutes)
