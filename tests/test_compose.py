"""docker-compose.yml and the Dockerfile agree with the command line, the settings and each other."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml
from pydantic import BaseModel

from kagent.cli import root
from kagent.embedded.broker import free_port
from kagent.pipeline.stream_metrics import Metrics
from kagent.settings import Settings

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
METRICS_PORT = SERVICES["pipeline"]["command"][-1]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("kagent")}


def field_exists(model: type[BaseModel], path: list[str]) -> bool:
    """Whether the settings have a field at this path; a dict's key may be anything."""
    if not path:
        return True
    field = model.model_fields.get(path[0])
    if field is None:
        return False
    rest = path[1:]
    kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
    models = [kind for kind in kinds if issubclass(kind, BaseModel)]
    if field.annotation not in models and models:
        rest = rest[1:]  # the key of a dict
    return not rest or any(field_exists(kind, rest) for kind in models)


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_variable_is_a_setting(name: str) -> None:
    for variable in OURS[name].get("environment", {}):
        path = variable.removeprefix("KAGENT_").lower().split("__")
        assert variable.startswith("KAGENT_")
        assert field_exists(Settings, path), variable


def test_the_check_of_variables_tells_right_from_wrong() -> None:
    assert field_exists(Settings, ["clusters", "main", "security", "password"])
    assert not field_exists(Settings, ["clusters", "main", "bootstrapp"])
    assert not field_exists(Settings, ["pipeline", "checkpoints"])


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_command_exists_with_its_options(name: str) -> None:
    command, *arguments = OURS[name]["command"]
    with click.Context(root) as ctx:
        found = root.get_command(ctx, command)
        assert found is not None, command
        found.make_context(command, list(arguments), parent=ctx)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_image_is_pinned(name: str) -> None:
    assert re.search(r":\d+\.\d+", SERVICES[name]["image"]), SERVICES[name]["image"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_a_service_waits_for_is_declared_and_can_come_about(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        if how["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other], other
        if how["condition"] == "service_completed_successfully":
            assert SERVICES[other]["restart"] == "no"


def test_every_volume_is_declared_and_used() -> None:
    used = {v.split(":")[0] for service in SERVICES.values() for v in service.get("volumes", [])}

    assert used == set(COMPOSE["volumes"])


def test_the_image_is_built_from_the_lock_file() -> None:
    text = (ROOT / "Dockerfile").read_text()

    assert "--require-hashes -r requirements.lock" in text
    assert re.search(r"^FROM \S+:\d+\.\d+\.\d+", text, re.MULTILINE)
    for line in re.findall(r"^COPY (.+?) \S+$", text, re.MULTILINE):
        assert all((ROOT / source).exists() for source in line.split()), line


@pytest.mark.parametrize(("age", "code"), [(0, 0), (3600, 1), (None, 1)])
def test_the_pipeline_is_healthy_while_it_tells_progress(age: float | None, code: int) -> None:
    *python, check = SERVICES["pipeline"]["healthcheck"]["test"][1:]
    assert python == ["python", "-c"]
    metrics, port = Metrics("main"), free_port()
    metrics.serve("127.0.0.1", port)
    if age is not None:
        metrics.reached_at.set(time.time() - age)

    assert f":{METRICS_PORT}/" in check
    here = check.replace(f"localhost:{METRICS_PORT}", f"127.0.0.1:{port}")
    assert subprocess.run([sys.executable, "-c", here], check=False).returncode == code
