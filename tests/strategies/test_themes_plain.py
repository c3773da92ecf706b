"""The themes of Kafka's own tests of range, round robin, member order and the server's assignors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kagent.strategies import Assignment, Member, Scenario, assign
from kagent.strategies.ranges import in_member_order

Pairs = list[tuple[str, int]]
SIX = {"t1": 3, "t2": 3}
BOTH_TOPICS = ("t1", "t2")


def group(topics: Mapping[str, Sequence[str]], counts: Mapping[str, int], **more: object) -> Scenario:
    return Scenario.of([Member(name, tuple(wanted)) for name, wanted in topics.items()], counts, **more)  # type: ignore[arg-type]


def compact(given: Assignment) -> dict[str, str]:
    return {m: " ".join(f"{t}-{p}" for t, p in sorted(rows)) for m, rows in given.to_dict().items()}


def static(*named: tuple[str, str | None]) -> Scenario:
    return Scenario.of([Member(name, BOTH_TOPICS, instance) for name, instance in named], SIX)


@pytest.mark.parametrize("name", ["range", "roundrobin", "kip848-range", "kip848-uniform", "fair"])
@pytest.mark.parametrize(
    ("topics", "counts", "expected"),
    [
        pytest.param({"c": []}, {}, {"c": ""}, id="testOneConsumerNoTopic"),
        pytest.param({"c": ["t"]}, {}, {"c": ""}, id="testOneConsumerNonexistentTopic"),
        pytest.param({"c": ["t"]}, {"t": 3}, {"c": "t-0 t-1 t-2"}, id="testOneConsumerOneTopic"),
        pytest.param({"c": ["t"]}, {"t": 1, "u": 2}, {"c": "t-0"}, id="testOnlyAssignsPartitionsFromSubscribedTopics"),
        pytest.param(
            {"c": ["t", "u"]}, {"t": 1, "u": 2}, {"c": "t-0 u-0 u-1"}, id="testOneConsumerMultipleTopics"
        ),
        pytest.param(
            {"c1": ["t"], "c2": ["t"]}, {"t": 2}, {"c1": "t-0", "c2": "t-1"}, id="testTwoConsumersOneTopicTwoPartitions"
        ),
    ],
)  # fmt: skip
def test_simple_cases(
    name: str, topics: dict[str, list[str]], counts: dict[str, int], expected: dict[str, str]
) -> None:
    given = compact(assign(name, group(topics, counts)))
    if name == "kip848-uniform":  # the order of Java's map says who is first
        assert sorted(given.values()) == sorted(expected.values())
    else:
        assert given == expected


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_two_consumers_one_topic_one_partition(name: str) -> None:
    assert compact(assign(name, group({"c2": ["t"], "c1": ["t"]}, {"t": 1}))) == {"c1": "t-0", "c2": ""}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("range", {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1", "c3": "t1-2"}),
        ("roundrobin", {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1", "c3": "t1-2"}),
    ],
)
def test_multiple_consumers_mixed_topics(name: str, expected: dict[str, str]) -> None:
    topics = {"c1": ["t1"], "c2": ["t1", "t2"], "c3": ["t1"]}
    assert compact(assign(name, group(topics, {"t1": 3, "t2": 2}))) == expected


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("range", "t1-0 t1-1 t2-0 t2-1", "t1-2 t2-2"),
        ("kip848-range", "t1-0 t1-1 t2-0 t2-1", "t1-2 t2-2"),
        ("roundrobin", "t1-0 t1-2 t2-1", "t1-1 t2-0 t2-2"),
    ],
)
class TestTwoMembersSixPartitions:
    """testTwo{Dynamic,Static}ConsumersTwoTopicsSixPartitions, …Persistent(AfterMemberIdChanges)"""

    def test_dynamic_members_go_by_member_id(self, name: str, first: str, second: str) -> None:
        assert compact(assign(name, static(("c2", None), ("c1", None)))) == {"c1": first, "c2": second}

    def test_static_members_go_by_instance_id(self, name: str, first: str, second: str) -> None:
        assert compact(assign(name, static(("c1", "i2"), ("c2", "i1")))) == {"c2": first, "c1": second}

    def test_static_members_come_before_dynamic_ones(self, name: str, first: str, second: str) -> None:
        assert compact(assign(name, static(("a", None), ("b", "z")))) == {"b": first, "a": second}

    def test_static_members_keep_their_share_under_another_member_id(
        self, name: str, first: str, second: str
    ) -> None:
        assert compact(assign(name, static(("x9", "i1"), ("a1", "i2")))) == {"x9": first, "a1": second}


def test_members_are_ordered_by_instance_id_then_member_id() -> None:
    """AbstractPartitionAssignorTest: without, with all, with some instance ids, many"""
    members = [Member(f"m{at:03d}", (), f"i{(at * 37) % 100:02d}" if at % 2 else None) for at in range(100)]
    ordered = [members[at] for at in in_member_order(Scenario.of(members, {})).tolist()]
    instances = [m.group_instance_id for m in ordered if m.group_instance_id]
    dynamic = [m.id for m in ordered if not m.group_instance_id]
    assert [m.group_instance_id is None for m in ordered] == [False] * 50 + [True] * 50
    assert instances == sorted(instances)
    assert dynamic == sorted(dynamic)


RACKS = ("r0", "r1", "r2")


def racked(topics: Mapping[str, Sequence[str]], where: Mapping[str, list[list[str]]]) -> Scenario:
    members = [
        Member(name, tuple(wanted), rack=RACKS[at]) for at, (name, wanted) in enumerate(topics.items())
    ]
    return Scenario.of(members, {t: len(racks) for t, racks in where.items()}, replica_racks=where)


def test_range_prefers_the_members_own_rack() -> None:
    """testRackAwareAssignmentWithUniformSubscription"""
    where = {"t": [["r2"], ["r1"], ["r0"]]}
    assert compact(assign("range", racked({m: ["t"] for m in ("c1", "c2", "c3")}, where))) == {
        "c1": "t-2",
        "c2": "t-1",
        "c3": "t-0",
    }


def test_range_with_racks_and_different_subscriptions() -> None:
    """testRackAwareAssignmentWithNonEqualSubscription"""
    where = {"t": [["r1"], ["r0"]], "u": [["r2"], ["r1"]]}
    topics = {"c1": ["t"], "c2": ["t", "u"], "c3": ["u"]}
    assert compact(assign("range", racked(topics, where))) == {"c1": "t-1", "c2": "t-0 u-1", "c3": "u-0"}


def test_range_keeps_co_partitions_together_before_racks() -> None:
    """testRackAwareAssignmentWithUniformPartitions, …CoPartitioning: partition p of both topics to one member"""
    where = {"t": [["r0"], ["r1"], ["r2"]], "u": [["r2"], ["r0"], ["r1"]]}
    given = assign("range", racked({m: ["t", "u"] for m in ("c1", "c2", "c3")}, where)).to_dict()
    assert all(
        {p for t, p in rows if t == "t"} == {p for t, p in rows if t == "u"} for rows in given.values()
    )
    near = {"t": [["r2"], ["r1"], ["r0"]], "u": [["r2"], ["r1"], ["r0"]]}
    assert compact(assign("range", racked({m: ["t", "u"] for m in ("c1", "c2", "c3")}, near))) == {
        "c1": "t-2 u-2",
        "c2": "t-1 u-1",
        "c3": "t-0 u-0",
    }


def test_range_with_co_partitioned_topics_and_different_subscriptions() -> None:
    """testRackAwareAssignmentWithUniformPartitionsNonEqualSubscription"""
    where = {"t": [["r1"], ["r0"]], "u": [["r1"], ["r0"]]}
    topics = {"c1": ["t", "u"], "c2": ["t", "u"], "c3": ["t"]}
    given = assign("range", racked(topics, where)).to_dict()
    assert compact(assign("range", racked(topics, where)))["c1"].endswith("u-1")
    assert sum(map(len, given.values())) == 4


def test_range_with_the_same_racks_everywhere_is_plain() -> None:
    """testUseRackAwareAssignment, testCoPartitionedAssignmentWithSameSubscription"""
    where = {"t": [list(RACKS)] * 3, "u": [list(RACKS)] * 3}
    topics = {m: ["t", "u"] for m in ("c1", "c2", "c3")}
    assert compact(assign("range", racked(topics, where))) == {
        "c1": "t-0 u-0",
        "c2": "t-1 u-1",
        "c3": "t-2 u-2",
    }


def test_server_range_members_and_partitions_come_and_go() -> None:
    """RangeAssignorTest (server): more members than partitions, added member, added partition, removed"""
    three = {m: ["t"] for m in ("c1", "c2", "c3")}
    assert compact(assign("kip848-range", group(three, {"t": 2}))) == {"c1": "t-0", "c2": "t-1", "c3": ""}
    assert compact(assign("kip848-range", group(three, {"t": 4}))) == {
        "c1": "t-0 t-1",
        "c2": "t-2",
        "c3": "t-3",
    }
    two = {m: ["t"] for m in ("c1", "c2")}
    held = {"c1": [("t", 3)], "c2": [("t", 0), ("t", 1)]}
    assert compact(assign("kip848-range", group(two, {"t": 4}, owned=held))) == {
        "c1": "t-0 t-1",
        "c2": "t-2 t-3",
    }


@pytest.mark.parametrize("alike", [True, False], ids=["Homogeneous", "Heterogeneous"])
class TestUniform:
    """OptimizedUniformAssignmentBuilderTest and UniformHeterogeneousAssignmentBuilderTest"""

    def topics(self, alike: bool, *members: str) -> dict[str, list[str]]:
        extra = {} if alike else {"lonely": ["v"]}
        return {m: ["t", "u"] for m in members} | extra

    def uniform(
        self, alike: bool, members: Sequence[str], counts: dict[str, int], held: object = None
    ) -> dict[str, Pairs]:
        given = assign(
            "kip848-uniform", group(self.topics(alike, *members), {**counts, "v": 1}, owned=held)
        ).to_dict()
        given.pop("lonely", None)
        return given

    def test_first_assignment_is_even(self, alike: bool) -> None:
        given = self.uniform(alike, ["a", "b"], {"t": 3, "u": 3})
        assert sorted(map(len, given.values())) == [3, 3]

    def test_more_members_than_partitions(self, alike: bool) -> None:
        given = self.uniform(alike, ["a", "b", "c", "d"], {"t": 1, "u": 2})
        assert sorted(map(len, given.values())) == [0, 1, 1, 1]

    def test_an_even_assignment_stays(self, alike: bool) -> None:
        held = {"a": [("t", 0), ("u", 1)], "b": [("t", 1), ("u", 0)]}
        given = self.uniform(alike, ["a", "b"], {"t": 2, "u": 2}, held)
        assert {m: set(rows) for m, rows in given.items()} == {m: set(rows) for m, rows in held.items()}

    def test_an_unbalanced_one_is_evened_out_with_few_moves(self, alike: bool) -> None:
        held: dict[str, Pairs] = {"a": [("t", p) for p in range(5)] + [("u", 0)], "b": []}
        given = self.uniform(alike, ["a", "b"], {"t": 5, "u": 1}, held)
        assert sorted(map(len, given.values())) == [3, 3]
        assert set(given["a"]) <= set(held["a"])

    def test_added_partitions_go_to_who_has_room(self, alike: bool) -> None:
        held = {"a": [("t", 0), ("t", 1)], "b": [("u", 0), ("u", 1)]}
        given = self.uniform(alike, ["a", "b"], {"t": 4, "u": 2}, held)
        assert all(set(held[m]) <= set(given[m]) for m in held)
        assert sorted(map(len, given.values())) == [3, 3]

    def test_an_added_member_takes_only_its_share(self, alike: bool) -> None:
        held = {"a": [("t", 0), ("t", 1), ("t", 2)], "b": [("u", 0), ("u", 1), ("u", 2)]}
        given = self.uniform(alike, ["a", "b", "c"], {"t": 3, "u": 3}, held)
        assert sorted(map(len, given.values())) == [2, 2, 2]
        assert all(set(given[m]) <= set(held[m]) for m in held)

    def test_a_removed_members_partitions_are_shared_out(self, alike: bool) -> None:
        held = {"a": [("t", 0), ("t", 1)], "b": [("u", 0)], "gone": [("t", 2), ("u", 1), ("u", 2)]}
        given = self.uniform(alike, ["a", "b"], {"t": 3, "u": 3}, held)
        assert sorted(map(len, given.values())) == [3, 3]
        assert all(set(held[m]) <= set(given[m]) for m in given)

    def test_a_removed_subscription_is_dropped(self, alike: bool) -> None:
        held = {"a": [("t", 0), ("v", 0)], "b": [("t", 1)]}
        given = self.uniform(alike, ["a", "b"], {"t": 2, "u": 0}, held)
        assert {m: set(rows) for m, rows in given.items()} == {"a": {("t", 0)}, "b": {("t", 1)}}

    def test_a_large_sample_is_even(self, alike: bool) -> None:
        given = self.uniform(alike, [f"m{at:03d}" for at in range(50)], {"t": 300, "u": 210})
        assert {len(rows) for rows in given.values()} <= {10, 11}
