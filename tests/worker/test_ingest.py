"""What an event says of one group's members must hold for all code that looks at all groups."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kagent.contract.admission import Refused
from kagent.contract.events import GroupEvent, MembershipRecord, encode
from tests.worker.http.test_server import membership
from tests.worker.test_engine import NOW, commit, desk, event

OTHER_TYPES: dict[str, Any] = {"topics": [{}], "clientId": None, "clientHost": 7, "partitions": [0.5]}


@pytest.mark.parametrize("field", OTHER_TYPES)
def test_a_membership_record_with_values_of_other_types_is_not_let_in(field: str) -> None:
    worker = desk()
    worker.take(0, 0, event("sound", [commit(1, 42, 7)]))
    record = orjson.loads(orjson.dumps(membership()))
    member = record["value"]["members"][0]
    places = {
        "topics": member["subscription_decoded"],
        "partitions": member["assignment_decoded"]["assignedPartitions"][0],
    }
    places.get(field, member)[field] = OTHER_TYPES[field]
    bad = GroupEvent("main", "hurt", 3, NOW, records=[MembershipRecord(8, NOW, record)])

    [refused] = worker.take(0, 1, encode(bad))

    assert isinstance(refused.error, Refused)
    assert refused.error.reason == "membership"
    assert worker.logs.needed_topics("main") == ({"orders"}, False)
