"""What a message says beside its verdict, whatever the verdict is."""

from __future__ import annotations

from typing import Any

from kagent.contract.recommendation import Status
from kagent.recommend.render import compose, diagnose
from tests.fixtures.findings import FINE

HOUR = 3_600_000


def test_of_a_group_without_members_the_evidence_says_how_late_it_is(group: Any) -> None:
    gone = group({"t": [{**FINE, "rate": 100, "lag": 0, "age": 7200}]}, {})
    at = gone.observe().now - 2 * HOUR
    model, found = gone.looked(members_at=at, empty_since=at)

    message = compose(diagnose(model, found[0]), "i", 0, Status.OPEN)

    assert message.members == []
    assert message.evidence["behind_s"] == round(found[0].behind) > 0
