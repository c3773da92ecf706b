"""A running group becomes a scenario line that the strategies read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition

from kagent.cli import root
from kagent.errors import InputError
from kagent.kafka.live_scenario import scenario_line
from kagent.strategies import STRATEGIES, Scenario, assign

if TYPE_CHECKING:
    from tests.fixtures.cast import Cast

pytestmark = [pytest.mark.kafka]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_running_group_can_be_assigned_anew(cast: Cast, protocol: str) -> None:
    one, two, group = f"live-1-{protocol}", f"live-2-{protocol}", f"live-{protocol}"
    cast.topic(one, 3, records=4)
    cast.topic(two, 1, records=2)
    a = cast.join(group, [one, two], **{"group.protocol": protocol, "group.instance.id": "a"})
    b = cast.join(group, [one], **{"group.protocol": protocol, "group.instance.id": "b"})
    cast.settle(group, a, b)
    a.commit(offsets=[TopicPartition(two, 0, 1)], asynchronous=False)

    line = scenario_line(cast.admin, group, STRATEGIES)

    assert line["partitions_per_topic"] == {one: 3, two: 1}
    members = {member["group_instance_id"]: member for member in line["members"]}
    assert {name: sorted(member["topics"]) for name, member in members.items()} == {
        "a": [one, two],
        "b": [one],
    }
    for name, consumer in (("a", a), ("b", b)):
        assert members[name]["owned"] == sorted([p.topic, p.partition] for p in consumer.assignment())
    assert line["lags"] == {one: [[0, 0], [1, 0], [2, 0]], two: [[0, 1]]}
    assert line["assumed"] == [
        f"{one}: the lag of partition 0, 1, 2 is not known: it counts as 0, and the partition is not moved"
    ]
    assert line["pinned"] == [[one, 0], [one, 1], [one, 2]]
    given = assign("range", Scenario.from_json(line)).to_dict()
    assert sum(map(len, given.values())) == 4


@pytest.mark.parametrize("command", ["assign", "plan"])
def test_the_commands_take_a_running_group(cast: Cast, command: str) -> None:
    topic, group = f"live-{command}", f"live-{command}-group"
    cast.topic(topic, 3, records=4)
    consumer = cast.join(group, [topic])
    cast.settle(group, consumer)
    consumer.commit(offsets=[TopicPartition(topic, p, 1) for p in range(2)], asynchronous=False)

    result = CliRunner().invoke(root, ["--bootstrap", cast.bootstrap, command, "--group", group, "--json"])

    assert (result.exception, json.loads(result.stdout)["id"]) == (None, group)
    assert f"assumed: {topic}: the lag of partition 2 is not known" in result.stderr


def test_a_pattern_is_taken_as_all_topics_of_the_group_and_that_is_said(cast: Cast) -> None:
    cast.topic("live-pattern-1", 1)
    consumer = cast.join("live-pattern", ["^live-pattern-.*"], **{"group.protocol": "consumer"})
    cast.settle("live-pattern", consumer)

    line = scenario_line(cast.admin, "live-pattern", STRATEGIES)

    assert line["members"][0]["topics"] == ["live-pattern-1"]
    assert any("subscribes by the pattern" in sentence for sentence in line["assumed"])


def test_a_group_that_is_not_there_is_one_sentence(cast: Cast) -> None:
    with pytest.raises(InputError, match="There is no consumer group live-nobody on this cluster"):
        scenario_line(cast.admin, "live-nobody", STRATEGIES)
