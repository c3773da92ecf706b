"""Groups to plan for, drawn by hypothesis, and the plan that a plain search over all assignments finds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from kagent.planner import PlanningProblem
from kagent.planner.assignment_value import greatest, work_per_member


@st.composite
def _groups(draw: Any, partitions: int = 10, members: int = 4, extras: bool = True) -> PlanningProblem:
    names = [f"m{at}" for at in range(draw(st.integers(1, members)))]
    topics = ["a", "b"][: draw(st.integers(1, 2))]
    lag = st.one_of(st.just(0), st.integers(1, 9), st.integers(0, 100_000))
    lags = {t: draw(st.lists(lag, min_size=1, max_size=partitions // len(topics))) for t in topics}
    subscriptions = {name: list(topics) for name in names}
    for name in names[1:]:
        subscriptions[name] = draw(st.lists(st.sampled_from(topics), unique=True, max_size=2))
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    everywhere = draw(st.booleans())  # else some are held by nobody, or by a member not subscribed
    rows = [(t, p) for t in topics for p in range(len(lags[t]))]
    for topic, number in rows:
        able = [name for name in names if topic in subscriptions[name]] if everywhere else [*names, None]
        if (owner := draw(st.sampled_from(able))) is not None:
            owned[owner].append((topic, number))
    extra: dict[str, Any] = {}
    if extras:
        if draw(st.booleans()):
            extra["costs"] = {t: draw(st.sampled_from([0.5, 1.0, 2.0])) for t in topics}
        if draw(st.booleans()):
            extra["speeds"] = {name: draw(st.sampled_from([0.5, 1.0, 3.0])) for name in names}
        if draw(st.booleans()):
            extra["rates"] = {t: [draw(st.sampled_from([0.0, 0.01, 0.2])) for _ in lags[t]] for t in topics}
        if draw(st.booleans()):
            extra["pinned"] = draw(st.lists(st.sampled_from(rows), unique=True, max_size=3))
        if len(topics) == 2 and draw(st.booleans()):
            extra["units"] = [topics]
    return PlanningProblem.of(subscriptions, lags, owned, **extra)


@pytest.fixture(scope="session")
def groups() -> Callable[..., st.SearchStrategy[PlanningProblem]]:
    return _groups


def _brute(
    problem: PlanningProblem, target: float | None = None, objective: str = "work"
) -> tuple[float, int]:
    """Smallest greatest value over all assignments, and the fewest moves to stay at or under the target."""
    may = problem.subscribed[problem.member_class][:, problem.topic].T
    best, fewest = float("inf"), len(problem) + 1
    for at in itertools.product(*(np.flatnonzero(row).tolist() for row in may)):
        owner = np.array(at)
        value = greatest(problem, owner, objective, work_per_member(problem, owner))
        best = min(best, value)
        if target is not None and value <= target * (1 + 1e-9):
            fewest = min(fewest, int((np.array(at) != problem.owner).sum()))
    return best, fewest


@pytest.fixture(scope="session")
def brute() -> Callable[..., tuple[float, int]]:
    return _brute
