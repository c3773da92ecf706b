"""The pure rooms import neither Faust, Spark nor a Kafka client: arrows point inwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kagent"
PURE_ROOMS = ("contract", "offsets", "groups", "strategies", "lag", "planner", "advice", "simulator")
PURE_MODULES = (
    "group_key",
    "text",
    "errors",
    "policy",
    "settings",
    "worker.ingest_progress",
    "worker.offset_gaps",
    "worker.status",
    "worker.restore",
)
BLOCKED = ("faust", "mode", "pyspark", "confluent_kafka", "aiokafka", "kafka", "httpx", "aiohttp")
ADAPTERS = {"strategies.plugins"}
"""Adapters that live beside what they adapt, and say so."""

PROGRAM = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(f"blocked: {{name}}")

sys.meta_path.insert(0, Blocked())
for name in {names!r}:
    importlib.import_module(name)
"""


def pure_modules() -> list[str]:
    found = [f"kagent.{name}" for name in PURE_MODULES]
    for room in PURE_ROOMS:
        for file in sorted((PACKAGE / room).rglob("*.py")):
            parts = file.relative_to(PACKAGE).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if not any(name == adapter or name.startswith(f"{adapter}.") for adapter in ADAPTERS):
                found.append(f"kagent.{name}")
    return found


def test_every_pure_module_can_be_imported_without_any_adapters_library() -> None:
    names = pure_modules()
    assert len(names) > 40

    program = PROGRAM.format(blocked=set(BLOCKED), names=names)
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )

    assert answer.returncode == 0, answer.stderr[-2000:]


def test_the_block_blocks() -> None:
    program = PROGRAM.format(blocked=set(BLOCKED), names=["kagent.kafka.admin"])
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )

    assert "blocked: aiokafka" in answer.stderr
