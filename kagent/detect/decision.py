"""What is the matter with a group: first what stands, by each detector of that, then the table that decides why a member is late.

``LINES`` is the table, from the detectors of spread in their ``ORDER``: the first line that holds for a member decides. A line
without a verdict waits. The leading verdict must also be the one that two thirds of the looks of the last three minutes gave, and there must be enough evidence (``kagent.detect.evidence``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kagent.contract.recommendation import Verdict
from kagent.detect import evidence, inflow_swings, spells
from kagent.detect.detectors import MOVES_CURE, OF, ORDER, STANDING, data_loss, skew
from kagent.detect.evidence import COMMITS_RARE
from kagent.detect.extrapolation import may_be_on_purpose
from kagent.detect.finding import NO_PROGRESS, ROWS, Finding
from kagent.detect.group_model import GroupModel, observe
from kagent.detect.late_member import LateMember, Line
from kagent.detect.state import Backlog, JudgeState, MemberState, Spell
from kagent.lag.chance import NOT_CHANCE
from kagent.lag.observation import Observation
from kagent.policy import Policy

LINES: tuple[Line, ...] = tuple(line for detector in ORDER if detector.SPREAD for line in detector.LINES)


@dataclass(frozen=True)
class GroupFindings:
    """All that is the matter, the leading one first, and the state with this look's votes."""

    findings: tuple[Finding, ...]
    state: JudgeState


def examine(seen: Observation, state: JudgeState, policy: Policy) -> tuple[GroupModel, tuple[Finding, ...]]:
    """The model of a group and what is the matter with it, the leading finding first. What was learned is in the model's state."""
    model = observe(seen, state, policy)
    # After the model: spells need the lateness and T that its capacity gives.
    decision = decide(replace(model, state=spells.advance(model, state)))
    return replace(model, state=replace(decision.state, last_tick=seen.now)), decision.findings


def decide(model: GroupModel) -> GroupFindings:
    """What the detectors find in a group."""
    found = [f for detector in STANDING if detector is not data_loss for f in detector.find(model)]
    state = data_loss.learn(model, {at for f in found if f.verdict in NO_PROGRESS for at in f.rows})
    model = replace(model, state=state)
    stuck = {member for f in found if f.verdict is Verdict.STUCK_MEMBER for member in f.members}
    found += data_loss.find(model, stuck)
    # No forecast and no evidence are asked for: the user wants each crossing of the ratio.
    if skew.is_literal(model.policy):
        return GroupFindings(_ordered([*found, *skew.crossing(model, model.policy.threshold)]), state)
    spread, members = [], dict(state.members)
    for at in running(model):
        member = LateMember(model, at)
        line, facts = _line(member)
        members[member.name] = _voted(member, line, members[member.name])
        finding = _finding(member, line, facts, members[member.name])
        if finding is not None:
            spread.append(finding)
    # One finding of spread a group: its plan is for the whole group, whichever member is named.
    spread.sort(key=lambda f: (not f.ripe, -f.behind))
    return GroupFindings(
        _ordered([*found, *_together(spread)]), replace(state, members=members) if spread else state
    )


def _together(spread: list[Finding]) -> list[Finding]:
    """The leading finding of spread, with the other members of which the same is found, the latest first: five on a bad machine are all
    restarted, or four stay slow."""
    if not spread:
        return []
    lead, *rest = spread
    if not lead.ripe or not OF[lead.decided].ONE_MEMBER:
        return [lead]
    # What they lack is the time that they have been late, or looks; not the proof.
    same = [at for f in rest if f.verdict is lead.verdict and f.missing != "unsure" for at in f.members]
    return [replace(lead, members=(*lead.members, *same))]


def _ordered(found: list[Finding]) -> tuple[Finding, ...]:
    # Last of all what has no verdict yet.
    order: list[Verdict | None] = [*(d.VERDICT for d in ORDER), None]
    return tuple(sorted(found, key=lambda f: (not f.ripe, order.index(f.verdict))))


def running(model: GroupModel) -> Iterator[int]:
    """Codes of the members whose spell or backlog clock runs."""
    for at, name in enumerate(model.names):
        known = model.state.members.get(name)
        if known is not None and (known.spell is not None or known.backlog is not None) and known.lateness:
            yield at


def _line(member: LateMember) -> tuple[Line | None, dict[str, Any]]:
    for line in LINES:
        facts = line.holds(member)
        if facts is not None:
            return line, facts
    return None, {}


def _voted(member: LateMember, line: Line | None, known: MemberState) -> MemberState:
    """The member with one more vote for each clock that this look has advanced."""
    vote = str(line.verdict) if line is not None and line.verdict else "wait"
    # Being unsure is no vote against what is found at other looks, and who was never certainly busy cannot be judged yet.
    if line is None or (vote == "wait" and not member.measured):
        return known
    model, limits = member.model, evidence.LatenessLimits.of(member.model.policy)
    incident = model.state.incident
    stood_s = (model.now - incident.opened_at) / 1000 if incident else 0.0
    clocks = {"spell": known.spell, "backlog": known.backlog}
    # A look without a newer commit has no vote: the same commits would be counted again.
    after = {
        name: replace(
            clock,
            votes=evidence.voted(clock.votes, vote, evidence.looks_that_count(clock, limits, stood_s)),
            voted=clock.commits,
        )
        for name, clock in clocks.items()
        if clock is not None and clock.voted < clock.commits
    }
    return replace(known, **after)  # type: ignore[arg-type]


def _finding(
    member: LateMember, line: Line | None, facts: dict[str, Any], known: MemberState
) -> Finding | None:
    """The finding for a late member: ripe or not, and what is missing."""
    limits = evidence.LatenessLimits.of(member.model.policy)
    grown = known.spell.grown_s if known.spell else 0.0
    need = _line_needs_s(member, line, limits)
    missing = _missing(member, line, known, need, limits)
    swing = inflow_swings.explanation(member) if missing is None else None
    if swing is not None:
        grown, need, missing = swing.lasted_s, swing.rare_after_s, "swing"
    rows = tuple(member.rows[:ROWS].tolist())
    if "row" in facts:
        row = int(facts["row"])
        rows, facts = (row, *(r for r in rows if r != row)), {k: v for k, v in facts.items() if k != "row"}
    return Finding(
        line.verdict if line else None,
        members=(member.at,),
        rows=rows,
        behind=float(member.model.least_lateness[member.at]),
        evidence=facts,
        since=member.late_since,
        ripe=missing is None,
        evidence_s=round(grown, 1),
        needed_s=round(need, 1),
        missing=missing,
    )


def _line_needs_s(member: LateMember, line: Line | None, limits: evidence.LatenessLimits) -> float:
    """How long the member must have been late and growing for this line, s: at least what its group needs."""
    model = member.model
    need = max(evidence.growing_need_s(model.state, model.now, model.policy), _on_purpose_need_s(member))
    # What holds for an optimist alone waits until the intervals are narrower: with 60 s, of 89 sick archetypes (five seeds each) three
    # opened with such a verdict and had another one minutes later, with 180 s none.
    if line is None or line.verdict is None or (line.likely and not _slowed_down(member)):
        return need
    return max(need, model.policy.evidence * limits.draining_need)


def _on_purpose_need_s(member: LateMember) -> float:
    """How long it must have been late at least where it may be so on purpose, s: as long as anybody waits for a drain, or until its lateness is measured."""
    return member.model.policy.await_drain if may_be_on_purpose(member.model, member.at) else 0.0


def _slowed_down(member: LateMember) -> bool:
    """Whether it certainly does less than it did before it fell behind."""
    # What slows it may pass within minutes, as a database that fails over or a long garbage collection; a bad spread does not pass by itself.
    return member.speed[2] < member.proven_before


def _missing(
    member: LateMember, line: Line | None, known: MemberState, need: float, limits: evidence.LatenessLimits
) -> str | None:
    """Why the finding is not published yet; None if it is ripe."""
    if line is None:
        return "unsure"
    if line.verdict is None:
        return line.why
    # With commits minutes apart, one look brings all the seconds that are needed. One window says how fast the member is, or that it paused:
    # with another one, a pause of minutes is half of what is known.
    if len(member.model.windows_of(member.at)) < (COMMITS_RARE if line.likely else NOT_CHANCE):
        return "unsure"
    # A spell goes on below the limits at which it begins, so that noise does not end it; what opens is late now.
    if not limits.is_late(member.lateness, float(member.model.drain_low[member.at])):
        return "evidence"
    gap = float(member.model.columns.gap[member.at])
    if _may_have_grown(member, known.spell) and evidence.enough_growth(known, gap, need, limits):
        return _agreed(known.spell, line)
    if line.verdict in MOVES_CURE and not member.never_drains:
        ratio = member.speed[1] / member.inflow[1] if member.inflow[1] > 0 else float("inf")
        needs = evidence.draining_need_s(member.model.state, member.model.now, member.model.policy)
        least = max(needs, _on_purpose_need_s(member))
        if evidence.enough_drain(known, least, ratio, limits):
            return _agreed(known.backlog, line)
    return "evidence"


def _may_have_grown(member: LateMember, spell: Spell | None) -> bool:
    """Whether growth may be the evidence: the member still gets later, or is reported already, and what was reported may fall for a while."""
    # All may be over by the time that other evidence has come.
    return member.model.state.incident is not None or (spell is not None and spell.grew_at == spell.last)


def _agreed(looks: Spell | Backlog | None, line: Line) -> str | None:
    """Why the verdict still waits for the looks to agree; ``None``: it need not."""
    return None if looks and evidence.agreed(looks.votes, str(line.verdict)) else "votes"
