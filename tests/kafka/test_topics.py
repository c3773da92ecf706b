"""kagent's own topics are made once, as the contracts say, and what is wrong with them is said."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from kagent.cli import root
from kagent.errors import Misconfigured
from kagent.kafka.topics import make_sure
from kagent.settings import Topics
from kagent.tables.declare import CHANGELOG

if TYPE_CHECKING:
    from tests.fixtures.cast import Cast

pytestmark = [pytest.mark.kafka]


def run(bootstrap: str, prefix: str, *args: str) -> Result:
    env = {"KAGENT_TOPICS__PREFIX": prefix}
    return CliRunner(env=env).invoke(root, ["--bootstrap", bootstrap, "topics", *args])


def test_what_is_missing_is_created_once(cast: Cast) -> None:
    checked = run(cast.bootstrap, "fresh-", "--check")
    first = run(cast.bootstrap, "fresh-", "--json")
    second = run(cast.bootstrap, "fresh-", "--json")

    assert checked.exit_code == 1
    assert (
        "fresh-mutes: wrong: it is missing, or you have no right to see it: run `kagent topics`"
        in checked.stdout
    )
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert {json.loads(line)["state"] for line in first.stdout.splitlines()} == {"created"}
    assert "fresh-alerts" in {json.loads(line)["topic"] for line in first.stdout.splitlines()}
    assert {json.loads(line)["state"] for line in second.stdout.splitlines()} == {"ok"}


def test_the_topics_are_as_the_contracts_say(cast: Cast) -> None:
    run(cast.bootstrap, "contract-")
    topics = Topics(prefix="contract-")
    found = cast.admin.topic_configs([topics.events, topics.recommendations, topics.mutes, topics.ticks])
    counts = cast.admin.topic_names()

    assert {name: config["cleanup.policy"] for name, config in found.items()} == {
        topics.events: "delete",
        topics.recommendations: "compact",
        topics.mutes: "compact",
        topics.ticks: "delete",
    }
    assert found[topics.events]["retention.ms"] == str(24 * 3_600_000)
    subscribed = {topics.recommendations, topics.mutes}  # by clients that do not all know zstd
    assert {name: config["compression.type"] for name, config in found.items()} == {
        name: "gzip" if name in subscribed else "zstd" for name in found
    }
    # The broker refuses the time of a worker whose clock is hours ahead.
    of_broker = {"message.timestamp.type": "LogAppendTime"}
    assert all(of_broker.items() <= config.items() for config in (*found.values(), CHANGELOG))
    assert counts[topics.events] == counts[topics.ticks] == topics.partitions


def test_what_is_wrong_is_said_with_the_command_that_mends_it(cast: Cast) -> None:
    topics = Topics(prefix="wrong-")
    writers_time = {"message.timestamp.type": "CreateTime"}
    compacted: Any = {"cleanup.policy": "compact,delete", **writers_time}
    cast.topic(topics.recommendations, topics.partitions, **compacted)
    cast.topic(topics.events, 3)
    short: Any = {"retention.ms": "1000"}
    cast.topic(topics.ticks, topics.partitions, **short)

    result = run(cast.bootstrap, "wrong-")

    lines = {line.split(": ")[0]: line for line in result.stdout.splitlines()}
    assert result.exit_code == 1
    assert "has cleanup.policy=compact,delete" in lines[topics.recommendations]
    assert (
        "--entity-name wrong-recommendations --add-config "
        "cleanup.policy=compact,max.message.bytes=8388608,message.timestamp.type=LogAppendTime,compression.type=gzip"
        in lines[topics.recommendations]
    )
    assert "and message.timestamp.type=CreateTime" in lines[topics.recommendations]
    assert "has 3 partitions, the settings say 8" in lines[topics.events]
    assert "has retention.ms=1000" in lines[topics.ticks]


def test_changelogs_of_an_earlier_release_are_judged_and_none_is_made(cast: Cast) -> None:
    topics = Topics(prefix="earlier-")
    writers_time: Any = {"message.timestamp.type": "CreateTime"}
    cast.topic("earlier-lag-changelog", topics.partitions, **writers_time)
    cast.topic("earlier-ends-changelog", 3)

    result = run(cast.bootstrap, "earlier-")

    lines = {line.split(": ")[0]: line for line in result.stdout.splitlines() if "changelog" in line}
    assert result.exit_code == 1
    assert lines.keys() == {"earlier-ends-changelog", "earlier-lag-changelog"}
    assert "has 3 partitions, the settings say 8" in lines["earlier-ends-changelog"]
    assert (
        "earlier-lag-changelog --add-config message.timestamp.type=LogAppendTime"
        in lines["earlier-lag-changelog"]
    )


def test_a_service_starts_with_a_topic_that_is_set_otherwise_and_says_so(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    topics = Topics(prefix="short-")
    short: Any = {"retention.ms": "1000"}
    cast.topic(topics.ticks, topics.partitions, **short)

    made = make_sure(cast.admin, topics, logging.getLogger("kagent.test"))

    assert {finding.topic for finding in made if finding.problem} == {topics.ticks}
    assert (
        "The topic short-ticks has retention.ms=1000 and message.timestamp.type=CreateTime: run `kafka-configs.sh"
        in caplog.text
    )


def test_a_service_does_not_start_with_a_topic_of_another_number_of_partitions(cast: Cast) -> None:
    topics = Topics(prefix="wide-")
    cast.topic(topics.events, 3)

    with pytest.raises(Misconfigured, match=r"The topic wide-group-events has 3 partitions, .* say 8"):
        make_sure(cast.admin, topics, logging.getLogger("kagent.test"))
