"""The usual gap between commits: what has ended tells it, and what goes on says that it may be longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.detect.decision import examine
from kagent.detect.group_model import GroupModel
from kagent.detect.state import JudgeState
from kagent.policy import Policy
from tests.fixtures.group_builder import NOW, Group

Make = Callable[..., Any]
EACH_FOUR = {f"m{at}": {"t": [2 * at, 2 * at + 1]} for at in range(4)}


def looked_at(
    silent_s: Sequence[float],
    ended_s: Sequence[float],
    commits: int | None = None,
    members: Mapping[str, Mapping[str, Sequence[int]]] = EACH_FOUR,
) -> GroupModel:
    """A group whose partitions were last committed so long ago, all with something unread since, and whose row knows these gaps."""
    made = Group(
        {"t": [{"end": 10**6, "rate": 20.0, "lag": 100, "age": age} for age in silent_s]},
        members,
        type="classic" if members else "simple",
    )
    seen = made.observe()
    row = replace(seen.commits["t"], gaps=[round(1000 * g) for g in ended_s], commits=commits or len(ended_s))
    seen = replace(seen, commits={"t": row})
    return examine(seen, JudgeState(first_seen=NOW - 600_000, members_at=NOW), Policy())[0]


def usual_s(model: GroupModel) -> float | None:
    gap_ms = model.columns.usual_gaps_ms["t"]
    return None if gap_ms is None else gap_ms / 1000


STAGGERED = [480, 480, 420, 420, 400, 400, 520, 520]
"""Members that commit every ten minutes: the last commits of three, and one that has not come in this time."""


def test_gaps_that_go_on_for_longer_than_those_that_ended_make_the_usual_one_unknown() -> None:
    assert usual_s(looked_at(STAGGERED, [20, 60, 100])) is None


def test_so_it_is_in_a_group_without_members_whose_readers_commit_each_for_itself() -> None:
    assert usual_s(looked_at(STAGGERED, [20, 60, 100], members={})) is None


def test_two_silent_members_among_many_that_commit_leave_it_known() -> None:
    silent = [400, 400, 400, 400, 3, 3, 2, 2]

    assert usual_s(looked_at(silent, 16 * [5.0])) == 5


def test_a_group_that_is_long_known_has_its_gap_though_all_its_members_are_silent() -> None:
    assert usual_s(looked_at(8 * [900], 16 * [5.0], commits=5000)) == 5


def test_until_three_gaps_are_known_none_is_usual() -> None:
    assert usual_s(looked_at(8 * [3], [5.0, 5.0])) is None


@pytest.mark.slow
@given(
    st.lists(st.floats(1, 600), min_size=3, max_size=16),
    st.lists(st.floats(1, 3000), min_size=4, max_size=4),
)
def test_what_goes_on_never_makes_the_usual_gap_shorter(ended: list[float], silent: list[float]) -> None:
    found = usual_s(looked_at([s for s in silent for _ in (0, 1)], ended))

    assert found is None or found >= int(median([round(1000 * g) for g in ended])) / 1000


@pytest.mark.slow
@given(st.lists(st.floats(100, 600), min_size=3, max_size=16), st.floats(1, 50))
def test_gaps_that_are_still_shorter_than_the_usual_one_tell_nothing(
    ended: list[float], silent: float
) -> None:
    assert usual_s(looked_at(8 * [silent], ended)) == int(median([round(1000 * g) for g in ended])) / 1000
