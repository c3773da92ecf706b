"""No command's help waits for what only its work needs: clients of Kafka, numbers, Spark."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kagent.cli import COMMANDS

pytestmark = pytest.mark.slow  # each starts a Python of its own

HEAVY = ("aiokafka", "confluent_kafka", "faust", "httpx", "numpy", "pandas", "pyarrow", "pyspark")
"""Libraries that take longer to load than a command's first line may take."""
NEEDED = {"assign": {"numpy"}}
"""The help of `assign` lists the strategies, which are numpy's."""

PROGRAM = """
import json, sys
from click.testing import CliRunner
from kagent.cli import root

heavy, found = set(json.loads(sys.argv[1])), {}
for name in json.loads(sys.argv[2]):
    answer = CliRunner().invoke(root, [name, *sys.argv[3:]], prog_name="kagent")
    assert answer.exit_code == 0, (name, answer.output, answer.exception)
    found[name] = sorted(heavy & set(sys.modules))
print(json.dumps(found))
"""


def loaded_by_help(names: list[str], *subcommand: str) -> dict[str, list[str]]:
    """Command → the heavy libraries that are loaded once its help is printed, the commands before it included."""
    return loaded_by(HEAVY, names, *subcommand, "--help")


def loaded_by(heavy: tuple[str, ...], names: list[str], *arguments: str) -> dict[str, list[str]]:
    """Command → which of ``heavy`` are loaded once it has run with these arguments, the commands before it included."""
    program = [sys.executable, "-c", PROGRAM, json.dumps(heavy), json.dumps(names), *arguments]
    answer = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, list[str]] = json.loads(answer.stdout)
    return found


def test_no_commands_help_loads_a_heavy_library() -> None:
    light = [name for name in COMMANDS if name not in NEEDED]
    assert len(light) > 25

    loaded = loaded_by_help(light)

    assert {name: libraries for name, libraries in loaded.items() if libraries} == {}


def test_no_commands_help_loads_the_settings() -> None:
    loaded = loaded_by(("kagent.settings",), sorted(COMMANDS), "--help")

    assert {name: modules for name, modules in loaded.items() if modules} == {}


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_the_others_load_no_more_than_their_help_lists(name: str) -> None:
    assert set(loaded_by_help([name])[name]) <= NEEDED[name]


def test_the_rights_are_printed_without_a_heavy_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGENT_BOOTSTRAP", "localhost:9092")

    assert loaded_by(HEAVY, ["acls"])["acls"] == []


def test_the_tables_of_the_history_are_printed_without_the_settings() -> None:
    assert loaded_by(("pydantic", "rich", "yaml"), ["history"], "schema")["history"] == []


@pytest.mark.parametrize(
    ("name", "subcommand"), [("alert", "test"), ("history", "write"), ("history", "maintain")]
)
def test_nor_does_the_help_of_a_subcommand(name: str, subcommand: str) -> None:
    assert loaded_by_help([name], subcommand)[name] == []
