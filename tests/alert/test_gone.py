"""An alert whose incident is missing on its topic is closed only where a kagent that watches has had time to publish it again."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.alert.bridge import GONE_AFTER_S, Bridge, Delivery
from kagent.alert.delivery_log import Delivered
from kagent.contract.recommendation import State
from kagent.settings import Cluster, Settings
from kagent.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def bridge(rec: Any, clock: FakeClock) -> Bridge:
    """It has read a topic on which an incident that it had sent is missing."""
    made = bridge_of(clock, {"main/one": Delivered.of(rec("one"), None)})
    made._catch_up({})
    return made


def bridge_of(clock: FakeClock, delivered: dict[str, Delivered]) -> Bridge:
    settings = Settings.model_validate(
        {
            "clusters": {"main": {"bootstrap": "127.0.0.1:1"}, "other": {"bootstrap": "127.0.0.1:2"}},
            "alert": {"destinations": {"hook": {"type": "webhook", "url": "http://127.0.0.1:1/"}}},
        }
    )
    made = Bridge(settings, Cluster(bootstrap="127.0.0.1:1"), clock)
    about = settings.alert.destinations["hook"]
    made.deliveries.append(Delivery("hook", about, made.delivery_log, delivered, clock))
    return made


def said(bridge: Bridge, status: str = "watching", cluster: str = "main") -> None:
    state = {"type": "state", "cluster": cluster, "time": int(bridge.clock() * 1000), "status": status}
    bridge._take(
        cluster,
        State.model_validate({**state, "version": "1"}),
    )


def closed(bridge: Bridge) -> bool:
    return list(bridge.deliveries[0].waiting.get("main/one", ())) == [None]


def test_it_is_closed_once_kagent_has_watched_for_long_enough(bridge: Bridge, clock: FakeClock) -> None:
    said(bridge)
    assert not closed(bridge)

    clock.advance(GONE_AFTER_S)
    said(bridge)

    assert closed(bridge)


def test_it_stays_open_while_kagent_is_silent_or_blind(bridge: Bridge, clock: FakeClock) -> None:
    clock.advance(10 * GONE_AFTER_S)
    said(bridge, "blind")

    assert not closed(bridge)


def test_a_state_of_another_cluster_closes_nothing(bridge: Bridge, clock: FakeClock) -> None:
    said(bridge)
    clock.advance(GONE_AFTER_S)
    said(bridge, cluster="other")

    assert not closed(bridge)


def test_it_stays_open_where_it_is_published_again(bridge: Bridge, clock: FakeClock, rec: Any) -> None:
    bridge._take("main/one", rec("one", status="updated", at=2))
    clock.advance(GONE_AFTER_S)
    said(bridge)

    assert None not in bridge.deliveries[0].waiting["main/one"]


def test_reading_again_begins_no_new_time(bridge: Bridge, clock: FakeClock) -> None:
    clock.advance(GONE_AFTER_S)
    bridge._catch_up({})
    said(bridge)

    assert closed(bridge)
