"""A broker that does not know a batched request is asked for one group after the other; the version table decides, broker by broker."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest

from kagent.kafka import group_admin, topic_requests
from kagent.kafka.brokers import Brokers, Node
from kagent.kafka.group_admin import UNKNOWN_REQUEST
from kagent.kafka.group_requests import DescribeClassic, FetchOffsets, FindCoordinators
from kagent.kafka.topic_requests import DescribeTopics
from kagent.settings import Cluster

Versions = dict[int, tuple[int, int]]
METADATA, OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS = 3, 9, 10, 15
KAFKA_2_3: Versions = {
    METADATA: (0, 8),
    OFFSET_FETCH: (0, 5),
    FIND_COORDINATOR: (0, 2),
    DESCRIBE_GROUPS: (0, 3),
}
KAFKA_2_8: Versions = {
    METADATA: (0, 11),
    OFFSET_FETCH: (0, 7),
    FIND_COORDINATOR: (0, 3),
    DESCRIBE_GROUPS: (0, 5),
}
KAFKA_4: Versions = {
    METADATA: (0, 13),
    OFFSET_FETCH: (1, 10),
    FIND_COORDINATOR: (0, 6),
    DESCRIBE_GROUPS: (0, 6),
}
"""What ``ApiVersions`` of these releases answers for each API key."""


@pytest.mark.parametrize("request_", [FetchOffsets(["a", "b"], False), FindCoordinators(["a", "b"])])
def test_a_batched_request_is_built_for_brokers_since_kafka_3_alone(request_: Any) -> None:
    assert request_.prepare(KAFKA_4).API_VERSION >= 4
    with pytest.raises(UNKNOWN_REQUEST):
        request_.prepare(KAFKA_2_8)


@pytest.mark.parametrize("request_", [OffsetFetchRequest("a", None), FindCoordinatorRequest("a", 0)])
@pytest.mark.parametrize("versions", [KAFKA_2_3, KAFKA_2_8, KAFKA_4])
def test_the_request_for_one_group_is_built_for_all(request_: Any, versions: Versions) -> None:
    assert versions[request_.API_KEY][1] >= request_.prepare(versions).API_VERSION


@pytest.mark.parametrize(("versions", "built"), [(KAFKA_2_3, 5), (KAFKA_2_8, 11), (KAFKA_4, 11)])
def test_topics_are_described_with_ids_where_the_broker_has_them(versions: Versions, built: int) -> None:
    assert built == DescribeTopics(["t"]).prepare(versions).API_VERSION


class Scripted(Brokers):
    """Brokers of these versions that answer as such: two groups each, each with the offset of its broker's number."""

    def __init__(self, versions: dict[int, Versions]) -> None:
        super().__init__(Cluster(bootstrap="127.0.0.1:1"), 1.0)
        self.nodes = {node: Node(("broker", node), None) for node in versions}
        self.versions = versions
        self.asked: list[tuple[int, str]] = []

    async def ask(self, request: Any, node: int) -> Any:
        built = request.prepare(self.versions[node])
        self.asked.append((node, type(built).__name__))
        return getattr(self, f"answer_{built.API_KEY}")(built, node)

    def answer_10(self, built: Any, node: int) -> Any:
        # The group a1 has the coordinator 1.
        if built.API_VERSION < 4:
            return built.RESPONSE_TYPE(0, 0, "", int(built.coordinator_key[-1]), "broker", 1)
        found: list[Any] = [(name, int(name[-1]), "broker", 1, 0, "", {}) for name in built.get_item("keys")]
        return built.RESPONSE_TYPE(0, found, {})

    def answer_9(self, built: Any, node: int) -> Any:
        if built.API_VERSION < 8:
            return built.RESPONSE_TYPE(0, [("orders", [(0, node, "", 0), (1, -1, "", 0)])], 0)
        of_each: list[Any] = [("orders", [(0, node, -1, "", 0, {}), (1, -1, -1, "", 0, {})], {})]
        return built.RESPONSE_TYPE(0, [(name, of_each, 0, {}) for name, *_ in built.get_item("groups")], {})

    def answer_15(self, built: Any, node: int) -> Any:
        return built.RESPONSE_TYPE(0, [(0, name, "Empty", "consumer", "", [], 0) for name in built.groups])

    def answer_3(self, built: Any, node: int) -> Any:
        partitions = [(0, 1, 7, [7, 8], [7], []), (0, 0, -1, [7], [], [7])]
        topics = [(0, "orders", False, partitions), (3, "none", False, [])]
        return built.RESPONSE_TYPE(0, [(7, "broker", 1, "a"), (8, "broker", 2, "b")], "id", 7, topics)


GROUPS = ["a1", "b1", "a2", "b2"]


async def test_one_old_broker_of_two_costs_nobody_and_the_other_is_asked_for_all_its_groups_at_once() -> None:
    brokers = Scripted({1: KAFKA_2_8, 2: KAFKA_4})

    answers = await group_admin.committed(brokers, GROUPS, require_stable=False)

    assert answers.found == {name: {("orders", 0): int(name[-1])} for name in GROUPS}
    assert not answers.failed
    fetched = [(node, built) for node, built in brokers.asked if "Offset" in built]
    assert sorted(fetched) == [
        (1, "OffsetFetchRequest_v3"),
        (1, "OffsetFetchRequest_v3"),
        (2, "OffsetsQuestion"),
    ]


async def test_a_broker_that_is_older_than_a_question_costs_its_own_groups_and_is_named() -> None:
    assert DescribeClassic(["a"]).prepare(KAFKA_2_8).API_VERSION == 4
    brokers = Scripted({1: KAFKA_2_3, 2: KAFKA_4})

    answers = await group_admin.described(brokers, GROUPS)

    assert answers.found.keys() == {"a2", "b2"}
    assert answers.settled == dict.fromkeys(("a1", "b1"), "broker 1 at broker:1 is too old for this question")


async def test_a_topic_of_an_old_broker_has_leaders_and_racks_and_no_id() -> None:
    found = await topic_requests.described(Scripted({1: KAFKA_2_3}), ["orders", "none"])

    assert found.keys() == {"orders"}
    assert found["orders"].id == "A" * 22
    assert found["orders"].leaders == (-1, 7)
    assert found["orders"].replica_racks == (frozenset({"a"}), frozenset({"a", "b"}))
