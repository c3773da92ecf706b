"""What coordinators answer, in sentences for people."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.kafka.coordinators import Coordinators
from kagent.settings import Cluster


class NeverAsked(Coordinators):
    """Of a cluster that no test asks anything."""

    cluster = Cluster(bootstrap="here:9092")
    deadline = 1.0

    def cluster_id(self) -> str:
        raise NotImplementedError

    def topics(self, names: Any) -> Any:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def reached(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("error", "why"), [("The node is not ready.", "The node is not ready"), ("", "no answer in time")]
)
def test_an_error_is_a_sentence_with_one_full_stop(error: str, why: str) -> None:
    said = NeverAsked()._answered("asked for its groups", error)

    assert said == f"The cluster at here:9092 answered with an error when asked for its groups: {why}."
