"""A group whose members left while records arrive is healthy nowhere, long before that is reported."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from kagent.client.incident_text import counted_groups
from kagent.commands.worker_plan import document
from kagent.incident.explanation_text import lines
from kagent.worker.http.own import Own
from kagent.worker.http.server import own
from kagent.worker.status import state_message
from tests.worker.http.scene import Load, made

FAQ = Path(__file__).parents[3] / "docs" / "faq.md"


@pytest.fixture(autouse=True)
def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """kagent.app makes its app when it is imported, as Faust wants it, and that needs a cluster."""
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "127.0.0.1:1")


@pytest.fixture
async def stopped() -> Any:
    """The desk of a worker that saw the members of ``orders`` leave 15 min ago; ``payments`` goes on."""
    orders, payments = Load("orders", 2, [18.0, 18.0]), Load("payments", 2, [18.0, 18.0])
    scene = made([orders, payments], minutes=35)
    for load in scene.loads:
        scene.join(load, int(scene.clock_s * 1000))
    for _ in range(120):
        await scene.step()
    orders.has_left = True
    scene.join(orders, int(scene.clock_s * 1000))
    for _ in range(90):
        await scene.step()
    return scene.worker.desk


async def story_of(desk: Any, group: str) -> dict[str, Any]:
    (found,) = (await own(desk, [0], group)).partitions[0]
    story: dict[str, Any] = orjson.loads(orjson.dumps(found["story"]))
    return story


async def test_the_list_names_it_with_the_age_of_the_oldest_record(stopped: Any) -> None:
    rows = {row.group: row for row in stopped.live.rows[0].values()}
    row = rows["orders"]

    assert (row.condition, row.skew, rows["payments"].condition) == ("no_members", None, "healthy")
    assert row.seconds_behind == pytest.approx(900, rel=0.1)
    assert row.no_members.startswith("no members for 15 min; 32,")
    assert rows["payments"].no_members is None


async def test_the_detail_and_the_explanation_say_the_same(stopped: Any) -> None:
    story = await story_of(stopped, "orders")
    row = (await Own(stopped, lambda: {0}).answer("group", {"group": "orders"}))["details"][0].row
    told = lines(story)

    assert (story["condition"], story["skew"], story["members"]) == ("no_members", None, [])
    assert (story["seconds_behind"], story["skew"]) == (row.seconds_behind, row.skew)
    assert told[0] == "orders: no members, records wait (classic, Empty)"
    assert told[1] == f"{str(row.no_members).capitalize()}."
    assert "reported after 60 min without members" in told[1]
    assert not any("0 s behind" in line for line in told)


async def test_its_plan_does_not_call_it_balanced(stopped: Any) -> None:
    found = document(await story_of(stopped, "orders"))

    assert (found["verdict"], found["skew"]) == ("no_members", {"now": None, "after": None})
    assert document(await story_of(stopped, "payments"))["verdict"] == "balanced"


async def test_the_state_message_counts_it(stopped: Any) -> None:
    summary = stopped.live.summaries["main", 0]
    state = state_message("main", [summary], 1, summary.time, 10)

    assert (state.judged, state.no_members) == (2, 1)
    assert ", 1 without members while records wait), 0 blind" in counted_groups(state)


def code_of_the_guides_check(story: dict[str, Any]) -> int:
    """The exit code of the check in the questions and answers, for what ``kagent explain --json`` printed."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    (condition,) = re.findall(r"kagent explain orders --json \| jq -e '(.+)'", FAQ.read_text())
    given = orjson.dumps(story)
    return subprocess.run(
        ["jq", "-e", condition], input=given, stdout=subprocess.DEVNULL, check=False
    ).returncode


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (None, 0),
        ({"seconds_behind": 61.0}, 1),
        ({"seconds_behind": None}, 1),
        ({"members": []}, 1),
    ],
    ids=["in time", "late", "unknown", "nobody reads"],
)
async def test_the_guides_check_passes_only_for_a_group_that_is_read_in_time(
    stopped: Any, change: dict[str, Any] | None, code: int
) -> None:
    story = await story_of(stopped, "payments")

    assert code_of_the_guides_check(story | (change or {})) == code


async def test_the_guides_check_fails_for_a_group_without_members(stopped: Any) -> None:
    assert code_of_the_guides_check(await story_of(stopped, "orders")) == 1
