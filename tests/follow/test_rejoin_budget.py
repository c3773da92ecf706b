"""A group is asked to rejoin once per cooldown and three times a day, whoever of its members leads."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kagent.follow.rejoin_budget import DAY, REMEMBERED, Asking, May, may_ask, recent

NOW = 1_000_000.0
RULES = Asking(cooldown=900, per_day=3)


def ago(*seconds: float) -> list[int]:
    return [int((NOW - s) * 1000) for s in seconds]


def test_the_first_request_is_free() -> None:
    assert may_ask([], NOW, RULES) is May.ASK


def test_the_cooldown_is_waited_for() -> None:
    assert may_ask(ago(899), NOW, RULES) is May.WAIT
    assert may_ask(ago(900), NOW, RULES) is May.ASK


def test_a_fourth_request_within_a_day_latches() -> None:
    assert may_ask(ago(1000, 2000, 3000), NOW, RULES) is May.LATCH
    assert may_ask(ago(1000, 2000, DAY + 1), NOW, RULES) is May.ASK


def test_a_limit_beyond_what_is_remembered_is_reached_all_the_same() -> None:
    often = Asking(cooldown=1, per_day=100)

    assert may_ask(ago(*range(2, REMEMBERED + 1)), NOW, often) is May.ASK
    assert may_ask(ago(*range(2, REMEMBERED + 2)), NOW, often) is May.LATCH


def test_times_that_cannot_be_do_not_count() -> None:
    assert recent([*ago(-301), 0, -5, *ago(10, 10)], NOW) == tuple(ago(10))


@given(st.lists(st.floats(0, 3 * DAY), max_size=40))
def test_at_no_time_were_there_more_than_three_in_a_day_nor_two_in_a_cooldown(tries: list[float]) -> None:
    asked: list[int] = []
    for now in sorted(tries):
        if may_ask(asked, now + DAY, RULES) is May.ASK:
            asked.append(int((now + DAY) * 1000))
    assert all(later - sooner >= 900_000 - 1 for sooner, later in itertools.pairwise(asked))
    assert all(later - sooner >= DAY * 1000 - 1 for sooner, later in zip(asked, asked[3:], strict=False))
