"""What the history's writer does before Spark starts."""

from __future__ import annotations

import uuid

import pytest

from kagent.embedded.broker import free_port
from kagent.errors import KafkaError
from kagent.history.history_service import check
from kagent.kafka.admin import Admin
from kagent.kafka.topics import wanted
from kagent.settings import load

pytestmark = pytest.mark.kafka


def test_on_a_new_cluster_it_makes_the_topics_that_it_reads_as_the_worker_would(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_TOPICS__PREFIX", f"new-{uuid.uuid4().hex[:8]}-")
    settings = load(bootstrap=broker)
    topics = settings.topics

    check(settings, "main", patient=True)
    check(settings, "main", patient=True)  # a second start finds them

    found = Admin(settings.clusters["main"]).topic_names()
    of_prefix = {name: partitions for name, partitions in found.items() if name.startswith(topics.prefix)}
    read = (topics.events, topics.recommendations)
    assert of_prefix == {each.name: each.partitions for each in wanted(topics) if each.name in read}


@pytest.mark.slow
def test_a_broker_that_is_away_is_named_before_spark_starts(caplog: pytest.LogCaptureFixture) -> None:
    address = f"127.0.0.1:{free_port()}"
    away = load(bootstrap=address)

    check(away, "main", patient=True)
    assert f"{address} cannot be reached" in caplog.text

    with pytest.raises(KafkaError, match="cannot be reached"):
        check(away, "main", patient=False)
