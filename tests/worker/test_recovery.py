"""Nothing is lost: a short soak. Processes of one kagent are killed, frozen and stopped, and no incident opens twice or is forgotten.

`make soak` does the same for as long as it is told to, with more workers. The oracle is not kagent: :mod:`tests.worker.soak`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from kagent.contract.recommendation import Status
from tests.fixtures.waiting import PATIENCE_S
from tests.worker.soak import SKEWED, Soak

# The tests go on from each other's state: one that fails is not run a second time.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow(minutes=5), pytest.mark.flaky(reruns=0)]

SEED = 16
QUIET_GROUPS = 8


@pytest.fixture(scope="module")
def soak(kagent: Callable[..., Any], policy: dict[str, Any]) -> Soak:
    """A kagent that watches a group whose first member gets more than it can do, with its incident open."""
    made = Soak(kagent(policy), SEED, workers=1, quiet=QUIET_GROUPS)
    made.start()
    return made


@contextmanager
def page_of(soak: Soak) -> Iterator[Page]:
    """The worker's page in Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(f"http://127.0.0.1:{soak.ports['worker']}/")
        yield page
        browser.close()


@pytest.mark.timeout(2400)
def test_a_short_soak_under_an_open_page_loses_doubles_and_forgets_nothing(soak: Soak) -> None:
    without_a_pipeline_nothing_opens_or_resolves_and_the_page_says_what_is_gone(soak)
    for name, fault in soak.short():
        soak.inflict(name, fault)
        assert soak.findings == [], soak.summary()

    assert soak.verdict() == []
    assert not soak.exits, soak.summary()


def without_a_pipeline_nothing_opens_or_resolves_and_the_page_says_what_is_gone(soak: Soak) -> None:
    running = soak.running
    with page_of(soak) as page:
        page.get_by_text("1 incident open").wait_for()
        page.get_by_role("alert").wait_for(state="detached")  # a starved machine may be blind for a moment
        before = len(running.history())

        assert running.stop("pipeline") == 0
        page.get_by_role("alert").get_by_text("Blind on main").wait_for()
        running.eventually("the state says blind", lambda: (s := running.state()) and s.status == "blind")
        running.eventually("the open incident is marked stale", lambda: running.incident(SKEWED).stale)
        said = running.history()[before:]
        assert {rec.status for rec in said} <= {Status.UPDATED, Status.SUPERSEDED}
        assert said[-1].stale

        running.kill("worker")
        page.get_by_role("alert").get_by_text("The worker does not answer").wait_for()

        soak.commit(1)
        soak.start_one("worker")
        soak.start_one("pipeline")
        page.get_by_role("alert").wait_for(state="detached")
        page.get_by_text("1 incident open").wait_for()
    soak.wait_until_judged()
    assert soak.seen_now() == []
