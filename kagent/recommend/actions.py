"""What can be done about a finding, for the kind of group it is: ranked, each with the exact setting or command.

No broker can be asked to move a partition. What a group's clients can do decides what is feasible (see the table in
``docs/judgement.md``); what cannot be done is shown with its reason, never first. Which remedies a verdict has, and in which order,
its detector says: no maker here asks for the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kagent.contract.recommendation import Action, ActionType
from kagent.detect.detectors import MOVES_CURE, OF
from kagent.detect.forecast import longest_s
from kagent.detect.remedies import Remedy
from kagent.recommend.advice import Advice, action, gains
from kagent.recommend.member_actions import (
    assign_anew,
    fewer_members,
    more_members,
    more_parallelism,
    other_process,
    restart_member,
    restart_silent,
    start_members,
    steady_members,
    steady_number,
)
from kagent.recommend.moving_actions import can_follow, follow_plan, switch_assignor, wait
from kagent.recommend.topic_actions import (
    abort_transaction,
    fix_record,
    keep_longer,
    more_partitions,
    more_partitions_too,
    spread_keys,
    suspect_record,
)

BEST_FIRST = ("yes", "unknown", "no")


def actions(advice: Advice) -> list[Action]:
    """What can be done, best first: feasible before unknown before infeasible, of these what likely catches up in time before what does not, then
    in the order of the detector."""
    made = [a for remedy in OF[advice.finding.decided].REMEDIES for a in MAKERS[remedy](advice)]
    # list.sort is stable, so the detector's own order holds among equals.
    made.sort(key=lambda a: (BEST_FIRST.index(a.feasible), _too_long(advice, a)))
    if not any(a.feasible != "no" for a in made):
        how = _nothing(advice)
        made.insert(0, action(ActionType.NONE, how, "yes"))
    return made


def _too_long(advice: Advice, option: Action) -> int:
    """0: the group likely catches up with it in the time in which a remedy has to, or that is not known; 1: later; 2: never."""
    likely = option.gain.get("likely", 0.0)
    return 2 if likely is None else int(likely > longest_s(advice.finding.behind))


def _nothing(advice: Advice) -> str:
    """The sentence that nothing can be done; where the message's reason says that moves would help, also why they cannot be made."""
    made = advice.reassignment
    wanted = made is not None and gains(made, advice.model) and made.earns_back
    if advice.finding.verdict not in MOVES_CURE or not wanted:
        return "Nothing can be done from outside the group's clients."
    why = can_follow(advice.model)[1]
    return f"The partitions cannot be moved as the group runs now: {why}, and no assignor that it can choose helps enough."


MAKERS: dict[Remedy, Callable[[Advice], Iterator[Action]]] = {
    Remedy.WAIT: wait,
    Remedy.FOLLOW_PLAN: follow_plan,
    Remedy.SWITCH_ASSIGNOR: switch_assignor,
    Remedy.MORE_MEMBERS: more_members,
    Remedy.FEWER_MEMBERS: fewer_members,
    Remedy.START_MEMBERS: start_members,
    Remedy.MORE_PARALLELISM: more_parallelism,
    Remedy.OTHER_PROCESS: other_process,
    Remedy.RESTART_MEMBER: restart_member,
    Remedy.RESTART_SILENT: restart_silent,
    Remedy.STEADY_NUMBER: steady_number,
    Remedy.STEADY_MEMBERS: steady_members,
    Remedy.ASSIGN_ANEW: assign_anew,
    Remedy.FIX_RECORD: fix_record,
    Remedy.SUSPECT_RECORD: suspect_record,
    Remedy.SPREAD_KEYS: spread_keys,
    Remedy.MORE_PARTITIONS: more_partitions,
    Remedy.MORE_PARTITIONS_TOO: more_partitions_too,
    Remedy.ABORT_TRANSACTION: abort_transaction,
    Remedy.KEEP_LONGER: keep_longer,
}
