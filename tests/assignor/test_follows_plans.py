"""Which of the brokers' assignors read kagent's plans."""

from __future__ import annotations

import pytest

from kagent.assignor import follows_plans


@pytest.mark.parametrize(
    ("protocol", "uniform_follows", "follows"),
    [
        ("kagent", False, True),
        ("kagent-2", False, False),
        ("uniform", False, False),
        ("uniform", True, True),
        ("range", True, False),
        (None, True, False),
    ],
)
def test_only_kagents_own_name_follows_and_uniform_where_the_policy_says_so(
    protocol: str | None, uniform_follows: bool, follows: bool
) -> None:
    assert follows_plans(protocol, uniform_follows) is follows
