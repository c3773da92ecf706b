"""Why a plan could not even be checked: what is away is named, and no right is blamed for it."""

from __future__ import annotations

from typing import Any, Self

import pytest

from kagent.apply import apply_plan
from kagent.apply.apply_plan import Applier
from kagent.errors import KafkaError
from kagent.kafka.reach import unreachable
from kagent.settings import Cluster, Topics

THERE, HOME = Cluster(bootstrap="there:9092"), Cluster(bootstrap="home:9092")


class Silent:
    """A reader of topics that never gets to their end."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Reached:
    """The admin of a cluster that answers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def require_answer(self) -> None:
        pass


class Away(Reached):
    """The admin of a cluster of which no broker answers."""

    def require_answer(self) -> None:
        raise KafkaError(unreachable(self.cluster.bootstrap))


@pytest.mark.parametrize(
    ("admin", "said"),
    [
        (
            Away,
            "The cluster at home:9092 cannot be reached: home has no address: check it and the name server.",
        ),
        (Reached, "kagent's topics on home:9092 cannot be read: run `kagent topics`, check the rights."),
    ],
)
def test_topics_that_are_not_read_in_time_are_a_matter_of_rights_only_where_a_broker_answers(
    monkeypatch: pytest.MonkeyPatch, admin: type[Reached], said: str
) -> None:
    monkeypatch.setattr(apply_plan, "Reader", Silent)
    monkeypatch.setattr(apply_plan, "READ_WITHIN_S", 0.0)
    monkeypatch.setattr(apply_plan, "Admin", admin)
    monkeypatch.setattr("kagent.kafka.names.lacking", lambda hosts: "home has no address")

    with pytest.raises(KafkaError) as error:
        Applier(THERE, HOME, "main", "billing", Topics())._snapshot()

    assert str(error.value) == said
