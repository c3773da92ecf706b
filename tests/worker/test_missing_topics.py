"""A topic of kagent's own that is deleted under a running worker is made anew, or named where it may not be made: on a real broker."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from kagent.contract.recommendation import State
from kagent.kafka.acls import rules
from kagent.kafka.admin import Admin
from kagent.kafka.topics import ensure, wanted
from kagent.settings import Cluster, Settings, Topics
from kagent.worker.rights import Rights
from tests.fixtures.waiting import PATIENCE_S, until

if TYPE_CHECKING:
    from tests.conftest import Guarded

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


class Asked:
    """Rights of a worker, whose topics ``root`` made and may delete."""

    def __init__(self, root: str, cluster: Cluster) -> None:
        self.root = Admin(Cluster(bootstrap=root))
        self.topics = Topics(prefix=f"t-{uuid.uuid4().hex[:8]}-", partitions=1)
        ensure(self.root, self.topics)
        self.rights = Rights(Settings(clusters={"main": cluster}, topics=self.topics), cluster)

    def delete(self, name: str) -> None:
        client = AdminClient({"bootstrap.servers": self.root.cluster.bootstrap, "log_level": 0})
        client.delete_topics([name])[name].result(PATIENCE_S)
        until(lambda: name not in self.root.topics([name]), "the topic is gone")

    def looked(self) -> list[str]:
        """What is lacking as of now."""
        self.rights.look_home()
        return self.rights.sentences

    def there(self) -> set[str]:
        return set(self.root.topics([topic.name for topic in wanted(self.topics)]))


def test_what_is_missing_is_made_anew(broker: str, caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked(broker, Cluster(bootstrap=broker))
    all_ = asked.there()
    for name in (asked.topics.dead_letters, asked.topics.mutes, asked.topics.events):
        asked.delete(name)

        asked.rights.look_home()

        until(lambda: asked.there() == all_, "it is there again")
        assert f"The topic {name} is gone" in caplog.text
    assert asked.rights.sentences == []
    assert not asked.rights.blinds()


@pytest.mark.parametrize(("kind", "blind"), [("dead_letters", False), ("events", True)])
def test_what_may_not_be_made_is_named_and_blinds_only_where_work_needs_it(
    own_guarded: Guarded, kind: str, blind: bool
) -> None:
    asked = Asked(own_guarded.root, own_guarded.cluster("worker"))
    own_guarded.allow("worker", rules(asked.topics)["worker"])
    name = getattr(asked.topics, kind)
    # Brokers learn of new rules a moment after these were made.
    until(lambda: asked.looked() == [], "no right is lacking")
    asked.delete(name)

    asked.rights.look_home()

    (sentence,) = asked.rights.sentences
    assert f"The topic {name} could not be created" in sentence
    assert "kagent topics" in sentence
    assert asked.rights.blinds() == blind
    said = asked.rights.state("main", State(cluster="main", version="1", time=1, status="watching"))
    assert said.status == ("blind" if blind else "watching")
    assert said.reason == sentence

    ensure(asked.root, asked.topics)
    asked.rights.look_home()
    assert asked.rights.sentences == []
