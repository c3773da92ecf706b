"""Faults on real processes lose, double and forget nothing: three workers, two brokers, a pipeline, and faults as a seed has them.

`make soak MINUTES=60 SEED=7` runs for as long as it is told to; `make soak FAULTS=200 MINUTES=180` ends after so many faults;
`make soak PREVIOUS=yes` lets one of the three workers be of the previous release.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.fixtures.previous_release import previous_release
from tests.fixtures.two_brokers import start_pair
from tests.worker.soak import Soak

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.flaky(reruns=0)]

MINUTES = float(os.environ.get("SOAK_MINUTES", "0"))
FAULTS = int(os.environ.get("SOAK_FAULTS") or 0)
"""After so many it ends, if it has not before; 0: it ends by the minutes alone."""
PREVIOUS = bool(os.environ.get("SOAK_PREVIOUS"))
"""Whether one of the workers is of the previous release, as while an upgrade is rolled out."""


@pytest.mark.skipif(not MINUTES, reason="run by `make soak`")
@pytest.mark.timeout(int(MINUTES * 60) + 3600)
def test_a_soak_loses_doubles_and_forgets_nothing(
    kagent: Callable[..., Any], policy: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = start_pair(tmp_path)
    running = kagent(policy, broker=pair, topic_settings={"replication": 2})
    brokers = {"broker": pair.first, "broker-2": pair.second}
    soak = Soak(running, int(os.environ.get("SOAK_SEED", "1")), brokers=brokers)
    if PREVIOUS:
        running.releases["worker-3"] = previous_release(tmp_path)
    soak.start()
    until = time.monotonic() + MINUTES * 60
    for name, fault in soak.planned():
        soak.inflict(name, fault)
        with capsys.disabled():
            click.echo(f"{len(soak.faults):4} {name}: judged again after {soak.recovered_s[-1]:.0f} s")
        if time.monotonic() > until or len(soak.faults) == FAULTS:
            break
    found = soak.verdict()

    with capsys.disabled():
        click.echo(soak.summary())
    assert not found
