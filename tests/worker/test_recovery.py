"""Nothing is lost: worker, pipeline and broker are killed in turn, and no incident opens twice or is forgotten."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, sync_playwright

from kagent.contract.recommendation import Status

# The tests go on from each other's state: one that fails is not run a second time.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.flaky(reruns=0)]

GROUP = "skewed"
START = ((("orders", 0), ("orders", 1), ("orders", 2)), (("orders", 3),))


@pytest.fixture(scope="module")
def running(kagent: Callable[..., Any], policy: dict[str, Any]) -> Any:
    """A kagent that watches a group whose first member gets more than it can do, with its incident open."""
    made = kagent(policy)
    made.topic("orders", 4)
    for place in (0, 1):
        made.member(GROUP, place, ("orders",), start=START, cost=0.025)
    made.load("orders", [20.0] * 4)
    made.start_pipeline()
    made.start_worker()
    made.wait_until_watching()
    made.eventually("an incident opens", lambda: made.incident(GROUP))
    return made


def assert_still_one_incident(running: Any) -> None:
    """One id was ever opened, and it is open."""
    history = [rec for rec in running.history() if rec.group == GROUP]

    assert len({rec.id for rec in history}) == 1, [
        (r.as_of, r.id, r.status, r.skew, r.reason) for r in history
    ]
    assert [rec.status for rec in history].count(Status.OPEN) == 1
    assert running.incident(GROUP).status is not Status.RESOLVED


def judged_again(running: Any) -> None:
    """Wait until the group was judged from now on: watching, with the incident counted and not stale."""
    began = time.time()

    def fresh() -> bool:
        state, incident = running.state(since=began), running.incident(GROUP)
        return bool(
            state and state.status == "watching" and state.open == 1 and incident and not incident.stale
        )

    running.eventually("the group is judged again", fresh)


def assert_known(running: Any, offset: int) -> None:
    """What was committed meanwhile stands in the lag table as the broker's admin API tells it."""
    told = {("orders", 0): offset}
    assert running.committed()["still"] == told
    running.eventually("the commit is in the lag table", lambda: running.lag_table().get("still") == told)


@contextmanager
def page_of(running: Any) -> Iterator[Page]:
    """The worker's page in Chromium."""
    port = yaml.safe_load(running.config.read_text())["worker"]["web_port"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{port}/")
        yield page
        browser.close()


def test_an_open_page_says_that_the_pipeline_and_then_that_the_worker_is_gone(running: Any) -> None:
    with page_of(running) as page:
        page.get_by_text("1 incident open").wait_for()
        assert page.get_by_role("alert").count() == 0

        running.kill("pipeline")
        page.get_by_role("alert").get_by_text("Blind on main").wait_for()

        running.kill("worker")
        page.get_by_role("alert").get_by_text("The worker does not answer").wait_for()

        running.start_worker()
        running.start_pipeline()
        page.get_by_role("alert").wait_for(state="detached", timeout=240_000)
        page.get_by_text("1 incident open").wait_for()
    judged_again(running)
    assert_still_one_incident(running)


def test_a_killed_worker_forgets_and_repeats_nothing(running: Any) -> None:
    running.kill("worker")
    running.commit("still", {("orders", 0): 11})
    running.start_worker()

    judged_again(running)
    assert_still_one_incident(running)
    assert_known(running, 11)


def test_a_killed_pipeline_goes_on_where_it_was(running: Any) -> None:
    running.kill("pipeline")
    running.commit("still", {("orders", 0): 22})
    running.start_pipeline()

    judged_again(running)
    assert_still_one_incident(running)
    assert_known(running, 22)


def test_a_killed_broker_is_sat_out(running: Any) -> None:
    running.commit("still", {("orders", 0): 33})
    running.broker.kill()
    running.broker.start()

    judged_again(running)
    assert_still_one_incident(running)
    assert_known(running, 33)


def test_a_stopped_pipeline_makes_blind_and_nothing_opens_or_resolves(running: Any) -> None:
    before = len(running.history())

    assert running.stop("pipeline") == 0
    running.eventually(
        "the state says blind", lambda: (s := running.state()) is not None and s.status == "blind"
    )
    running.eventually("the open incident is marked stale", lambda: running.incident(GROUP).stale)
    said = running.history()[before:]
    assert {rec.status for rec in said} <= {Status.UPDATED, Status.SUPERSEDED}
    assert [rec.stale for rec in said][-1] is True

    running.start_pipeline()
    judged_again(running)
    assert_still_one_incident(running)
