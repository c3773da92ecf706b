"""The leader always gives an assignment, and falls back where it lacks what the strategy needs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kagent.errors import InputError
from kagent.strategies.plugins import LagCache, keep_filled
from kagent.strategies.plugins.join import Engine, Joined
from kagent.strategies.plugins.lags import lag_of
from kagent.strategies.plugins.userdata import encode

COUNTS = {"t0": 3}
LAGS = {"t0": [100_000, 50_000, 60_000]}


def joined(**owned: list[tuple[str, int]]) -> list[Joined]:
    return [Joined(name, ("t0",), encode(pairs, 3)) for name, pairs in owned.items()]


def together(placed: dict[str, list[tuple[str, int]]]) -> list[tuple[str, int]]:
    return sorted(pair for pairs in placed.values() for pair in pairs)


def test_lag_is_heeded_while_the_cache_is_fresh() -> None:
    cache = LagCache(max_age=60)
    cache.put(LAGS, now=1000)
    engine = Engine("lag", cache, clock=lambda: 1060.0)
    assert engine.place(COUNTS, joined(a=[], b=[])) == {"a": [("t0", 0)], "b": [("t0", 2), ("t0", 1)]}


@pytest.mark.parametrize("strategy", ["lag", "lag-global"])
@pytest.mark.parametrize("filled", [False, True], ids=["empty", "old"])
def test_an_empty_or_old_cache_means_that_members_keep_what_they_have(strategy: str, filled: bool) -> None:
    cache = LagCache(max_age=60)
    if filled:
        cache.put(LAGS, now=1000)
    engine = Engine(strategy, cache, clock=lambda: 1061.0)
    placed = engine.place(COUNTS, joined(a=[("t0", 1), ("t0", 2)], b=[("t0", 0)]))
    assert placed == {"a": [("t0", 1), ("t0", 2)], "b": [("t0", 0)]}


def test_lags_of_some_topics_only_are_as_good_as_none() -> None:
    cache = LagCache()
    cache.put({"other": [1]}, now=0)
    engine = Engine("lag", cache, clock=lambda: 0.0)
    assert together(engine.place(COUNTS, joined(a=[], b=[]))) == [
        ("t0", 0),
        ("t0", 1),
        ("t0", 2),
    ]


def test_a_strategy_that_fails_does_not_stop_the_group() -> None:
    cache = LagCache()
    cache.put(LAGS, now=0)
    engine = Engine("lag-global", cache, clock=lambda: 0.0, balance="half")
    assert together(engine.place(COUNTS, joined(a=[], b=[]))) == [
        ("t0", 0),
        ("t0", 1),
        ("t0", 2),
    ]


def test_the_constrained_assignor_falls_back_when_subscriptions_differ() -> None:
    members = [Joined("a", ("t0", "t1"), owned=()), Joined("b", ("t1",), owned=())]
    placed = Engine("constrained-cooperative-sticky").place({"t0": 1, "t1": 1}, members)
    assert placed == {"a": [("t0", 0)], "b": [("t1", 0)]}


def test_topics_without_metadata_are_given_to_nobody() -> None:
    assert Engine("range").place({"t0": 0}, joined(a=[])) == {"a": []}


def test_the_next_generation_is_above_all_that_members_remember() -> None:
    assert Engine("sticky").next_generation(joined(a=[], b=[])) == 4
    assert Engine("sticky").next_generation([Joined("a", ("t0",))]) == 0


@pytest.mark.parametrize(
    ("strategy", "says"), [("kip848-uniform", "broker"), ("lag", "LagCache"), ("best", "no strategy")]
)
def test_what_cannot_run_in_a_client_is_refused_at_once(strategy: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Engine(strategy)


def test_a_background_thread_fills_the_cache_and_outlives_failures() -> None:
    cache = LagCache()
    asked = threading.Semaphore(0)
    answers: Iterator[Any] = iter([OSError("no broker"), LAGS, LAGS])

    def source() -> dict[str, list[int]]:
        answer: Any = next(answers, LAGS)
        asked.release()
        if isinstance(answer, OSError):
            raise answer
        lags: dict[str, list[int]] = answer
        return lags

    with keep_filled(cache, source, every=0.01, clock=lambda: 5.0):
        for _ in range(3):
            assert asked.acquire(timeout=10)
    assert cache.fresh(now=5.0) == LAGS


@pytest.mark.parametrize(
    ("begin", "end", "committed", "reset", "lag"),
    [
        (10, 100, 40, "latest", 60),
        (10, 100, 140, "latest", 0),
        (10, 100, None, "latest", 0),
        (10, 100, None, "LATEST", 0),
        (10, 100, None, "earliest", 90),
        (10, 100, None, "none", 90),
    ],
)
def test_lag_follows_the_rule_of_the_lag_based_assignor(
    begin: int, end: int, committed: int | None, reset: str, lag: int
) -> None:
    assert lag_of(begin, end, committed, reset) == lag
