"""One broker of two is frozen: what it leads and coordinates is not known, by name and with the reason; all else is shown."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.cli import root
from kagent.group_key import source_partition
from kagent.kafka import admin as admin_module
from kagent.kafka.admin import Admin
from kagent.lag.log_ends import UNKNOWN
from kagent.offsets import OFFSETS_TOPIC
from kagent.settings import Cluster
from kagent.worker.log_end_sampler import Sampler
from tests.fixtures.cast import Cast
from tests.fixtures.two_brokers import Pair, start_pair
from tests.fixtures.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ALONE = {
    # Nothing has another place to move to, and the controller does not notice: the frozen one stays in the metadata.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "default.replication.factor": "1",
    "broker.session.timeout.ms": "3600000",
}
GROUPS = [f"g{n}" for n in range(12)]


@dataclass
class Half:
    """Two brokers, the first of which is frozen: and the groups of each."""

    bootstrap: str
    frozen: str
    pid: int
    groups: dict[str, bool]
    """Name → whether its coordinator is the other one."""

    def lost(self) -> list[str]:
        """The groups of the frozen one."""
        return sorted(name for name, known in self.groups.items() if not known)

    def known(self) -> list[str]:
        """The groups of the other one."""
        return sorted(name for name, known in self.groups.items() if known)


@pytest.fixture(autouse=True)
def patient_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_module.Admin.__init__, "__defaults__", (9.0,))


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Half]:
    pair = start_pair(tmp_path_factory.mktemp("half"), ALONE)
    try:
        found = with_groups(pair)
        os.kill(found.pid, signal.SIGSTOP)
        yield found
        os.kill(found.pid, signal.SIGCONT)
    finally:
        pair.stop()


def with_groups(pair: Pair) -> Half:
    """Two topics, one of each broker, on which groups of both brokers commit; and kagent's own, on the second."""
    client = AdminClient({"bootstrap.servers": pair.bootstrap, "log_level": 0})
    placed = {"first": 1, "second": 2, "kagent-recommendations": 2}
    topics = [NewTopic(name, replica_assignment=[[node]], num_partitions=1) for name, node in placed.items()]
    for future in client.create_topics(topics).values():
        future.result(PATIENCE_S)
    cast = Cast(pair.bootstrap)
    until(lambda: set(cast.admin.topics(placed)) == set(placed))
    for topic in ("first", "second"):
        cast.produce(topic, {0: 10})
    for name in GROUPS:
        for topic in ("first", "second"):
            cast.commit(name, topic, 3)
    leaders = cast.admin.topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].leaders
    groups = {name: leaders[source_partition(name, len(leaders))] == 2 for name in GROUPS}
    assert set(groups.values()) == {True, False}
    assert pair.first.pid is not None
    return Half(pair.bootstrap, f"broker 1 at {pair.first.bootstrap}", pair.first.pid, groups)


def run(half: Half, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["--bootstrap", half.bootstrap, *arguments])


def rows(result: Result) -> dict[tuple[str, str], int | None]:
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return {(row["group"], row["topic"]): row["lag"] for row in found}


def test_lag_shows_what_the_other_broker_has_and_names_the_one_that_does_not_answer(half: Half) -> None:
    result = run(half, "lag", "--json")

    assert rows(result) == {
        (name, topic): lag for name in half.known() for topic, lag in (("first", None), ("second", 7))
    }
    assert "Groups may be missing: no coordinator answers for partitions" in result.stderr
    assert f"(no answer from {half.frozen})" in result.stderr
    assert "1 partition, first-0." in result.stderr
    assert result.exit_code == 2


def test_lag_of_named_groups_says_which_are_not_known(half: Half) -> None:
    result = run(half, "lag", "--json", *GROUPS)

    assert {group for group, _ in rows(result)} == set(half.known())
    assert f"({'no answer from ' + half.frozen}): {len(half.lost())} groups" in result.stderr
    assert result.exit_code == 2


def test_check_looks_at_the_groups_of_the_other_broker_and_is_not_well(half: Half) -> None:
    result = run(half, "check", "--json", "--for", "2s")

    # They are late, and two seconds are too short to judge that.
    assert json.loads(result.stdout.splitlines()[-1])["too_short_for"] == half.known()
    assert f"(no answer from {half.frozen}): 1 partition, first-0." in result.stderr
    assert result.exit_code == 2


def test_explain_tells_what_it_does_not_know(half: Half) -> None:
    result = run(half, "explain", "--live", "--for", "1s", half.known()[0])

    assert result.stdout
    assert f"(no answer from {half.frozen}): 1 partition, first-0." in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize("command", [["explain", "--live", "--for", "1s"], ["plan", "--live"]])
def test_a_group_of_the_frozen_broker_is_no_missing_group(half: Half, command: list[str]) -> None:
    result = run(half, *command, half.lost()[0])

    assert f"no answer from {half.frozen}" in str(result.exception)
    assert "There is no" not in str(result.exception)


def test_topics_and_their_settings_are_had_from_the_broker_that_answers(half: Half) -> None:
    for _ in range(3):
        admin = Admin(Cluster(bootstrap=half.bootstrap))
        assert admin.topics(["first", "second"]).keys() == {"first", "second"}
        assert admin.topic_configs(["first"]).keys() == {"first"}


def test_rights_are_had_from_the_broker_that_answers(half: Half) -> None:
    for _ in range(3):
        admin = Admin(Cluster(bootstrap=half.bootstrap))
        allowed = admin.topic_operations(["first", "second", "no-such-topic"])
        assert allowed.keys() == {"first", "second"}
        assert {"read", "write", "describe"} <= allowed["first"]


def test_topics_are_checked_without_the_frozen_broker(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a prefix of their own: what a frozen controller is asked to make, it makes when it wakes.
    monkeypatch.setenv("KAGENT_TOPICS__PREFIX", "checked-")
    result = run(half, "topics", "--check")

    assert (
        "checked-mutes: wrong: it is missing, or you have no right to see it: run `kagent topics`"
        in result.stdout
    )
    assert result.exit_code == 1


def test_topics_cannot_be_made_while_the_controller_is_frozen_and_the_broker_is_named(
    half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_TOPICS__PREFIX", "made-")
    result = run(half, "topics")

    assert f", which waits for the controller: no answer from {half.frozen}; " in str(result.exception)
    assert "no answer from broker 2 at" in str(result.exception)


def test_status_reads_a_topic_that_the_other_broker_leads(half: Half) -> None:
    result = run(half, "status")

    assert "cannot be read" not in str(result.exception)


def test_all_is_known_once_it_answers_again(half: Half) -> None:
    admin = Admin(Cluster(bootstrap=half.bootstrap))
    assert set(admin.committed_each(GROUPS).failed) == set(half.lost())

    os.kill(half.pid, signal.SIGCONT)
    try:
        # At the next question: one that was silent is asked all the same, with little patience.
        until(lambda: not admin.committed_each(GROUPS).failed)
        result = run(half, "lag", "--json")
    finally:
        os.kill(half.pid, signal.SIGSTOP)

    assert rows(result) == {(name, topic): 7 for name in GROUPS for topic in ("first", "second")}
    assert (result.stderr, result.exit_code) == ("", 0)


def test_a_worker_samples_what_the_other_broker_leads_and_waits_for_the_frozen_one_once(
    half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler(Admin(Cluster(bootstrap=half.bootstrap)))
    sampler.describe({"first", "second"})

    def ends() -> dict[str, list[int]]:
        return {one.topic: one.end.tolist() for one in sampler.sample({"first", "second"})}

    assert ends() == {"first": [UNKNOWN], "second": [10]}
    # librdkafka would wait for it with the whole deadline.
    for name in ("log_end", "log_start"):
        monkeypatch.setattr(sampler.admin, name, lambda *_: pytest.fail("librdkafka was asked"))
    assert ends() == {"first": [UNKNOWN], "second": [10]}
    monkeypatch.undo()

    os.kill(half.pid, signal.SIGCONT)
    try:
        until(lambda: ends() == {"first": [10], "second": [10]})
    finally:
        os.kill(half.pid, signal.SIGSTOP)
