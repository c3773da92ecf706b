"""What README says can be done can be done."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from kagent.cli import root
from kagent.settings import load

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FOR_EVER = {"up", "watch", "worker", "pipeline", "demo"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def lines() -> list[list[str]]:
    return [shlex.split(line) for block in blocks("console") for line in block.splitlines() if line.strip()]


KAGENT = [line[1:] for line in lines() if line[0].endswith("kagent")]
MAKE = [line[1:] for line in lines() if line[0] == "make"]


@pytest.mark.parametrize("arguments", KAGENT, ids=" ".join)
def test_every_command_exists_with_its_options(arguments: list[str]) -> None:
    with click.Context(root) as ctx:
        found = root.get_command(ctx, arguments[0])
        assert found is not None
        found.make_context(arguments[0], list(arguments[1:]), parent=ctx)


@pytest.mark.parametrize("target", sorted({line[0] for line in MAKE}))
def test_every_target_is_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.kafka
@pytest.mark.parametrize("arguments", [a for a in KAGENT if a[0] not in FOR_EVER], ids=" ".join)
def test_every_command_that_ends_works_on_a_real_broker(arguments: list[str], broker: str) -> None:
    environment = {"KAGENT_BOOTSTRAP": broker, "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    command = [sys.executable, "-m", "kagent", *arguments]
    answer = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=120, check=False
    )

    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("block", blocks("yaml"))
def test_the_settings_shown_are_settings(block: str, tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text(block)

    assert set(yaml.safe_load(block)) <= set(load(file).model_dump())


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_shown_is_python(block: str) -> None:
    compile(block, "README", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
