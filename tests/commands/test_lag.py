"""The sentence of `kagent lag` below a group's table."""

from __future__ import annotations

from collections.abc import Sequence

from kagent.commands.lag import _left_out, _none, _sentence, records
from kagent.kafka.descriptions import GroupDescription, MemberDescription
from kagent.kafka.group_lag import Row, ShownGroup, max_to_mean_lag


def group(lags: Sequence[int | None], ratio: float | None) -> ShownGroup:
    rows = tuple(
        Row(
            group="g", topic="t", partition=at, committed=None if lag is None else 10, log_start=0, log_end=2_000, lag=lag,
            lost=0, void=False, member_id=None, client_id=None, host=None, instance_id=None,
        )
        for at, lag in enumerate(lags)
    )  # fmt: skip
    return ShownGroup(GroupDescription("g", "stable", "classic", "range", False), rows, ratio)


def sentence(lags: Sequence[int | None], ratio: float | None) -> str:
    return _sentence(group(lags, ratio))


def test_numbers_are_written_alike() -> None:
    assert sentence([4_100, 65], 1.97) == "g: stable, 0 members, lag 4,165, max/mean lag 1.97"


def test_of_a_lag_that_is_not_known_no_ratio_is_shown() -> None:
    assert (
        sentence([None], 1.0)
        == "g: stable, 0 members, lag unknown (1 without a commit, holding 2,000 records)"
    )


def test_the_rows_for_programs_have_no_second_skew() -> None:
    (row,) = records(group([4_100], 1.97))

    assert row["shown_ratio"] == 1.97
    assert "skew" not in row


def test_one_member_has_nobody_to_be_compared_with() -> None:
    rows = group([4_100, 65], None).rows
    members = [MemberDescription(name, None, name, "h", frozenset()) for name in ("a", "b")]

    assert max_to_mean_lag(members[:1], rows) is None
    assert max_to_mean_lag(members, rows) == 1.0


def test_groups_of_kagents_own_are_not_called_ignored() -> None:
    """The state message below counts ignored groups, and never kagent's own."""
    assert _left_out(["kagent-subscriber-1"], "kagent") == "1 group of kagent's own"
    assert _left_out(["console-consumer-7"], "kagent") == "1 ignored group"
    assert (
        _left_out({"acme", "acme-keys", "nightly-1", "nightly-2"}, "acme")
        == "2 groups of kagent's own and 2 ignored groups"
    )
    assert "no consumer group besides 1 ignored group (--all shows them)" in _none(
        "kafka:9092", ["x"], "acme"
    )
    assert "no consumer group: there is none" in _none("kafka:9092", [], "acme")
