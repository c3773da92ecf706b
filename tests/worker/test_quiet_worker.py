"""What a worker prints: kagent's own lines, warnings of its libraries, and all of it only for who asks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kagent.kafka.silent_client import silent_client
from kagent.settings import Settings
from kagent.worker.faust_app import faust_app
from kagent.worker.quiet_worker import SERVICES, QuietWorker

NAMES = ("", "kagent", "kagent.app", "kagent.worker", "aiokafka", "aiokafka.conn", "faust.tables", *SERVICES)


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """The levels of the test run itself come back."""
    before = {name: logging.getLogger(name).level for name in NAMES}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def level_of(name: str) -> int:
    return logging.getLogger(name).getEffectiveLevel()


def begin(quiet: bool, level: int) -> None:
    logging.getLogger().setLevel(level)
    # Without the constructor, which wants an event loop.
    worker: Any = object.__new__(QuietWorker)
    worker.quiet, worker.spinner = quiet, None
    worker.on_setup_root_logger(logging.getLogger(), level)


def test_kagents_own_lines_are_printed_and_of_its_libraries_only_warnings() -> None:
    begin(quiet=True, level=logging.INFO)

    assert level_of("kagent.app") == level_of("kagent.worker") == logging.INFO
    assert level_of("faust.tables") == level_of("aiokafka.conn") == logging.WARNING
    assert {level_of(module) for module in SERVICES} == {logging.WARNING}


@pytest.mark.parametrize(("quiet", "level"), [(False, logging.INFO), (True, logging.DEBUG)])
def test_who_asks_for_more_gets_the_lines_of_the_libraries_too(quiet: bool, level: int) -> None:
    begin(quiet, level)

    assert level_of("faust.tables") == level_of("aiokafka.conn") == level


def test_a_higher_level_holds_for_all() -> None:
    begin(quiet=True, level=logging.ERROR)

    assert level_of("kagent.app") == level_of("faust.tables") == logging.ERROR


def test_the_client_is_silent_while_somebody_else_says_what_is_waited_for() -> None:
    logging.getLogger().setLevel(logging.INFO)
    with silent_client(unless=logging.DEBUG):
        assert level_of("aiokafka.conn") == logging.CRITICAL

    assert level_of("aiokafka.conn") == logging.INFO


def test_the_app_is_run_by_the_quiet_worker(tmp_path: Path) -> None:
    about = {"clusters": {"main": {"bootstrap": "nowhere:1"}}, "worker": {"data": str(tmp_path)}}
    settings = Settings.model_validate(about)

    conf: Any = faust_app(settings, settings.home_cluster("main")).conf
    assert conf.Worker is QuietWorker
