"""The generator of random groups writes scenario files that the simulator takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kagent.simulator import load

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "random_scenarios.py"


def written(folder: Path, seed: int) -> dict[str, str]:
    subprocess.run([sys.executable, SCRIPT, folder, "--count", "2", "--seed", str(seed)], check=True)
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.mark.slow
def test_each_fault_has_files_that_load_and_the_same_seed_writes_the_same(tmp_path: Path) -> None:
    files = written(tmp_path / "one", 7)
    scenarios = [load(tmp_path / "one" / name) for name in files]

    assert {s.expect for s in scenarios} == {
        ("rebalance",),
        ("hot_partition",),
        ("slow_member",),
        ("under_provisioned",),
        ("stuck_member",),
        ("stalled",),
    }
    assert all(s.assignment and s.events for s in scenarios)
    assert files == written(tmp_path / "two", 7)
