"""What the package imports is what it asks to be installed, no more and no less."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LISTED_FOR_ITS_VERSION = {"pandas"}
"""pyspark[sql] needs it; the lower bound is ours."""
COMES_WITH = {"aiohttp": "faust-streaming", "py4j": "pyspark", "pydantic-core": "pydantic", "requests": "jgo"}
"""Types and errors of the interface of a library that is declared, and that brings these along."""
OPTIONAL = {"kafka-python"}
"""Imported where it is used: a missing one is named in a sentence."""


def declared(lines: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~! ]", line, maxsplit=1)[0].lower() for line in lines}


def imported() -> set[str]:
    """Distributions that hold the modules that any file of the package imports, at the top or within a function."""
    modules = set()
    for file in (ROOT / "kagent").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.split(".")[0])
    owners = packages_distributions()
    outside = modules - set(sys.stdlib_module_names) - {"kagent", "tables", "__future__"}
    return {owners[name][0].lower().replace("_", "-") for name in outside if name in owners}


@pytest.mark.slow
def test_every_mandatory_dependency_is_imported_by_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert declared(project["dependencies"]) - imported() - LISTED_FOR_ITS_VERSION == set()


@pytest.mark.slow
def test_everything_that_the_package_imports_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = declared([line for lines in project["optional-dependencies"].values() for line in lines])

    mandatory = declared(project["dependencies"])
    assert set(COMES_WITH.values()) <= mandatory
    assert imported() - mandatory - COMES_WITH.keys() - (optional & OPTIONAL) == set()
