"""Two workers: either answers for both, and when one is killed nobody is silently left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from confluent_kafka import Producer

from kagent.contract.events import GroupEvent, TopicOffsets, encode
from kagent.embedded.broker import free_port

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

NAMES = ["even", "odd"]


def test_either_of_two_workers_answers_for_both_and_names_what_is_missing(
    kagent: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, second = kagent(), free_port()
    first = yaml.safe_load(running.config.read_text())["worker"]["web_port"]
    running.topic("orders", 1)
    producer, now = Producer({"bootstrap.servers": running.broker.bootstrap}), int(time.time() * 1000)
    for partition, name in enumerate(NAMES):
        event = GroupEvent("main", name, 0, now, [TopicOffsets("orders", None, [0], [40], [now], [1])])
        producer.produce("kagent-group-events", encode(event), f"main/{name}", partition=partition)
    assert producer.flush(30) == 0

    def asked(port: int) -> dict[str, Any]:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/api/groups", timeout=30)
        except httpx.HTTPError:
            return {}
        said: dict[str, Any] = answer.json()
        return said

    def never_silently_incomplete(said: dict[str, Any]) -> dict[str, Any]:
        names = sorted(g["group"] for g in said.get("groups", ()))
        assert not said or names == NAMES or not said["complete"], said
        return said

    def is_whole(said: dict[str, Any], workers: int) -> bool:
        return (
            bool(said) and said["complete"] and len(said["workers"]) == workers and len(said["groups"]) == 2
        )

    def whole(port: int, workers: int) -> bool:
        return is_whole(never_silently_incomplete(asked(port)), workers)

    running.start_worker()
    # Until it has read the events that came before its start, no worker knows of these groups.
    running.eventually("the first worker knows all", lambda: is_whole(asked(first), 1))
    monkeypatch.setenv("KAGENT_WORKER__DATA", str(tmp_path / "second"))
    running.start("second", "worker", "--web-port", str(second))
    running.eventually("either answers for both", lambda: whole(first, 2) and whole(second, 2))
    running.kill("worker")
    running.eventually("the other takes over", lambda: whole(second, 1))
