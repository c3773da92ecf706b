"""Whatever stands on the topic of deliveries, a bridge starts: at the worst an alert is sent once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kagent.alert.delivery_log import DeliveryLog, of_destination
from kagent.settings import Cluster, Topics


@given(st.dictionaries(st.sampled_from(["hook/", "hook/main/g", "hook/main", "other/x", ""]), st.binary()))
@example({"hook/": b"9" * 5000})
@example({"hook/": "٣".encode()})
@example({"hook/main/g": b'{"rec": {}, "first_severity": "page"}'})
def test_no_record_of_a_delivery_keeps_a_bridge_from_starting(records: dict[str, bytes]) -> None:
    since, delivered = of_destination(records, "hook")

    assert since is None or 0 <= since < 2**63
    assert not delivered


@pytest.mark.parametrize(
    ("value", "since"), [(b"1700000000000", 1_700_000_000_000), (b"", None), (b"-1", None)]
)
def test_a_destination_knows_when_it_was_first_started(value: bytes, since: int | None) -> None:
    assert of_destination({"hook/": value}, "hook")[0] == since


class Producer:
    """Never starts."""

    running = False

    def __init__(self, **options: Any) -> None:
        """Options are of no use to it."""

    async def start(self) -> None:
        Producer.running = True
        await asyncio.Event().wait()

    async def stop(self) -> None:
        Producer.running = False


@pytest.mark.asyncio
async def test_a_start_that_is_cancelled_leaves_no_producer_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kagent.alert.delivery_log.AIOKafkaProducer", Producer)
    starting = asyncio.create_task(DeliveryLog(Cluster(bootstrap="127.0.0.1:1"), Topics()).start())
    for _ in range(10):  # more turns of the loop than it takes to come to the wait
        await asyncio.sleep(0)
    assert Producer.running

    starting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not Producer.running
