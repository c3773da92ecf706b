"""What every strategy promises, over random groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagent.strategies import STRATEGIES, Assignment, Scenario, assign

FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ALL = sorted(STRATEGIES)
STICKY = ["sticky", "cooperative-sticky", "constrained-cooperative-sticky", "kip848-uniform"]
EVEN = [
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "constrained-cooperative-sticky",
    "fair",
    "kip848-uniform",
]
COOPERATIVE = ["cooperative-sticky", "constrained-cooperative-sticky"]
ANY_SUBSCRIPTION = [name for name in ALL if name != "constrained-cooperative-sticky"]

Groups = Callable[..., st.SearchStrategy[Scenario]]
Sets = Callable[[Any], dict[str, set[tuple[str, int]]]]


def wanted(group: Scenario) -> set[tuple[str, int]]:
    topics = {topic for member in group.members for topic in member.topics}
    return {(t, p) for t in topics for p in range(group.partitions_per_topic.get(t, 0))}


def drawn(name: str, groups: Groups, same: bool | None = None) -> st.SearchStrategy[Scenario]:
    """Groups that the strategy takes. Racks that hold no replica of what a member owns let Kafka's own cooperative
    assignor take and give back without end, so rounds are counted without racks."""
    alike = True if name not in ANY_SUBSCRIPTION else same
    return groups(same=alike, racks=False if name in COOPERATIVE else None)


def final(name: str, group: Scenario, converge: Callable[..., list[Assignment]]) -> Assignment:
    return converge(name, group)[-1]


def check_valid(group: Scenario, given: Assignment) -> None:
    topics = {member.id: set(member.topics) for member in group.members}
    rows = [(member, row) for member, listed in given.to_dict().items() for row in listed]
    assert all(row[0] in topics[member] for member, row in rows)
    assert len({row for _, row in rows}) == len(rows)
    assert set(given.to_dict()) == set(topics)


@pytest.mark.parametrize("name", ALL)
@FEW
@given(data=st.data())
def test_only_subscribed_partitions_each_once_and_all_of_them(
    data: st.DataObject, name: str, groups: Groups, converge: Any
) -> None:
    group = data.draw(drawn(name, groups))
    for result in converge(name, group):
        check_valid(group, result)
    assert {row for rows in result.to_dict().values() for row in rows} == wanted(group)


@pytest.mark.parametrize("name", COOPERATIVE)
@FEW
@given(data=st.data())
def test_one_round_with_racks_is_valid(data: st.DataObject, name: str, groups: Groups) -> None:
    group = data.draw(groups(same=True, racks=True))
    check_valid(group, assign(name, group))


@pytest.mark.parametrize("name", ALL)
@FEW
@given(data=st.data())
def test_the_same_input_gives_the_same_output(data: st.DataObject, name: str, groups: Groups) -> None:
    group = data.draw(groups(same=True if name not in ANY_SUBSCRIPTION else None))
    assert assign(name, group).to_dict() == assign(name, group).to_dict()


@pytest.mark.parametrize("name", EVEN)
@FEW
@given(data=st.data())
def test_counts_are_even_when_all_subscribe_alike(
    data: st.DataObject, name: str, groups: Groups, converge: Any
) -> None:
    counts = final(name, data.draw(drawn(name, groups, same=True)), converge).counts()
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@FEW
@given(data=st.data())
def test_no_member_lacks_what_one_with_two_more_could_give(
    data: st.DataObject, name: str, groups: Groups, converge: Any, as_sets: Sets
) -> None:
    """Kafka's own test of balance: between members whose counts differ by more than 1 nothing can be moved."""
    group = data.draw(drawn(name, groups, same=False))
    held = as_sets(final(name, group, converge))
    topics = {member.id: set(member.topics) for member in group.members}
    for less, few in held.items():
        for more, many in held.items():
            if len(many) > len(few) + 1:
                assert not {t for t, _ in many} & topics[less], (less, more)


@pytest.mark.parametrize("name", STICKY)
@FEW
@given(data=st.data())
def test_a_settled_group_stays_as_it_is(
    data: st.DataObject, name: str, groups: Groups, converge: Any, as_sets: Sets
) -> None:
    group = data.draw(groups(same=True, racks=False))
    settled = final(name, group, converge)
    again = assign(name, group.with_owned(settled, 9))
    assert as_sets(again) == as_sets(settled)
    assert again.withheld is None


@pytest.mark.parametrize("name", STICKY)
@FEW
@given(data=st.data())
def test_when_a_member_leaves_the_others_lose_nothing(
    data: st.DataObject, name: str, groups: Groups, converge: Any, as_sets: Sets
) -> None:
    group = data.draw(groups(same=True, racks=False))
    settled = final(name, group, converge)
    if len(group.members) == 1:
        return
    left = Scenario.of(group.members[1:], group.partitions_per_topic).with_owned(settled, 9)
    before, after = as_sets(settled), as_sets(assign(name, left))
    assert all(before[member] <= held for member, held in after.items())


@pytest.mark.parametrize("name", COOPERATIVE)
@FEW
@given(data=st.data())
def test_no_partition_is_taken_and_given_in_one_round(
    data: st.DataObject, name: str, groups: Groups, converge: Any, as_sets: Sets
) -> None:
    group = data.draw(drawn(name, groups))
    held = as_sets(group.owned)
    for result in converge(name, group):
        now = as_sets(result)
        taken = {row: member for member, rows in held.items() for row in rows - now[member]}
        for member, rows in now.items():
            assert not (rows - held[member]) & set(taken)
        held = now


@FEW
@given(data=st.data())
def test_lag_gives_every_member_of_a_topic_as_many_as_any_other(data: st.DataObject, groups: Groups) -> None:
    group = data.draw(groups(racks=False))
    for topic in {topic for member in group.members for topic in member.topics}:
        counts = [
            sum(t == topic for t, _ in rows)
            for member, rows in assign("lag", group).to_dict().items()
            if topic in next(m.topics for m in group.members if m.id == member)
        ]
        assert max(counts) - min(counts) <= 1


@FEW
@given(data=st.data())
def test_lag_is_what_the_plain_loop_gives(data: st.DataObject, groups: Groups) -> None:
    group = data.draw(groups(racks=False))
    expected: dict[str, set[tuple[str, int]]] = {member.id: set() for member in group.members}
    for topic in {topic for member in group.members for topic in member.topics}:
        users = {member.id: [0, 0] for member in group.members if topic in member.topics}
        lags: Any = group.lags.get(topic, [])
        for partition in sorted(range(len(lags)), key=lambda p: (-int(lags[p]), p)):
            least = min(users, key=lambda name: (*users[name], name))
            users[least][0] += 1
            users[least][1] += int(lags[partition])
            expected[least].add((topic, partition))
    assert {m: set(rows) for m, rows in assign("lag", group).to_dict().items()} == expected


@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0])
@FEW
@given(data=st.data())
def test_lag_global_from_nothing_stays_within_graham_s_bound(
    data: st.DataObject, balance: float, groups: Groups
) -> None:
    """The greatest load of LPT is at most 4/3 of the best, and that is bounded by the mean and by who must share."""
    drawn = data.draw(groups(same=True, racks=False))
    group = Scenario.of(drawn.members, drawn.partitions_per_topic, lags=drawn.lags)
    total, lag = group.layout.total, group.lag()
    if not total:
        return
    share: Any = lag / lag.sum() if lag.sum() else lag * 0.0 + 1 / total
    weight = (1 - balance) / total + balance * share
    given = assign("lag-global", group, balance=balance)
    loads = given.sums(weight[group.layout.numbers(given.topic, given.partition)])
    heaviest, members = sorted(weight, reverse=True), len(group.members)
    crowded = max((at // members + 1) * heaviest[at] for at in range(0, total, members))
    best = max(1 / members, crowded)
    assert loads.max() <= 4 / 3 * best + 1e-9


@FEW
@given(data=st.data())
def test_lag_global_moves_nothing_of_an_assignment_it_made(
    data: st.DataObject, groups: Groups, as_sets: Sets
) -> None:
    drawn = data.draw(groups(racks=False))
    group = Scenario.of(drawn.members, drawn.partitions_per_topic, lags=drawn.lags)
    first = assign("lag-global", group)
    assert as_sets(assign("lag-global", group.with_owned(first, 5))) == as_sets(first)
