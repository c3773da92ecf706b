"""What a message says beside its verdict, whatever the verdict is."""

from __future__ import annotations

import re
from typing import Any

from kagent.contract.recommendation import Status
from kagent.detect.state import MemberState
from kagent.recommend.render import compose, diagnose
from tests.fixtures.findings import FINE, FOUR, SILENT
from tests.fixtures.group_builder import NOW

HOUR = 3_600_000


def test_of_a_group_without_members_the_evidence_says_how_late_it_is(group: Any) -> None:
    gone = group({"t": [{**FINE, "rate": 100, "lag": 0, "age": 7200}]}, {})
    at = gone.observe().now - 2 * HOUR
    model, found = gone.looked(members_at=at, empty_since=at)

    message = compose(diagnose(model, found[0]), "i", 0, Status.OPEN)

    assert message.members == []
    assert message.evidence["behind_s"] == round(found[0].behind) > 0


def test_of_a_member_that_commits_nothing_it_has_all_that_is_not_committed(group: Any) -> None:
    """At its last commit it had caught up: by that it would be stuck, 0 s and 0 records behind."""
    made = group({"t": [SILENT, SILENT, *6 * [FINE]]}, FOUR)
    name = made.roster().names[0]
    model, found = made.looked(members={name: MemberState(silent_s=800.0, silent_seen=NOW - 2500)})
    message = compose(diagnose(model, found[0]), "i", 0, Status.OPEN)
    stuck = next(member for member in message.members if member.member == name)

    assert str(message.verdict) == "stuck_member"
    assert stuck.seconds_behind == round(found[0].behind, 1) > 800
    assert stuck.lag == found[0].evidence["unread"] > 0


def test_each_partition_of_a_stuck_member_whose_records_wait_may_hold_the_record_that_hangs_it(
    group: Any,
) -> None:
    made = group({"t": [SILENT, SILENT, *6 * [FINE]]}, FOUR)
    name = made.roster().names[0]
    model, found = made.looked(members={name: MemberState(silent_s=800.0, silent_seen=NOW - 2500)})
    suspect = next(a for a in diagnose(model, found[0]).actions if a.type == "skip_or_fix_record")

    assert re.search(
        r"look at the records of t-[01] from offset \d+ on, t-[01] from offset \d+ on: one of them",
        suspect.how,
    )
