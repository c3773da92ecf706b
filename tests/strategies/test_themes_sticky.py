"""The themes of Kafka's own tests of the sticky assignors (AbstractStickyAssignorTest and its two children).

Each test carries the theme's name in Kafka. "Valid and balanced" is their own check: only subscribed topics, nothing
twice, and a member with at least two more than another holds nothing that the other could take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from kagent.strategies import Assignment, Member, Scenario, assign

Pairs = list[tuple[str, int]]
BOTH = ["sticky", "cooperative-sticky"]
both = pytest.mark.parametrize("name", BOTH)
NO_RACKS: dict[str, list[list[str]]] = {}
SETUPS = pytest.mark.parametrize("racks", ["none", "partitions", "members", "both"])


def group(
    topics: Mapping[str, Sequence[str]],
    counts: Mapping[str, int],
    owned: Mapping[str, Pairs] | None = None,
    generation: int | Mapping[str, int | None] | None = 1,
    racks: str = "none",
) -> Scenario:
    def of(member: str) -> int | None:
        return generation.get(member) if isinstance(generation, Mapping) else generation

    members = [
        Member(
            name,
            tuple(wanted),
            None,
            f"rack{at % 3}" if racks in ("members", "both") else None,
            of(name) if owned else None,
            of(name) if owned else None,
        )
        for at, (name, wanted) in enumerate(topics.items())
    ]
    everywhere = {t: [["rack0", "rack1", "rack2"]] * count for t, count in counts.items()}
    return Scenario.of(
        members, counts, owned=owned, replica_racks=everywhere if racks in ("partitions", "both") else None
    )


def settle(name: str, scenario: Scenario) -> Assignment:
    """The assignment at rest, valid and balanced in every round, nothing taken and given in one."""
    held = {member: set(rows) for member, rows in scenario.owned.to_dict().items()}
    for generation in range(2, 6):
        given = assign(name, scenario)
        now = {member: set(rows) for member, rows in given.to_dict().items()}
        check_valid(scenario, now)
        if name == "cooperative-sticky":
            taken = set().union(*(held[m] - now[m] for m in now))
            assert not any((now[m] - held[m]) & taken for m in now)
        if given.withheld is None:
            check_balanced(scenario, now)
            return given
        scenario, held = scenario.with_owned(given, generation), now
    raise AssertionError("no end after 4 rounds")


def check_valid(scenario: Scenario, held: Mapping[str, set[tuple[str, int]]]) -> None:
    rows = [row for partitions in held.values() for row in partitions]
    assert len(set(rows)) == len(rows)
    for member in scenario.members:
        assert {topic for topic, _ in held[member.id]} <= set(member.topics)


def check_balanced(scenario: Scenario, held: Mapping[str, set[tuple[str, int]]]) -> None:
    topics = {member.id: set(member.topics) for member in scenario.members}
    for less, few in held.items():
        for many in held.values():
            assert len(many) <= len(few) + 1 or not {t for t, _ in many} & topics[less]


def after(
    name: str, topics: Mapping[str, Sequence[str]], counts: Mapping[str, int], before: Assignment
) -> Assignment:
    plain = group(topics, counts)
    return settle(name, plain.with_owned(before, 1))


def lists(given: Assignment) -> dict[str, Pairs]:
    return given.to_dict()


@both
@SETUPS
@pytest.mark.parametrize(
    ("topics", "counts", "expected"),
    [
        pytest.param({"c": []}, {}, {"c": []}, id="testOneConsumerNoTopic"),
        pytest.param({"c": ["t"]}, {}, {"c": []}, id="testOneConsumerNonexistentTopic"),
        pytest.param({"c": ["t"]}, {"t": 3}, {"c": [("t", 0), ("t", 1), ("t", 2)]}, id="testOneConsumerOneTopic"),
        pytest.param(
            {"c": ["t"]}, {"t": 1, "u": 2}, {"c": [("t", 0)]}, id="testOnlyAssignsPartitionsFromSubscribedTopics"
        ),
        pytest.param(
            {"c": ["t", "u"]}, {"t": 1, "u": 2}, {"c": [("t", 0), ("u", 0), ("u", 1)]}, id="testOneConsumerMultipleTopics"
        ),
        pytest.param(
            {"c1": ["t"], "c2": ["t"]}, {"t": 1}, {"c1": [("t", 0)], "c2": []}, id="testTwoConsumersOneTopicOnePartition"
        ),
        pytest.param(
            {"c1": ["t"], "c2": ["t"]},
            {"t": 2},
            {"c1": [("t", 0)], "c2": [("t", 1)]},
            id="testTwoConsumersOneTopicTwoPartitions",
        ),
        pytest.param(
            {"c1": ["t1"], "c2": ["t1", "t2"], "c3": ["t1"]},
            {"t1": 3, "t2": 2},
            {"c1": [("t1", 0), ("t1", 2)], "c2": [("t2", 0), ("t2", 1)], "c3": [("t1", 1)]},
            id="testMultipleConsumersMixedTopicSubscriptions",
        ),
        pytest.param(
            {"c1": ["t1", "t2"], "c2": ["t1", "t2"]},
            {"t1": 3, "t2": 3},
            {"c1": [("t1", 0), ("t1", 2), ("t2", 1)], "c2": [("t1", 1), ("t2", 0), ("t2", 2)]},
            id="testTwoConsumersTwoTopicsSixPartitions",
        ),
        pytest.param(
            {"c1": ["t1", "t2", "t3", "t4", "t5"], "c2": ["t1", "t3", "t5"], "c3": ["t1", "t3", "t5"], "c4": ["t1", "t2", "t3", "t4", "t5"]},
            {"t1": 2, "t2": 1, "t3": 2, "t4": 1, "t5": 2},
            {"c1": [("t2", 0), ("t3", 0)], "c2": [("t1", 0), ("t3", 1)], "c3": [("t1", 1), ("t5", 0)], "c4": [("t4", 0), ("t5", 1)]},
            id="testPoorRoundRobinAssignmentScenario",
        ),
    ],
)  # fmt: skip
def test_first_assignments(
    name: str, racks: str, topics: dict[str, list[str]], counts: dict[str, int], expected: dict[str, Pairs]
) -> None:
    given = lists(settle(name, group(topics, counts, racks=racks)))
    assert {m: sorted(rows) for m, rows in given.items()} == expected


@both
def test_only_subscribed_topics_are_kept_of_what_is_owned(name: str) -> None:
    owned = {"c": [("t", 0), ("u", 0), ("u", 1)]}
    assert lists(settle(name, group({"c": ["t"]}, {"t": 1, "u": 2}, owned))) == {"c": [("t", 0)]}


@both
def test_consumer_owning_min_quota_expected_max_quota(name: str) -> None:
    """testConsumerOwningMinQuotaExpectedMaxQuota"""
    topics = {"c1": ["t1", "t2"], "c2": ["t1", "t2"]}
    owned = {"c1": [("t1", 0), ("t2", 0)], "c2": [("t1", 1), ("t2", 1)]}
    given = lists(settle(name, group(topics, {"t1": 3, "t2": 2}, owned)))
    assert sorted(map(len, given.values())) == [2, 3]
    assert all(set(owned[m]) <= set(given[m]) for m in given)


@both
def test_max_quota_consumer_more_than_num_expected_max_capacity_members(name: str) -> None:
    """testMaxQuotaConsumerMoreThanNumExpectedMaxCapacityMembers"""
    everything = ["t1", "t2"]
    owned = {"c1": [("t1", 0), ("t2", 0)], "c2": [("t1", 1), ("t2", 1)], "c3": []}
    scenario = group(dict.fromkeys(["c1", "c2", "c3"], everything), {"t1": 2, "t2": 2}, owned)
    first = assign(name, scenario)
    kept = [m for m in ("c1", "c2") if len(lists(first)[m]) == 2]
    assert len(kept) == 1
    if name == "cooperative-sticky":
        assert lists(first)["c3"] == []
        assert first.withheld is not None
        assert len(first.withheld) == 1
    assert sorted(map(len, lists(settle(name, scenario)).values())) == [1, 1, 2]


@both
def test_all_consumers_are_under_min_quota(name: str) -> None:
    """testAllConsumersAreUnderMinQuota"""
    topics = {key: ["t1", "t2"] for key in ["c1", "c2", "c3"]}
    owned = {"c1": [("t1", 0)], "c2": [("t1", 1)], "c3": []}
    given = lists(settle(name, group(topics, {"t1": 2, "t2": 3}, owned)))
    assert sorted(map(len, given.values())) == [1, 2, 2]
    assert all(set(owned[m]) <= set(given[m]) for m in given)


@both
def test_add_remove_consumer_one_topic(name: str) -> None:
    """testAddRemoveConsumerOneTopic"""
    alone = settle(name, group({"c1": ["t"]}, {"t": 3}))
    two = after(name, {"c1": ["t"], "c2": ["t"]}, {"t": 3}, alone)
    assert sorted(map(len, lists(two).values())) == [1, 2]
    left = after(name, {"c2": ["t"]}, {"t": 3}, two)
    assert sorted(lists(left)["c2"]) == [("t", 0), ("t", 1), ("t", 2)]


@both
def test_topic_balance_after_reassignment(name: str) -> None:
    """testTopicBalanceAfterReassignment (KAFKA-16277): every topic is split evenly at 2, 4, 2 members."""
    counts = {"t1": 12, "t2": 12}
    held = settle(name, group({key: ["t1", "t2"] for key in ["c1", "c2"]}, counts))
    for members in (["c1", "c2"], ["c1", "c2", "c3", "c4"], ["c1", "c2"]):
        held = after(name, {key: ["t1", "t2"] for key in members}, counts, held)
        for rows in lists(held).values():
            share = 12 // len(members)
            assert [sum(t == topic for t, _ in rows) for topic in counts] == [share, share]


@both
def test_add_remove_two_consumers_two_topics(name: str) -> None:
    """testAddRemoveTwoConsumersTwoTopics"""
    counts, everything = {"t1": 3, "t2": 4}, ["t1", "t2"]
    two = settle(name, group(dict.fromkeys(["c1", "c2"], everything), counts))
    assert lists(two) == {
        "c1": [("t1", 0), ("t1", 2), ("t2", 1), ("t2", 3)],
        "c2": [("t1", 1), ("t2", 0), ("t2", 2)],
    }
    four = after(name, dict.fromkeys(["c1", "c2", "c3", "c4"], everything), counts, two)
    assert sorted(map(len, lists(four).values())) == [1, 2, 2, 2]
    back = after(name, dict.fromkeys(["c3", "c4"], everything), counts, four)
    assert all(set(lists(four)[m]) <= set(lists(back)[m]) for m in ("c3", "c4"))
    assert sorted(map(len, lists(back).values())) == [3, 4]


@both
def test_add_remove_topic_two_consumers(name: str) -> None:
    """testAddRemoveTopicTwoConsumers"""
    members = ["c1", "c2"]
    one = settle(name, group({key: ["t"] for key in members}, {"t": 3}))
    two = after(name, {key: ["t", "u"] for key in members}, {"t": 3, "u": 3}, one)
    assert all(set(lists(one)[m]) <= set(lists(two)[m]) for m in members)
    back = after(name, {key: ["u"] for key in members}, {"u": 3}, two)
    assert all({row for row in lists(two)[m] if row[0] == "u"} <= set(lists(back)[m]) for m in members)


def nested(count: int) -> tuple[dict[str, list[str]], dict[str, int]]:
    topics = [f"topic{at:02d}" for at in range(1, count + 1)]
    members = {f"consumer{at:02d}": topics[:at] for at in range(1, count + 1)}
    return members, {topic: at for at, topic in enumerate(topics, 1)}


@both
def test_reassignment_after_one_consumer_leaves(name: str) -> None:
    """testReassignmentAfterOneConsumerLeaves: 19 nested subscriptions, consumer10 leaves."""
    members, counts = nested(19)
    before = settle(name, group(members, counts))
    rest = {m: topics for m, topics in members.items() if m != "consumer10"}
    left = after(name, rest, counts, before)
    lost = {m: set(lists(before)[m]) - set(lists(left)[m]) for m in rest}
    assert sum(map(len, lost.values())) <= len(lists(before)["consumer10"])


@both
def test_reassignment_after_one_consumer_added(name: str) -> None:
    """testReassignmentAfterOneConsumerAdded: 20 partitions, from 9 to 10 members."""
    nine = {f"c{at:02d}": ["t"] for at in range(1, 10)}
    before = settle(name, group(nine, {"t": 20}))
    grown = lists(after(name, {**nine, "c10": ["t"]}, {"t": 20}, before))
    assert [len(rows) for rows in grown.values()] == [2] * 10
    assert all(set(grown[m]) <= set(lists(before)[m]) for m in nine)


@both
def test_same_subscriptions(name: str) -> None:
    """testSameSubscriptions: 14 topics, 8 members, one leaves."""
    counts = {f"t{at}": at for at in range(1, 15)}
    eight = {key: list(counts) for key in [f"c{at}" for at in range(1, 9)]}
    before = settle(name, group(eight, counts))
    seven = {m: topics for m, topics in eight.items() if m != "c5"}
    left = lists(after(name, seven, counts, before))
    assert all(set(lists(before)[m]) <= set(left[m]) for m in seven)


@both
def test_large_assignment_and_group_with_uniform_subscription(name: str) -> None:
    """testLargeAssignmentAndGroupWithUniformSubscription: 500 topics of 2,000, 2,000 members, one leaves."""
    everything = tuple(f"t{at:03d}" for at in range(500))
    counts = dict.fromkeys(everything, 2000)
    before = assign(name, Scenario.of([Member(f"c{at:04d}", everything) for at in range(2000)], counts))
    assert set(before.counts().tolist()) == {500}
    rest = Scenario.of([Member(f"c{at:04d}", everything) for at in range(1, 2000)], counts)
    left = assign(name, rest.with_owned(before, 1))
    assert set(left.counts().tolist()) == {500, 501}


@both
def test_large_assignment_and_group_with_non_equal_subscription(name: str) -> None:
    """…WithNonEqualSubscription, and …NotTimeout: the last member has one topic only; then 100 × 200 with 500."""
    everything = tuple(f"t{at:03d}" for at in range(100))
    counts = dict.fromkeys(everything, 200)
    members = [Member(f"c{at:04d}", everything) for at in range(499)] + [Member("c0499", everything[:1])]
    group_ = Scenario.of(members, counts)
    before = assign(name, group_)
    assert set(before.counts().tolist()) == {40}
    left = assign(name, Scenario.of(members[1:], counts).with_owned(before, 1))
    assert set(left.counts().tolist()) == {40, 41}


@both
@pytest.mark.parametrize("order", ["123", "132", "213", "231", "312", "321"])
def test_subscription_not_equal_and_assign_same_partition_with_3_generation(name: str, order: str) -> None:
    """testSubscriptionNotEqualAndAssignSamePartitionWith3Generation (KAFKA-15106)"""
    one, two, three = (int(digit) for digit in order)
    topics = {"c1": ["t"], "c2": ["t"], "c3": ["t"], "c4": ["t", "u"]}
    owned = {
        "c1": [("t", 2), ("t", 0)],
        "c2": [("t", 1), ("t", 2)],
        "c3": [("t", 0), ("t", 1)],
        "c4": [("t", 3)],
    }
    generation = {"c1": one, "c2": two, "c3": three, "c4": 1}
    given = lists(settle(name, group(topics, {"t": 6, "u": 1}, owned, generation)))
    assert all(1 <= len(rows) <= 2 for rows in given.values())


@both
@pytest.mark.parametrize("seed", range(4))
def test_large_assignment_with_multiple_consumers_leaving_and_random_subscription(
    name: str, seed: int
) -> None:
    """testLargeAssignmentWithMultipleConsumersLeavingAndRandomSubscription: 40 topics, 200 members, 50 leave."""
    random = Random(seed)
    counts = {f"t{at:02d}": random.randint(1, 10) for at in range(40)}
    members = {f"c{at:03d}": random.sample(sorted(counts), random.randint(1, 20)) for at in range(200)}
    before = settle(name, group(members, counts))
    rest = dict(random.sample(sorted(members.items()), 150))
    settle(name, group(rest, counts).with_owned(before, 1))


@both
def test_new_subscription(name: str) -> None:
    """testNewSubscription: a member subscribes to one more topic."""
    members, counts = nested(4)
    before = settle(name, group(members, counts))
    members["consumer01"] = ["topic01", "topic02"]
    after(name, members, counts, before)


@both
def test_move_existing_assignments(name: str) -> None:
    """testMoveExistingAssignments"""
    topics = {"c1": ["t1", "t2"], "c2": ["t1", "t2", "t3", "t4"], "c3": ["t2", "t3", "t4", "t5", "t6"]}
    owned = {"c1": [("t1", 0)], "c2": [("t2", 0), ("t3", 0)], "c3": [("t4", 0), ("t5", 0), ("t6", 0)]}
    settle(name, group(topics, {f"t{at}": 1 for at in range(1, 7)}, owned))


@both
def test_stickiness(name: str) -> None:
    """testStickiness: 3 partitions, from 4 to 3 members: everybody keeps its one."""
    four = {key: ["t"] for key in ["c1", "c2", "c3", "c4"]}
    before = settle(name, group(four, {"t": 3}))
    idle = next(m for m, rows in lists(before).items() if not rows)
    busy = {m: topics for m, topics in four.items() if m != "c1"}
    left = lists(after(name, busy, {"t": 3}, before))
    assert [len(rows) for rows in left.values()] == [1, 1, 1]
    assert all(set(lists(before)[m]) <= set(left[m]) for m in busy if m != idle)


@both
def test_assignment_updated_for_deleted_topic(name: str) -> None:
    """testAssignmentUpdatedForDeletedTopic"""
    given = settle(name, group({"c": ["t1", "t2", "t3"]}, {"t1": 1, "t3": 100}))
    assert given.counts().tolist() == [101]


@both
def test_no_exception_thrown_when_only_subscribed_topic_deleted(name: str) -> None:
    """testNoExceptionThrownWhenOnlySubscribedTopicDeleted"""
    owned = {"c": [("t", 0), ("t", 1), ("t", 2)]}
    assert lists(settle(name, group({"c": ["t"]}, {}, owned))) == {"c": []}


@both
@pytest.mark.parametrize("seed", range(25))
def test_reassignment_with_random_subscriptions_and_changes(name: str, seed: int) -> None:
    """testReassignmentWithRandomSubscriptionsAndChanges"""
    random = Random(seed)
    counts = {f"t{at:02d}": random.randint(1, 10) for at in range(random.randint(1, 20))}
    names = [f"c{at:02d}" for at in range(random.randint(1, 20))]

    def draw() -> list[str]:
        return random.sample(sorted(counts), random.randint(1, len(counts)))

    before = settle(name, group({m: draw() for m in names}, counts))
    settle(name, group({m: draw() for m in names}, counts).with_owned(before, 1))


@both
def test_all_consumers_reach_expected_quota_and_are_considered_filled(name: str) -> None:
    """testAllConsumersReachExpectedQuotaAndAreConsideredFilled"""
    owned = {"c1": [("t", 0), ("t", 1)], "c2": [("t", 2)], "c3": []}
    given = lists(settle(name, group({key: ["t"] for key in owned}, {"t": 4}, owned)))
    assert given == {"c1": [("t", 0), ("t", 1)], "c2": [("t", 2)], "c3": [("t", 3)]}


@both
def test_owned_partitions_are_invalidated_for_a_stale_generation(name: str) -> None:
    """testOwnedPartitionsAreInvalidatedForConsumerWithStaleGeneration"""
    owned = {"c1": [("t", 0), ("t", 2), ("u", 1)], "c2": [("t", 0), ("t", 2), ("u", 1)]}
    everything = {key: ["t", "u"] for key in owned}
    given = lists(settle(name, group(everything, {"t": 3, "u": 3}, owned, {"c1": 5, "c2": 4})))
    assert set(given["c1"]) == set(owned["c1"])
    assert set(given["c2"]) == {("t", 1), ("u", 0), ("u", 2)}


@both
def test_owned_partitions_are_invalidated_for_no_generation(name: str) -> None:
    """testOwnedPartitionsAreInvalidatedForConsumerWithNoGeneration"""
    owned = {"c1": [("t", 0), ("t", 2), ("u", 1)], "c2": [("t", 0), ("t", 2), ("u", 1)]}
    everything = {key: ["t", "u"] for key in owned}
    given = lists(settle(name, group(everything, {"t": 3, "u": 3}, owned, {"c1": 5, "c2": None})))
    assert set(given["c1"]) == set(owned["c1"])


@both
def test_partitions_transferring_ownership_include_what_two_claim_in_one_generation(name: str) -> None:
    """testPartitionsTransferringOwnershipIncludeThePartitionClaimedByMultipleConsumersInSameGeneration, and
    testAllConsumersHaveOwnedPartitionInvalidated…: the cooperative one gives it to nobody this round, the eager does."""
    owned = {"c1": [("t", 0), ("t", 1)], "c2": [("t", 0), ("t", 2)], "c3": []}
    first = assign(name, group({key: ["t"] for key in owned}, {"t": 3}, owned))
    given = {row for rows in lists(first).values() for row in rows}
    assert (("t", 0) in given) is (name == "sticky")
    assert lists(first)["c1"] == [("t", 1)]
    assert lists(first)["c2"] == [("t", 2)]


@both
@pytest.mark.parametrize("equal", [True, False])
def test_ensure_partitions_assigned_to_highest_generation(name: str, equal: bool) -> None:
    """testEnsurePartitionsAssignedToHighestGeneration, testAssignmentWithMultipleGenerations,
    testAssignmentWithConflictingPreviousGenerations, with equal and different subscriptions"""
    topics = {"c1": ["t", "u"], "c2": ["t", "u"], "c3": ["t", "u"] if equal else ["t", "u", "v"]}
    owned = {"c1": [("t", 0), ("u", 0)], "c2": [("t", 1), ("u", 1)], "c3": [("t", 0), ("u", 1)]}
    generation = {"c1": 3, "c2": 2, "c3": 1}
    given = lists(settle(name, group(topics, {"t": 3, "u": 3, "v": 0}, owned, generation)))
    assert set(owned["c1"]) <= set(given["c1"])
    assert set(owned["c2"]) <= set(given["c2"])
    assert not set(owned["c3"]) & set(given["c3"])


@both
def test_no_reassignment_on_current_members(name: str) -> None:
    """testNoReassignmentOnCurrentMembers"""
    everything = [f"t{at}" for at in range(4)]
    owned = {
        "c1": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)],
        "c2": [("t0", 2), ("t1", 2), ("t2", 1)],
        "c3": [("t2", 0), ("t2", 2), ("t3", 0)],
        "c4": [("t3", 1), ("t3", 2)],
    }
    given = lists(settle(name, group(dict.fromkeys(owned, everything), dict.fromkeys(everything, 3), owned)))
    assert [len(rows) for rows in given.values()] == [3, 3, 3, 3]


@pytest.mark.parametrize("user_data", [1, -1, None])
def test_member_data_of_the_cooperative_one_takes_the_field_before_user_data(user_data: int | None) -> None:
    """testEncodeAndDecodeGeneration, testDecodeGeneration, testMemberDataWithInconsistentData, …EmptyPartitions…,
    …HigherGeneration: the subscription's own field wins; without it the user data counts, else nothing."""
    claims = {"a": [("t", 0)], "b": [("t", 0)]}
    field = [
        Member("a", ("t",), generation=5, remembered_generation=user_data),
        Member("b", ("t",), generation=4),
    ]
    given = assign("cooperative-sticky", Scenario.of(field, {"t": 2}, owned=claims))
    assert lists(given)["a"] == [("t", 0)]


def test_member_data_of_the_eager_one_honours_user_data_only() -> None:
    """testMemberDataWillHonorUserData, testSchemaBackwardCompatibility (no generation), testAssignorWithOldVersion…"""
    members = [Member("a", ("t",)), Member("b", ("t",))]
    told = Scenario.of(members, {"t": 2}, owned={"a": [("t", 1)]}, remembered={"b": [("t", 0)]})
    assert lists(assign("sticky", told)) == {"a": [("t", 1)], "b": [("t", 0)]}
    assert lists(assign("cooperative-sticky", told)) == {"a": [("t", 1)], "b": [("t", 0)]}
    untold = Scenario.of(members, {"t": 2}, owned={"b": [("t", 0)]}, remembered={})
    assert lists(assign("sticky", untold)) == {"a": [("t", 0)], "b": [("t", 1)]}


@pytest.mark.parametrize("alike", [True, False], ids=["Uniform", "NonEqual"])
@pytest.mark.parametrize("replication", [1, 2, 3])
@both
def test_rack_aware_assignment(name: str, replication: int, alike: bool) -> None:
    """testRackAwareAssignmentWithUniformSubscription / …WithNonEqualSubscription: t1 6, t2 7, t3 2 partitions."""
    counts, names = {"t1": 6, "t2": 7, "t3": 2}, [f"rack-{at}" for at in range(3)]
    where = {
        topic: [[names[(at + copy) % 3] for copy in range(replication)] for at in range(count)]
        for topic, count in counts.items()
    }
    topics = [("t1", "t2", "t3")] * 3 if alike else [("t1", "t2", "t3"), ("t1", "t2", "t3"), ("t2",)]
    members = [Member(f"c{at}", topics[at], rack=names[at]) for at in range(3)]
    near = assign(name, Scenario.of(members, counts, replica_racks=where))
    far = assign(name, Scenario.of([Member(m.id, m.topics) for m in members], counts))
    assert sorted(near.counts().tolist()) == sorted(far.counts().tolist()) == [5, 5, 5]

    def mismatches(given: Assignment) -> int:
        return sum(
            names[at] not in where[topic][partition]
            for at, rows in enumerate(lists(given).values())
            for topic, partition in rows
        )

    assert mismatches(near) <= mismatches(far)
    if replication == 3:
        assert lists(near) == lists(far)


def test_uniform_subscription_transfer_ownership_list_is_right() -> None:
    """testUniformSubscriptionTransferOwnershipListIsRight (KAFKA-15170): two rack mismatches make two transfers."""
    racks = {"t": [["r1"], ["r2"]]}
    members = [Member("c1", ("t",), rack="r1", generation=1), Member("c2", ("t",), rack="r2", generation=1)]
    owned = {"c1": [("t", 1)], "c2": [("t", 0)]}
    given = assign("cooperative-sticky", Scenario.of(members, {"t": 2}, owned=owned, replica_racks=racks))
    assert lists(given) == {"c1": [], "c2": []}
    assert given.withheld is not None
    assert lists(given.withheld) == {"c1": [("t", 0)], "c2": [("t", 1)]}
