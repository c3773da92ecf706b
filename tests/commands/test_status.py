"""`kagent status`: five lines, and an exit code that scripts can rely on."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.commands.status import facts
from kagent.contract.recommendation import State

NOW = 1_760_000_000_000


def state(**said: Any) -> State:
    usual = {
        "cluster": "main", "version": "1", "time": NOW - 5_000, "status": "watching", "judged": 7,
        "oldest_progress": NOW - 7_000, "workers": 2,
    }  # fmt: skip
    return State.model_validate(usual | said)


def test_all_well_is_five_lines_and_0() -> None:
    told = facts("main", state(), [], NOW)

    assert told["exit_code"] == 0
    assert list(told["lines"]) == ["kagent", "pipeline", "workers", "groups", "incidents"]
    assert told["lines"]["kagent"] == "works: main is watched"
    assert told["lines"]["pipeline"] == "2 s behind the cluster at the last report"


def test_open_incidents_are_1_and_the_worst_comes_first(rec: Any) -> None:
    told = facts("main", state(), [rec("a"), rec("b", severity="page")], NOW)

    assert told["exit_code"] == 1
    assert told["lines"]["incidents"].startswith("2 open: b (uneven work), a (uneven work)")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (None, "no worker has ever reported: run `kagent up`"),
        ({"time": NOW - 600_000}, "no worker has reported for 10 min"),
        ({"status": "blind", "reason": "the pipeline stopped"}, "is blind: the pipeline stopped"),
        (
            {"status": "catching_up", "reason": "the pipeline is 5 records behind"},
            "is catching up: the pipeline is 5 records behind. Wait: the pipeline is reading what it missed",
        ),
        (
            {"status": "blind", "reason": "the pipeline stands still on __consumer_offsets-7"},
            "is blind: the pipeline stands still on __consumer_offsets-7. Restart the pipeline",
        ),
    ],
)
def test_trouble_is_2_and_says_what_to_do_even_if_incidents_are_open(said: Any, words: str, rec: Any) -> None:
    told = facts("main", None if said is None else state(**said), [rec("a")], NOW)

    assert told["exit_code"] == 2
    assert words in told["lines"]["kagent"]


def test_the_delay_of_a_pipeline_is_not_told_while_it_is_not_known() -> None:
    told = facts("main", state(status="blind", reason="the pipeline stands still"), [], NOW)

    assert told["lines"]["pipeline"] == "last heard of 2 s before the workers' last report"


def test_learning_is_not_taken_for_health() -> None:
    told = facts("main", state(learning=7, learning_until=None), [], NOW)

    assert "7 groups are new" in told["lines"]["kagent"]
    assert told["lines"]["groups"] == "7 groups judged (all learning), 0 blind"
