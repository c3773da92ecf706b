"""The sentence of `kagent lag` below a group's table."""

from __future__ import annotations

from collections.abc import Sequence

from kagent.commands.lag import _sentence
from kagent.kafka.descriptions import GroupDescription
from kagent.kafka.group_lag import Row, ShownGroup


def sentence(lags: Sequence[int | None], skew: float | None) -> str:
    rows = tuple(
        Row(
            group="g", topic="t", partition=at, committed=None if lag is None else 10, log_start=0, log_end=2_000, lag=lag,
            lost=0, void=False, member_id=None, client_id=None, host=None, instance_id=None,
        )
        for at, lag in enumerate(lags)
    )  # fmt: skip
    return _sentence(ShownGroup(GroupDescription("g", "stable", "classic", "range", False), rows, skew))


def test_numbers_are_written_alike() -> None:
    assert sentence([4_100, 65], 1.97) == "g: stable, 0 members, lag 4,165, max/mean lag 1.97"


def test_of_a_lag_that_is_not_known_no_ratio_is_shown() -> None:
    assert (
        sentence([None], 1.0)
        == "g: stable, 0 members, lag unknown (1 without a commit, holding 2,000 records)"
    )
