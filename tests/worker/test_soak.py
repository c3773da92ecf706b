"""Faults on real processes lose, double and forget nothing. `make soak MINUTES=60 SEED=7` runs for as long as it is told to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import click
import pytest

from tests.worker.soak import Soak

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.flaky(reruns=0)]

MINUTES = float(os.environ.get("SOAK_MINUTES", "0"))


@pytest.mark.skipif(not MINUTES, reason="run by `make soak`")
@pytest.mark.timeout(int(MINUTES * 60) + 3600)
def test_a_soak_loses_doubles_and_forgets_nothing(
    kagent: Callable[..., Any], policy: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    soak = Soak(kagent(policy), int(os.environ.get("SOAK_SEED", "1")))
    soak.start()
    until = time.monotonic() + MINUTES * 60
    for name, fault in soak.planned():
        soak.inflict(name, fault)
        with capsys.disabled():
            click.echo(f"{len(soak.faults):4} {name}: judged again after {soak.recovered_s[-1]:.0f} s")
        if time.monotonic() > until:
            break
    found = soak.verdict()

    with capsys.disabled():
        click.echo(soak.summary())
    assert not found
