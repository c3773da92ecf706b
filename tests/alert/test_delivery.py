"""One destination's queue and retries, against a real HTTP server and a real Alertmanager."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kagent.alert.bridge import Delivery
from kagent.alert.delivery_log import Delivered, DeliveryLog
from kagent.settings import Cluster, Topics
from kagent.settings.alert_destinations import AlertSettings
from tests.fixtures.waiting import until_async


class Kept(DeliveryLog):
    """What would be written to the topic."""

    def __init__(self) -> None:
        super().__init__(Cluster(bootstrap="127.0.0.1:1"), Topics())
        self.written: dict[str, Delivered | None] = {}

    async def write(self, destination: str, key: str, delivered: Delivered | None) -> None:
        self.written[key] = delivered


def made(kept: Kept, delivered: dict[str, Delivered] | None = None, **said: Any) -> Delivery:
    about = AlertSettings.model_validate({"destinations": {"x": said}}).destinations["x"]
    return Delivery("x", about, kept, delivered or {})


@pytest.mark.slow
async def test_what_waits_for_a_destination_that_is_down_arrives_in_order_and_once(
    receiver: Any, rec: Any
) -> None:
    kept = Kept()
    delivery = made(kept, type="webhook", url=receiver.url, retry_most=0.2)
    receiver.status = 503
    work = asyncio.create_task(delivery.run())
    delivery.put("main/a", rec("a"))
    await until_async(lambda: receiver.tried > 2)

    for at, verdict in enumerate(("slow_member", "stalled", "hot_partition"), 2):
        delivery.put("main/a", rec("a", status="updated", at=at, verdict=verdict))
    delivery.put("main/a", rec("a", status="resolved", at=9))
    delivery.put("main/b", rec("b"))
    assert kept.written == {}
    receiver.status = 200
    await until_async(lambda: receiver.events("b") == ["open"])
    work.cancel()

    assert receiver.events("a") == ["open", "change", "close"]
    assert [b["verdict"] for b in receiver.bodies() if b["event"] == "change"] == ["hot_partition"]
    assert kept.written["main/a"] is not None
    assert kept.written["main/a"].closed


async def test_a_message_that_will_never_be_taken_holds_up_nothing(receiver: Any, rec: Any) -> None:
    delivery = made(Kept(), type="webhook", url=receiver.url)
    receiver.status = 400
    work = asyncio.create_task(delivery.run())
    delivery.put("main/a", rec("a"))
    await until_async(lambda: delivery.counts["refused"] == 1)

    receiver.status = 200
    delivery.put("main/b", rec("b"))
    await until_async(lambda: receiver.events("b") == ["open"])
    work.cancel()

    assert receiver.tried == 2


async def test_an_error_that_nobody_foresaw_is_retried_without_its_text(
    receiver: Any, rec: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    delivery = made(Kept(), type="webhook", url=receiver.url, retry_most=0.2)
    send = delivery.sender.send

    async def failing(*said: Any) -> None:
        if delivery.counts["failed"] == 0:
            raise ValueError("the TOKEN of the receiver")
        await send(*said)

    monkeypatch.setattr(delivery.sender, "send", failing)
    work = asyncio.create_task(delivery.run())
    delivery.put("main/a", rec("a"))
    await until_async(lambda: receiver.events("a") == ["open"])
    work.cancel()

    assert "ValueError" in caplog.text
    assert "TOKEN" not in caplog.text


@pytest.mark.slow
async def test_an_alertmanager_fires_while_open_and_rests_when_closed(alertmanager: Any, rec: Any) -> None:
    kept = Kept()
    delivery = made(kept, type="alertmanager", url=alertmanager.url, resend=1)
    delivery.silent = lambda cluster: True
    work = asyncio.create_task(delivery.run())
    delivery.put("main/am", rec("am"))
    for at, name in enumerate(
        ("<script>alert(1)</script>", "x\x1b[2J", "n" * 32_000)
    ):  # taken as well, as data
        delivery.put(f"main/{at}", rec(name, id=str(at), opened_at=1_700_000_000_000))
    await until_async(lambda: len(alertmanager.now("am")) == 1)
    await until_async(lambda: {len(g) for g in alertmanager.groups()} >= {25, 8, 255})
    first = await asyncio.to_thread(alertmanager.now, "am")

    await until_async(lambda: "out of date" in alertmanager.now("am")[0]["annotations"]["summary"])
    await until_async(lambda: alertmanager.now("am")[0]["endsAt"] > first[0]["endsAt"])
    delivery.put("main/am", rec("am", status="updated", at=2, severity="page", verdict="stalled"))
    await until_async(lambda: alertmanager.now("am")[0]["annotations"]["verdict"] == "stalled")
    again = await asyncio.to_thread(alertmanager.now, "am")
    assert [a["labels"] for a in again] == [a["labels"] for a in first]
    work.cancel()

    restarted = made(
        kept, {k: t for k, t in kept.written.items() if t}, type="alertmanager", url=alertmanager.url
    )
    work = asyncio.create_task(restarted.run())
    restarted.put("main/am", rec("am", status="resolved", at=3))
    await until_async(lambda: not alertmanager.now("am"))
    work.cancel()
