"""The sentence of switch_assignor names every roll; tests/java/test_rolls.py does what it says to real clients."""

from __future__ import annotations

import pytest

from kagent.contract.recommendation import GroupKind
from kagent.recommend.switching import JAVA_CLASS, how_to_switch

K = GroupKind


@pytest.mark.parametrize("new", JAVA_CLASS)
@pytest.mark.parametrize("present", JAVA_CLASS)
def test_every_change_of_a_java_group_lists_both_and_then_the_new_one_alone(new: str, present: str) -> None:
    how = how_to_switch(K.CLASSIC_JAVA, new, present)
    assert f"={JAVA_CLASS[new]},{JAVA_CLASS[present]} " in how
    assert f"={JAVA_CLASS[new]} and restart them one by one again" in how


@pytest.mark.parametrize(
    ("new", "present", "stops"),
    [
        ("roundrobin", "range", False),
        ("cooperative-sticky", "range", True),
        ("range", "cooperative-sticky", True),
        ("range", None, True),
    ],
)
def test_librdkafka_lists_two_eager_ones_and_is_stopped_for_cooperative(
    new: str, present: str | None, stops: bool
) -> None:
    how = how_to_switch(K.CLASSIC_LIBRDKAFKA, new, present)
    assert how.startswith("Stop all consumers") is stops


def test_connect_is_told_of_the_override_policy_and_unknown_clients_are_stopped() -> None:
    assert "connector.client.config.override.policy" in how_to_switch(K.CONNECT, "range", "sticky")
    assert how_to_switch(K.CLASSIC, "range", "roundrobin").startswith("Stop all consumers")


def test_the_new_protocol_takes_one_roll() -> None:
    assert "group.remote.assignor=range " in how_to_switch(K.CONSUMER, "kip848-range", "kip848-uniform")


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_where_the_library_is_unknown_each_way_says_for_whom_it_is(strategy: str) -> None:
    how = how_to_switch(K.CLASSIC, strategy, None)
    assert f"Java: partition.assignment.strategy={JAVA_CLASS[strategy]};" in how
    assert f"librdkafka: partition.assignment.strategy={strategy};" in how
    assert "franz-go: kgo.Balancers(" in how
