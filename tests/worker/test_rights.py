"""The whole job with three logins on a broker that refuses whatever was not allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from kagent.client.client import current
from kagent.kafka.acls import rules
from kagent.settings import load

if TYPE_CHECKING:
    from tests.conftest import Guarded

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def as_user(guarded: Guarded, name: str) -> dict[str, str]:
    """Variables that log a process in as this user."""
    cluster = guarded.cluster(name)
    assert cluster.security.password is not None
    return {
        "KAGENT_BOOTSTRAP": cluster.bootstrap,
        "KAGENT_CLUSTERS__MAIN__SECURITY__PROTOCOL": cluster.security.protocol,
        "KAGENT_CLUSTERS__MAIN__SECURITY__USERNAME": name,
        "KAGENT_CLUSTERS__MAIN__SECURITY__PASSWORD": cluster.security.password.get_secret_value(),
    }


def test_pipeline_worker_and_subscriber_need_no_right_but_those_that_are_printed(
    kagent: Callable[..., Any], own_guarded: Guarded
) -> None:
    users = {name: as_user(own_guarded, name) for name in ("pipeline", "worker")}
    running = kagent(broker=own_guarded.broker, logins=users)
    for role, rights in rules(load(running.config).topics).items():
        own_guarded.allow(role, rights)
    running.topic("orders", 2)
    running.produce("orders", {0: 9, 1: 3})
    running.commit("idle", {("orders", 0): 4, ("orders", 1): 1})

    running.start_pipeline()
    running.start_worker()
    running.wait_until_watching()
    running.assert_table_equals_admin()
    heard = asyncio.run(current(own_guarded.cluster("subscriber")))

    assert heard["main"].status == "watching"
    said = running.log("pipeline") + running.log("worker")
    assert "uthorization" not in said, (
        "a refused request that is survived is one right too few, or one wish too many"
    )
