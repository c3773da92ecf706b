"""A broker that is killed costs a client that is used for long no more than the questions under way."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kagent.kafka.admin import Admin
from kagent.settings import Cluster
from tests.fixtures.two_brokers import start_pair
from tests.fixtures.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
KEYS = [("orders", partition) for partition in range(8)]


def test_log_ends_are_had_from_the_leaders_that_took_over(tmp_path: Path) -> None:
    pair = start_pair(tmp_path)
    try:
        client = AdminClient({"bootstrap.servers": pair.bootstrap, "log_level": 0})
        client.create_topics([NewTopic("orders", len(KEYS), 2)])["orders"].result(PATIENCE_S)
        # Its metadata is refreshed every 5 minutes: until then it has the killed broker as a leader.
        admin = Admin(Cluster(bootstrap=pair.bootstrap), deadline=5)
        until(lambda: len(admin.log_end(KEYS).found) == len(KEYS), "all leaders answer")

        pair.second.kill()

        until(
            lambda: set(Admin(admin.cluster).topics(["orders"])["orders"].leaders) == {1}, "the other leads"
        )
        within_s = 200  # less than those 5 minutes
        until(lambda: len(admin.log_end(KEYS).found) == len(KEYS), "the new leaders answer", within_s)
    finally:
        pair.stop()
