"""Questions to coordinators: of many groups at once, and while a coordinator goes away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kagent.kafka import group_admin

if TYPE_CHECKING:
    from tests.fixtures.cast import Cast

pytestmark = [pytest.mark.kafka]

ASKS_A_BROKER_THAT_STOPS = """
import sys
from pathlib import Path
from kagent.errors import KafkaError
from kagent.kafka import group_admin
from kagent.kafka.admin import Admin
from kagent.embedded.broker import Broker
from kagent.settings import Cluster

with Broker(Path(sys.argv[1])) as broker:
    admin = Admin(Cluster(bootstrap=broker.bootstrap), deadline=0.05)
    for question in (admin.describe, admin.committed) * 2:
        try:
            question(["a", "b", "c"])
        except KafkaError as error:
            print(error)
"""


def test_more_groups_than_go_into_a_request_are_asked_in_parts(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_admin, "CHUNK", 3)
    cast.topic("parts", 1, records=9)
    names = [f"part-{n}" for n in range(7)]
    for offset, name in enumerate(names):
        cast.commit(name, "parts", offset)

    assert cast.admin.committed(names) == {name: {("parts", 0): n} for n, name in enumerate(names)}
    assert {name: group.state for name, group in cast.admin.describe(names).items()} == dict.fromkeys(
        names, "empty"
    )


def test_a_group_that_does_not_exist_is_dead_and_has_no_commits(cast: Cast) -> None:
    assert cast.admin.describe(["nobody"])["nobody"].state == "dead"
    assert cast.admin.committed(["nobody"]) == {"nobody": {}}


def test_a_process_outlives_a_broker_that_stops_under_its_questions(tmp_path: Path) -> None:
    """librdkafka aborts the process here, or does not let it end."""
    command = [sys.executable, "-c", ASKS_A_BROKER_THAT_STOPS, str(tmp_path / "broker")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)

    assert ended.returncode == 0, ended.stderr
