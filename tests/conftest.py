"""Shared by all tests: nothing of the caller's environment reaches them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from kagent.kafka.broker import Broker

# How long one example takes says more of the machine than of the code.
settings.register_profile("kagent", deadline=None)
settings.load_profile("kagent")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the person who runs the tests are not seen by them."""
    for name in list(os.environ):
        if name.startswith("KAGENT_") and name != "KAGENT_CACHE":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a real broker that the tests share; use topics and groups of your own."""
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running.bootstrap


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Starts brokers for one test, which may kill them; all are stopped after it."""
    started: list[Broker] = []

    def start(**options: Any) -> Broker:
        started.append(Broker(tmp_path / f"broker-{len(started)}", **options).start())
        return started[-1]

    yield start
    for running in started:
        running.stop()
