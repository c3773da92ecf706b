"""blocked_by_transaction: a read_committed consumer waits at the last stable offset while the log goes on beyond it.

Holds where a commit stands at the last stable offset for `hold`. The log end is sampled at both isolation levels, which tells an
open transaction from a bad record. Severity: ticket.
"""

from __future__ import annotations

from collections.abc import Iterator

from kagent.contract.recommendation import Verdict
from kagent.detect.facts import at_stable, holders, named, worst
from kagent.detect.finding import NO_PROGRESS, Asks, Finding, Urgency
from kagent.detect.group_model import GroupModel
from kagent.detect.remedies import Remedy
from kagent.detect.signs import BEHIND
from kagent.text import partition_name, span

VERDICT = Verdict.BLOCKED_BY_TRANSACTION
SPREAD = False
URGENCY = Urgency.HELP
MEMBERS_MAY_HELP = False
MOVES_CURE = False
ONE_MEMBER = False
ASKS = Asks.STABLE
SIGNS = BEHIND
REMEDIES = (Remedy.ABORT_TRANSACTION,)


def find(model: GroupModel) -> Iterator[Finding]:
    """The partitions that a transaction holds up."""
    age, lags = model.age[0], model.lags
    # Leads before `stalled` (see ORDER): the reader stops as if it could not process a record, and skipping one would lose data.
    # Hanging transactions, and the tool that finds them:
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-664%3A+Provide+tooling+to+detect+and+abort+hanging+transactions
    rows = worst(model.relevant & at_stable(model) & (age >= model.policy.hold), age)
    if rows:
        evidence = {
            "partitions": named(model, rows),
            "last_stable_offset": int(lags.stable[rows[0]]),
            "end": int(lags.end[rows[0]]),
            "stands_s": round(float(age[rows[0]])),
        }
        began = int(model.now - age[rows[0]] * 1000)
        yield Finding(VERDICT, holders(model, rows), rows, float(age[rows[0]]), evidence, since=began)


def looks_like(model: GroupModel, finding: Finding) -> bool:
    """Whether an open transaction would give this finding too: without last stable offsets, which not every sample has, it is a
    standstill like any other."""
    rows = list(finding.rows)
    return finding.verdict in NO_PROGRESS and bool(rows) and bool((model.lags.stable[rows] < 0).all())


def reason(model: GroupModel, finding: Finding) -> str:
    """The sentence of the message."""
    topic, partition = model.lags.name(finding.rows[0])
    return (
        f"{partition_name(topic, partition)} cannot be read beyond offset {finding.evidence['last_stable_offset']}: "
        f"a transaction on it has been open for {span(finding.behind)}."
    )
