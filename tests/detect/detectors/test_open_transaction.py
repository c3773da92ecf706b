"""blocked_by_transaction: the commit stands at the last stable offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kagent.detect.detectors import open_transaction
from tests.fixtures.findings import FINE, FOUR, leading

Make = Callable[..., Any]


def stands(group: Make, stable: int, ago: int = 900) -> Any:
    part = {
        "end": 10_000_000,
        "rate": 100,
        "committed": 10_000_000 - 100 * ago,
        "moved": ago,
        "stable": stable,
    }
    return group({"t": [part, *7 * [FINE]]}, FOUR)


def test_what_stands_at_the_last_stable_offset_is_a_transaction_and_before_it_a_record(group: Make) -> None:
    held, record = stands(group, 9_910_000), stands(group, 10_000_000)
    model, found = held.looked(standing=held.stood())

    assert leading(found) == "blocked_by_transaction"
    assert found[0].evidence["last_stable_offset"] == 9_910_000
    assert found[0].evidence["stands_s"] == round(found[0].behind)
    assert "a transaction on it has been open for" in open_transaction.reason(model, found[0])
    assert leading(record.looked(standing=record.stood())[1]) == "stalled"


def test_a_transaction_of_some_minutes_is_no_matter(group: Make) -> None:
    assert leading(stands(group, 10_000_000 - 20_000, 200).looked()[1]) == "balanced"
