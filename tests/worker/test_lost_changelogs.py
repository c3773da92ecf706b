"""A worker whose changelogs are lost finds every group of the cluster again, also one that never commits again: on a real broker."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from kagent.tables.declaration import ROWS

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def shown(running: Any) -> dict[str, Any]:
    port = yaml.safe_load(running.config.read_text())["worker"]["web_port"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/groups", timeout=10) as answer:
            groups = json.load(answer)["groups"]
    except OSError:
        return {}
    return {group["group"]: group for group in groups}


def judged(running: Any) -> bool:
    """Whether both groups are in the API and judged, and the one that does not commit again has the lag that it has."""
    state, found = running.state(), shown(running)
    whole = found.keys() == {"once", "held"} and found["once"].get("lag_records") == 10
    members = whole and found["held"].get("member_count") == 1
    return bool(members and state and state.status == "watching" and state.judged == 2)


def test_groups_that_do_not_commit_again_are_judged_after_all_rows_were_lost(
    kagent: Callable[..., Any],
) -> None:
    running = kagent()
    running.topic("orders", 2)
    running.produce("orders", {0: 10, 1: 10})
    running.commit("once", {("orders", 0): 4, ("orders", 1): 6})
    running.member("held", 0, ("orders",), cost=0.0, commit=0.5)
    running.start_pipeline()
    running.start_worker()
    running.eventually("both are judged", lambda: judged(running))

    running.stop("worker")
    client = AdminClient({"bootstrap.servers": running.broker.bootstrap})
    names = [f"kagent-{table}-changelog" for table in ROWS]
    for future in client.delete_topics(names).values():
        future.result(30)
    running.start_worker()

    running.eventually("both are judged again", lambda: judged(running))
    running.assert_table_equals_admin()
    assert "groups were not known any more" in running.log("worker")
    assert "Traceback" not in running.log("worker")
