"""A worker whose changelogs are lost finds every group of the cluster again, also one that never commits again: on a real broker."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient

from kagent.tables.declaration import ROWS
from tests.fixtures.streams_app import start_streams
from tests.fixtures.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow(minutes=3)]


WITH_A_MEMBER = ("held", "streams", "shared")
"""Groups with a member of each kind whose rows a coordinator can tell."""


def shown(running: Any) -> dict[str, Any]:
    port = yaml.safe_load(running.config.read_text())["worker"]["web_port"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/groups", timeout=10) as answer:
            groups = json.load(answer)["groups"]
    except OSError:
        return {}
    return {group["group"]: group for group in groups}


def judged(running: Any) -> bool:
    """Whether all groups are in the API and judged, with the members that they have, and the lag of the one that does not commit again."""
    state, found = running.state(), shown(running)
    whole = found.keys() == {"once", *WITH_A_MEMBER} and found["once"].get("lag_records") == 10
    members = whole and all(found[group].get("member_count") == 1 for group in WITH_A_MEMBER)
    return bool(members and state and state.status == "watching" and state.judged == len(found))


@pytest.fixture
def sharing() -> Iterator[Callable[[str, str], None]]:
    """Has a consumer take part in a share group, until the test ends."""
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def take_part(bootstrap: str, topic: str) -> None:
        consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": "shared", "log_level": 0})
        consumer.subscribe([topic])

        def run() -> None:
            while not ended.is_set():
                consumer.poll(0.5)
            consumer.close()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield take_part
    ended.set()
    for thread in threads:
        thread.join()


def test_groups_that_do_not_commit_again_are_judged_after_all_rows_were_lost(
    kagent: Callable[..., Any], sharing: Callable[[str, str], None]
) -> None:
    running = kagent()
    running.topic("orders", 2)
    running.produce("orders", {0: 10, 1: 10})
    running.commit("once", {("orders", 0): 4, ("orders", 1): 6})
    running.member("held", 0, ("orders",), cost=0.0, commit=0.5)
    running.processes["streams"] = start_streams(
        running.broker.bootstrap, "streams", "streams", running.folder, "orders", ms=1
    )
    sharing(running.broker.bootstrap, "orders")
    running.start_pipeline()
    running.start_worker()
    running.eventually("all are judged", lambda: judged(running))

    running.stop("worker")
    client = AdminClient({"bootstrap.servers": running.broker.bootstrap})
    names = [f"kagent-{table}-changelog" for table in ROWS]
    for future in client.delete_topics(names).values():
        future.result(PATIENCE_S)
    running.start_worker()

    running.eventually("all are judged again", lambda: judged(running))
    running.assert_table_equals_admin()
    assert "groups were not known any more" in running.log("worker")
    assert "Traceback" not in running.log("worker")
