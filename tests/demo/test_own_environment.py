"""The demo keeps away from a cluster for which variables are set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kagent.demo import choreography
from kagent.demo.own_environment import without_settings


def test_what_is_set_for_another_cluster_is_not_seen_and_the_rest_is() -> None:
    environment = {
        "KAGENT_BOOTSTRAP": "production:9092", "kagent_data": "/d", "KAGENT_FOLLOW": "off", "KAGENT_CACHE": "/c", "PATH": "/bin",
    }  # fmt: skip

    without_settings(environment)

    assert environment == {"KAGENT_CACHE": "/c", "PATH": "/bin"}


def test_the_demo_takes_them_out_before_it_reads_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = list[bool]()

    async def run(demo: object) -> int:
        seen.append("KAGENT_BOOTSTRAP" in os.environ)
        return 0

    monkeypatch.setenv("KAGENT_BOOTSTRAP", "production:9092")
    monkeypatch.setattr(choreography, "_interruptible", run)

    assert choreography.main(keep=False) == 0
    assert seen == [False]
