"""Members as columns are the same members, and a strategy sees no difference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.errors import InputError
from kagent.strategies import Member, Scenario, assign
from kagent.strategies.group_members import GroupMembers

TOPICS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True).map(tuple)
NAME, GENERATION = st.none() | st.sampled_from(["x", "y"]), st.none() | st.integers(0, 3)
MEMBERS = st.lists(
    st.builds(Member, st.text("abc", min_size=1), TOPICS, NAME, NAME, GENERATION, GENERATION),
    min_size=1,
    unique_by=lambda member: member.id,
)


@pytest.mark.slow
@given(MEMBERS)
def test_each_member_comes_back_as_it_was(members: list[Member]) -> None:
    columns = GroupMembers.of(members)

    assert list(columns) == members
    assert [columns[at] for at in range(-len(members), len(members))] == members + members
    assert list(columns[1:]) == members[1:]
    assert GroupMembers.of(columns) is columns


@pytest.mark.slow
@given(MEMBERS)
def test_subscriptions_are_listed_once_in_the_order_of_their_first_member(members: list[Member]) -> None:
    assert list(GroupMembers.of(members).kinds) == list(dict.fromkeys(member.topics for member in members))


def test_two_subscriptions_may_become_one() -> None:
    both = GroupMembers.of([Member("C0", ("a", "gone")), Member("C1", ("a",))])

    same = both.subscribed_to([("a",), ("a",)])

    for name in ("range", "kip848-range", "kip848-uniform", "sticky"):
        expected = assign(name, Scenario.of([Member("C0", ("a",)), Member("C1", ("a",))], {"a": 3}))
        assert assign(name, Scenario.of(same, {"a": 3})).to_dict() == expected.to_dict()


@pytest.mark.parametrize(("ids", "words"), [([], "without members"), (["C0", "C1", "C0"], r"members\[2\]")])
def test_no_member_and_one_twice_are_refused(ids: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        GroupMembers.of([Member(name, ("a",)) for name in ids])
