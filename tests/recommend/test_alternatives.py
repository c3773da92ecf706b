"""A group's rows give strategies the same scenario as its members one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.groups.group import GroupView, MemberView
from kagent.lag.membership import Roster
from kagent.recommend.alternatives import scenario_from
from kagent.strategies import Member, Scenario, assign

COUNTS = {"a": 4, "b": 2, "c": 3}
NAMES = ["a", "b", "c", "unseen"]


@st.composite
def rosters(draw: st.DrawFn) -> Roster:
    """Groups in which members have patterns, no topics, or hold what they no longer subscribe to, each partition once."""
    count = draw(st.integers(1, 5))
    holder = {(t, p): draw(st.integers(-1, count - 1)) for t in NAMES for p in range(COUNTS.get(t, 2))}
    members = []
    for at in range(count):
        assigned: dict[str, tuple[int, ...]] = {}
        for (topic, partition), code in holder.items():
            if code == at:
                assigned[topic] = (*assigned.get(topic, ()), partition)
        topics = tuple(draw(st.lists(st.sampled_from(NAMES), unique=True)))
        pattern = draw(st.none() | st.just("a.*"))
        members.append(MemberView(f"C{at}", None, "client", "/host", None, topics, pattern, assigned))
    return Roster.of(
        GroupView(
            group="group", type="consumer", state="Stable", protocol_type="consumer", protocol=None,
            generation=draw(st.none() | st.integers(0, 9)), target_epoch=None, members=tuple(members), last_change=0,
        )
    )  # fmt: skip


def one_by_one(roster: Roster) -> Scenario:
    members = [
        Member(
            m.member_id,
            tuple(
                t for t in COUNTS if m.regex or not m.subscriptions or t in m.subscriptions or t in m.assigned
            ),
            generation=roster.generation,
            remembered_generation=roster.generation,
        )
        for m in roster.members
    ]
    owned = {
        m.member_id: [(t, p) for t, ps in m.assigned.items() if t in COUNTS for p in ps]
        for m in roster.members
    }
    return Scenario.of(members, COUNTS, owned=owned)


@pytest.mark.slow
@given(rosters())
def test_rows_and_members_one_by_one_give_the_same_scenario(roster: Roster) -> None:
    made, expected = scenario_from(roster, COUNTS), one_by_one(roster)

    assert list(made.members) == list(expected.members)
    assert made.owned.to_dict() == expected.owned.to_dict()
    for name in ("roundrobin", "sticky", "kip848-uniform"):
        assert assign(name, made).to_dict() == assign(name, expected).to_dict()


@pytest.mark.slow
@given(rosters())
def test_what_a_member_may_hold_is_what_the_scenario_lets_it_hold(roster: Roster) -> None:
    for at, member in enumerate(scenario_from(roster, COUNTS).members):
        assert member.topics == tuple(t for t in COUNTS if roster.eligible(at, t))
