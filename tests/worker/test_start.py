"""A worker whose cluster goes away while it starts waits for it, as one that starts without a cluster does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_a_worker_whose_broker_ends_while_it_starts_says_so_and_begins_anew(
    kagent: Callable[..., Any],
) -> None:
    running = kagent()
    start_in_two_steps(running)
    running.eventually("the worker has reached the cluster", (running.folder / "reached").exists)
    running.broker.kill()
    (running.folder / "go_on").touch()
    running.eventually("it begins anew", lambda: "this worker restarts: the cluster" in running.log("worker"))

    running.broker.start()

    running.eventually("it reports on its state", running.state)
    assert "Traceback" not in running.log("worker")


def start_in_two_steps(running: Any) -> None:
    """The worker's process, that waits before Faust's clients connect."""
    port = str(yaml.safe_load(running.config.read_text())["worker"]["web_port"])
    faust = ["--datadir", str(running.folder / "data"), "-A", "kagent.app", "worker", "--web-port", port]
    running.logins["worker"] = {"KAGENT_CONFIG": str(running.config)}
    running.start_module(
        "worker", "tests.fixtures.start_in_two_steps", str(running.folder), *faust, "-l", "info"
    )
