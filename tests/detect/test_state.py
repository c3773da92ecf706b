"""What is remembered outlives the process and the version."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kagent.detect.state import (
    Advised,
    Backlog,
    Fall,
    Habit,
    Incident,
    JudgeState,
    MemberState,
    Spell,
    Standing,
    Window,
    WindowStart,
)

FULL = JudgeState(
    first_seen=1,
    last_tick=99,
    generation=3,
    generations=((5, 2), (7, 3)),
    names=("a", "b"),
    comings={"a": (5, 7)},
    incident=Incident(
        "i",
        5,
        "rebalance",
        "a",
        {"id": "i"},
        "d",
        6,
        plan=(("t", 0, "b"),),
        replaced=Advised("rebalance", "a", plan=(("t", 1, "b"),)),
    ),
    members={
        "a": MemberState(
            time=9,
            done={"t/0": 7},
            gaps=(5000, 5001),
            mark=WindowStart(4, {"t/0": 3}),
            windows=(Window(8, 30.0, {"t": 12}),),
            lateness=((8, 60.5),),
            spell=Spell(1, 9, 61.0, 30.0, 9, 4, 50, {"rebalance": 4}),
            backlog=Backlog(
                1, 9, 70.0, 5, 30.0, 4, 50, 10.0, 3, {"wait": 4}, 4, {"t": Fall(70.0, 5, 61.0, 9)}
            ),
            silent_s=3.0,
        )
    },
    standing={"t/0": Standing(3, 4, 5.0, 6.0, 7, 8)},
    habits={"spell": Habit(90.0, 5)},
    committed_together={"t/0": ("5", 2.0)},
    committed_at=77,
    lost={"t/0": (5, 100)},
    trail={"t/0": 3},
    track={"opened": 1},
)


def test_a_state_comes_back_from_its_row_as_it_was() -> None:
    assert JudgeState.from_row(orjson.loads(orjson.dumps(FULL.to_row()))) == FULL
    empty = JudgeState(first_seen=1)
    assert JudgeState.from_row(orjson.loads(orjson.dumps(empty.to_row()))) == empty
    assert empty.to_row() == {"first_seen": 1}


def test_a_row_of_an_older_version_keeps_what_is_still_known() -> None:
    old: dict[str, Any] = {
        "first_seen": 5,
        "generation": 4,
        "track": {"opened": 2},
        "streak": {"verdict": "rebalance", "count": 2, "since": 3},
        "busy": {"a": [100.0, 10, {"t": 1000.0}]},
        "marks": {"a": [1, {"t/0": 5}]},
        "paces": {"t": 3.0},
        "members": [["a", 1]],
        "standing": {"t/0": "long"},
    }

    state = JudgeState.from_row(old)

    assert (state.first_seen, state.generation, state.track) == (5, 4, {"opened": 2})
    assert (state.members, state.standing) == ({}, {})


@pytest.mark.parametrize("row", [{}, {"first_seen": "yesterday"}])
def test_a_row_that_does_not_say_since_when_the_group_is_known_is_none(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="first_seen"):
        JudgeState.from_row(row)


def test_the_last_tick_does_not_outlive_the_process() -> None:
    assert FULL.lasting().last_tick == 0
    assert FULL.lasting().members == FULL.members
