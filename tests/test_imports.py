"""The pure rooms import neither Faust, Spark nor a Kafka client: arrows point inwards, and in no circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "kagent"
PURE_ROOMS = (
    "contract",
    "offsets",
    "groups",
    "strategies",
    "lag",
    "planner",
    "detect",
    "recommend",
    "incident",
    "simulator",
)
PURE_MODULES = (
    "group_key",
    "text",
    "errors",
    "policy",
    "settings",
    "worker.ingest_progress",
    "worker.offset_gaps",
    "worker.pipeline_runs",
    "worker.event_sources",
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


@pytest.mark.slow
def test_every_pure_module_can_be_imported_without_any_adapters_library() -> None:
    names = pure_modules()
    assert len(names) > 40

    program = PROGRAM.format(blocked=set(BLOCKED), names=names)
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )

    assert answer.returncode == 0, answer.stderr[-2000:]


def test_the_block_blocks() -> None:
    program = PROGRAM.format(blocked=set(BLOCKED), names=["kagent.kafka.coordinators"])
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )

    assert "blocked: aiokafka" in answer.stderr


WITH_FAUST = {
    "event_reader",
    "faust_app",
    "http.endpoints",
    "http.pages",
    "process",
    "quiet_worker",
    "transport",
}
"""Modules of the worker that join the engine to Faust."""


@pytest.mark.slow
def test_the_engine_and_all_pieces_but_the_named_ones_can_be_imported_without_faust() -> None:
    pieces = {name.removeprefix("kagent.worker.") for name in modules() if name.startswith("kagent.worker.")}
    assert pieces >= WITH_FAUST
    names = [f"kagent.worker.{name}" for name in sorted(pieces - WITH_FAUST)]
    assert {"kagent.worker.engine", "kagent.worker.evaluator", "kagent.worker.fence"} <= set(names)

    program = PROGRAM.format(blocked={"faust", "mode"}, names=names)
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )

    assert answer.returncode == 0, answer.stderr[-2000:]


ORDER = (
    ("contract",),
    ("offsets",),
    ("groups",),
    ("strategies",),
    ("lag",),
    ("planner",),
    ("detect",),
    ("recommend",),
    ("incident",),
    ("worker", "check", "history", "simulator", "replay", "capture"),
    ("app", "commands"),
)
"""Folders of the judgement and around it, the innermost first: each imports only from those before it."""


def modules() -> dict[str, Path]:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(tree: ast.AST, known: Mapping[str, Path]) -> Iterator[str]:
    """The package's own modules that this one imports: also within functions, and for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


@cache
def arrows() -> dict[str, set[str]]:
    """Module → the package's modules that it imports."""
    known = modules()
    return {
        name: {m for m in imported(ast.parse(file.read_text()), known) if m in known and m != name}
        for name, file in known.items()
    }


def folder(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.slow
def test_no_file_imports_itself_over_others() -> None:
    TopologicalSorter(arrows()).prepare()  # raises CycleError, which names them


def test_no_folder_imports_itself_over_others() -> None:
    graph: dict[str, set[str]] = {}
    for module, others in arrows().items():
        mine = graph.setdefault(folder(module), set())
        mine |= {folder(o) for o in others} - {folder(module)}
    TopologicalSorter(graph).prepare()


def test_the_settings_import_only_the_contract_and_modules_beside_them() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"contract", "settings"}
    graph = arrows()
    reached, waiting = set[str](), ["kagent.settings"]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += graph[module]

    assert len(reached) > 5
    assert [module for module in sorted(reached) if folder(module) in folders] == []


def test_the_folders_of_the_judgement_import_from_earlier_ones_alone() -> None:
    place = {name: at for at, names in enumerate(ORDER) for name in names}
    wrong = [
        (module, other)
        for module, others in arrows().items()
        for other in others
        if folder(module) in place
        and folder(other) in place
        and folder(module) != folder(other)
        and place[folder(module)] < place[folder(other)]
    ]
    assert wrong == []
