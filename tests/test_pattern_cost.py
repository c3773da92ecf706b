"""A mute's regular expression is tried only where that is over in a moment."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kagent.active_mutes import Mutes
from kagent.commands.mute import muted_groups
from kagent.contract.mute import MuteRecord
from kagent.errors import InputError
from kagent.group_pattern import checked_pattern
from kagent.pattern_cost import LONGEST_NAME, affordable

USUAL = [
    "payments-.*",
    "^payments-(eu|us)-.*$",
    "[a-z]+-v[0-9]+",
    "connect-.*-sink-\\d{1,3}",
    "(?!prod).*",
    "a|b|c",
    "",
]
DEAR = [
    "(a+)+", "(a|aa)+", "(a?){40}", "(.*a){20}", "a?" * 30 + "a" * 30, ".*.*.*.*x", "([a-z]+)*$", "(a*)*b", "(x+x+)+y",
    "(?:(?:a+)b?)+", "(a)\\1" * 11,
]  # fmt: skip
WRONG = ["(" * 5000 + ")" * 5000, "[", "(a", "a{99999999999999999999}"]


@pytest.mark.parametrize("expression", USUAL)
def test_usual_expressions_are_tried(expression: str) -> None:
    assert affordable(expression)


@pytest.mark.parametrize("expression", DEAR, ids=lambda text: text[:12])
def test_expressions_that_may_take_for_ever_are_not_tried(expression: str) -> None:
    assert not affordable(expression)
    with pytest.raises(InputError, match="may take long"):
        muted_groups(f"/{expression}/", ["orders"])


@pytest.mark.parametrize("expression", WRONG, ids=lambda text: text[:12])
def test_what_is_no_expression_is_refused_by_a_mute_as_by_the_settings(expression: str) -> None:
    assert not affordable(expression)
    with pytest.raises(ValueError, match="is no regular expression: ") as in_settings:
        checked_pattern(f"/{expression}/")
    with pytest.raises(InputError, match="is no regular expression: ") as in_mute:
        muted_groups(f"/{expression}/", ["orders"])

    assert str(in_mute.value) == f"{in_settings.value}."


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of a set within a set, in what is tried
@given(st.text(alphabet="a.*+?(|)[]{}1,\\^$b", max_size=14), st.sampled_from(["a", "ab", "aab"]))
@settings(max_examples=300)
def test_what_is_tried_ends(expression: str, unit: str) -> None:
    """With a loop of more than LONGEST_NAME to the power of MOST_LOOPS steps the test would not end within its time limit."""
    if affordable(expression):
        with suppress(re.error, OverflowError):
            re.compile(expression).fullmatch(unit * (60 // len(unit)) + "!")


def test_a_mute_by_such_an_expression_mutes_nothing_and_the_others_hold() -> None:
    mutes = Mutes()
    mutes.take("main//(a+)+$/", MuteRecord(2**50, "dear", "x").to_bytes())
    mutes.take("main//a.*/", MuteRecord(2**49, "usual", "x").to_bytes())

    found = mutes.of("main", "a" * 60 + "!", 0)
    assert found is not None
    assert found.why == "usual"
    assert mutes.of("main", "a" * (LONGEST_NAME + 1), 0) is None
