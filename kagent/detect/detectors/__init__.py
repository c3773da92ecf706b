"""One detector a file, and the one list of the order in which they lead.

A detector is a module with ``VERDICT``, ``SPREAD`` (whether it is about how work is spread: then a change among such verdicts is
the same incident), ``URGENCY``, ``MEMBERS_MAY_HELP`` (where not, an autoscaler's number stands while it leads), ``MOVES_CURE`` (whether
another assignment alone cures it: then the message names the moves, and a worker that may apply plans takes them), ``ONE_MEMBER``
(whether it is about one member, so that another in its place is what was advised; then also ``MEMBER_REMARK``, the sentence beside that
member on the page), ``ASKS`` (what the coordinator must confirm),
``SIGNS`` (where none of them shows, and no other detector's, it is not asked: see ``kagent.detect.signs``), ``REMEDIES`` (``kagent.detect.remedies``, the best first), ``reason(model, finding)``, and ``find(model)``; those of spread have ``LINES`` instead
(``kagent.detect.late_member.Line``), which are asked for each late member.
"""

from __future__ import annotations

from types import ModuleType

from kagent.contract.recommendation import Verdict
from kagent.detect.detectors import (
    data_loss,
    hot_partition,
    idle_members,
    no_members,
    open_transaction,
    rebalance_storm,
    skew,
    slow_member,
    stalled_partition,
    stuck_member,
    under_provisioned,
)
from kagent.detect.finding import Finding
from kagent.detect.signs import Sign

ORDER: tuple[ModuleType, ...] = (
    data_loss,
    open_transaction,
    stalled_partition,
    rebalance_storm,
    stuck_member,
    slow_member,
    hot_partition,
    skew,
    under_provisioned,
    no_members,
    idle_members,
)
"""The order in which verdicts lead; those of spread are asked in this order, and the first that holds is the one."""
STANDING = tuple(d for d in ORDER if not d.SPREAD)
SPREAD = frozenset(d.VERDICT for d in ORDER if d.SPREAD)
MOVES_CURE = frozenset(d.VERDICT for d in ORDER if d.MOVES_CURE)
ONE_MEMBER = frozenset(d.VERDICT for d in ORDER if d.ONE_MEMBER)
MEMBER_REMARKS: dict[Verdict, str] = {d.VERDICT: d.MEMBER_REMARK for d in ORDER if d.ONE_MEMBER}
SIGNS: tuple[Sign, ...] = tuple(dict.fromkeys(sign for detector in ORDER for sign in detector.SIGNS))
"""Each once, however many detectors wait for it."""
OF: dict[Verdict, ModuleType] = {d.VERDICT: d for d in ORDER}


def more_urgent(finding: Finding, verdict: str) -> bool:
    """Whether a finding that has a verdict is more urgent than another verdict; never than one that no detector here gives."""
    # Of a row that an older version wrote the verdict is not known, and a newer one's has no detector here.
    return verdict in OF and OF[finding.decided].URGENCY.rank < OF[Verdict(verdict)].URGENCY.rank
