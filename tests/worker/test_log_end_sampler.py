"""What changes seldom is asked again, however many topics are new."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kagent.kafka.admin import Admin
from kagent.worker import log_end_sampler
from kagent.worker.log_end_sampler import Sampler


class Cluster:
    """The two answers that a sampler learns names from; ``policies``: topic → cleanup policy, and a topic a minute appears."""

    def __init__(self) -> None:
        self.policies = {"orders": "delete"}

    def topics(self, names: set[str]) -> dict[str, Any]:
        return {name: SimpleNamespace(id=name, partitions=1) for name in names if name in self.policies}

    def topic_configs(self, names: set[str]) -> dict[str, dict[str, str]]:
        return {name: {"cleanup.policy": self.policies[name]} for name in names}


def test_a_known_topics_cleanup_policy_is_asked_again_though_new_topics_keep_coming(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, clock = Cluster(), [0.0]
    monkeypatch.setattr("kagent.worker.log_end_sampler.time.monotonic", lambda: clock[0])
    sampler = Sampler(cast(Admin, cluster))
    sampler.describe(["orders"])
    cluster.policies["orders"] = "compact"

    for n in range(3):
        clock[0] += log_end_sampler.CONFIGS_EVERY / 2
        cluster.policies[f"new-{n}"] = "delete"
        sampler.describe(["orders", *cluster.policies])

    assert sampler.compacted["orders"]
