"""Members and leader understand each other; bytes of others say nothing, and never fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.follow import plan_userdata
from kagent.follow.decision_types import Followed
from kagent.strategies.plugins import userdata

PLAN = Followed("0123456789abcdef", "fedcba9876543210")
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
PAIRS = st.lists(st.tuples(NAMES, st.integers(0, 2**31 - 1)), unique=True, max_size=20)


@pytest.mark.slow
@given(name=st.none() | NAMES, held=PAIRS, generation=st.none() | st.integers(0, 2**31 - 1))
def test_what_a_member_says_is_heard(
    name: str | None, held: list[tuple[str, int]], generation: int | None
) -> None:
    heard = plan_userdata.read_joining(plan_userdata.joining(name, held, generation, PLAN, [1, 2]))
    assert heard is not None
    assert heard.pairs is not None
    assert sorted(heard.pairs) == sorted(held)
    assert (heard.name, heard.generation, heard.followed, heard.asked) == (name, generation, PLAN, [1, 2])


def test_what_the_leader_says_is_heard() -> None:
    heard = plan_userdata.read_given(plan_userdata.given(3, None, [5]))
    assert heard is not None
    assert (heard.generation, heard.followed, heard.asked) == (3, None, [5])


@given(st.binary(max_size=80))
def test_any_bytes_say_nothing_and_never_fail(data: bytes) -> None:
    assert plan_userdata.read_joining(data) is None
    heard = plan_userdata.read_joining(plan_userdata.MARK + data)
    assert heard is None or heard.pairs is None


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        userdata.encode([("t", 0)], 3),
        plan_userdata.MARK[:-1] + b'\x02{"held": {}}',
        plan_userdata.MARK + b'{"held": {"t": [-1]}}',
        plan_userdata.MARK + b'{"held": {"t": [2147483648]}}',
        plan_userdata.MARK + b'{"held": {"t": ["0"]}}',
        plan_userdata.MARK + b'{"generation": 1e99}',
        plan_userdata.MARK + b'{"generation": true}',
        plan_userdata.MARK + b'{"plan": "0123"}',
        plan_userdata.MARK + b'{"asked": [1,2,3,4,5,6,7,8,9]}',
        plan_userdata.MARK + b'{"name": "' + b"x" * 5000 + b'"}',
        plan_userdata.MARK + b"[" * 100_000,
        plan_userdata.MARK + b" " * plan_userdata.LARGEST + b"{}",
    ],
)  # fmt: skip
def test_foreign_newer_and_hostile_blobs_say_nothing(data: bytes | None) -> None:
    assert plan_userdata.read_joining(data) is None


def test_a_member_that_holds_too_much_to_tell_says_only_who_it_is() -> None:
    data = plan_userdata.joining("a/h", [("t", 1_000_000_000 + at) for at in range(30_000)], 3, PLAN, [])
    heard = plan_userdata.read_joining(data)
    assert heard is not None
    assert (heard.name, heard.pairs, heard.generation) == ("a/h", None, 3)


def test_what_cannot_be_said_at_all_is_left_unsaid() -> None:
    assert plan_userdata.joining("\ud800", [], 3, None, []) == b""
    assert plan_userdata.joining("x" * 5000, [], 3, None, []) == b""
