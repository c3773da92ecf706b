"""What README and the guides say can be done can be done."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from kagent.cli import COMMANDS, root
from kagent.kafka.admin import Admin
from kagent.kafka.topics import delivery_log, ensure, wanted
from kagent.policy import Policies, Policy, make_policy
from kagent.settings import Cluster, Settings, Topics, load

ROOT = Path(__file__).parents[1]
PAGES = {
    name: (ROOT / name).read_text()
    for name in ("README.md", "docs/getting-started.md", "docs/operations.md", "docs/captures.md")
}
HAND_WRITTEN = ("symptoms", "faq", "glossary", "judging", "architecture", "why")
LINKED = {**PAGES, **{f"docs/{name}.md": (ROOT / f"docs/{name}.md").read_text() for name in HAND_WRITTEN}}
LASTING = {
    "status",
    "up",
    "worker",
    "pipeline",
    "demo",
    "history",
    "check",
    "explain",
    "plan",
    "backtest",
    "calibrate",
    "capture",
    "replay",
}
"""Commands that run until stopped, for minutes, or want a past or members that a new cluster has not."""


def blocks(language: str) -> list[str]:
    fence = rf"^```{language}\n(.*?)^```"
    return [block for page in PAGES.values() for block in re.findall(fence, page, re.MULTILINE | re.DOTALL)]


def lines() -> list[list[str]]:
    return [shlex.split(line) for block in blocks("console") for line in block.splitlines() if line.strip()]


KAGENT = list({" ".join(line): line[1:] for line in lines() if line[0].endswith("kagent")}.values())
MAKE = [line[1:] for line in lines() if line[0] == "make"]


def ends(arguments: list[str]) -> bool:
    return arguments[0] not in LASTING and (arguments[0] != "watch" or "--open" in arguments)


@pytest.mark.parametrize("arguments", KAGENT, ids=" ".join)
def test_every_command_exists_with_its_options(arguments: list[str]) -> None:
    with click.Context(root) as ctx:
        found, rest = root.get_command(ctx, arguments[0]), arguments[1:]
        assert found is not None
        if isinstance(found, click.Group):
            found = found.commands[rest.pop(0)]
        found.make_context(arguments[0], rest, parent=ctx)


def test_nothing_follows_a_command_of_the_readme_that_keeps_its_terminal() -> None:
    fence = r"^```console\n(.*?)^```"
    shown = re.findall(fence, PAGES["README.md"], re.MULTILINE | re.DOTALL)
    (running,) = [block for block in shown if "kagent up\n" in block]
    second = shown[shown.index(running) + 1]

    assert running.endswith("kagent up\n")
    assert "second terminal" in PAGES["README.md"].split(running)[1].split(second)[0]
    assert [name for name in ("explain", "plan", "mute") if f"kagent {name} orders" not in second] == []


@pytest.mark.parametrize("target", sorted({line[0] for line in MAKE}))
def test_every_target_is_in_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.kafka
@pytest.mark.parametrize("arguments", [a for a in KAGENT if ends(a)], ids=" ".join)
def test_every_command_that_ends_works_on_a_real_broker(arguments: list[str], broker: str, cast: Any) -> None:
    topics = Topics()
    if arguments[0] == "mute":  # it refuses groups that do not exist
        if "reports" not in cast.admin.topic_names():
            cast.topic("reports", 1, 1)
        for group in ("reporting", "reporting-eu", "orders"):
            cast.commit(group, "reports", 0)
    ensure(Admin(Cluster(bootstrap=broker)), topics, needed=[*wanted(topics), delivery_log(topics)])
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
    settings = load(file)

    assert set(yaml.safe_load(block)) <= set(settings.model_dump())
    make_policy(settings.policy)
    Policies(settings.policy, settings.groups)


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_shown_is_python(block: str) -> None:
    compile(block, "page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def defaults(heading: str) -> list[tuple[str, str]]:
    """The first two columns of the table of ``docs/operations.md`` with this heading."""
    table = PAGES["docs/operations.md"].split(f"\n| {heading} |", 1)[1].split("\n\n", 1)[0]
    return [
        (name, said.strip("` "))
        for name, said in re.findall(r"^\| `(\S+)` \| ([^|]+?) \|", table, re.MULTILINE)
    ]


@pytest.mark.parametrize(("name", "said"), defaults("setting"))
def test_the_settings_listed_exist_with_the_defaults_told(name: str, said: str) -> None:
    settings = Settings(clusters={"main": Cluster(bootstrap="b:1")})
    value: object = settings
    for step in name.split("."):
        value = value[step] if isinstance(value, dict) else getattr(value, step)

    if said == "under `data":
        assert str(value).startswith(settings.data)
        return
    assert said == ("–" if value is None else f"{value:g}" if isinstance(value, float) else str(value))


@pytest.mark.parametrize(("name", "said"), defaults("policy"))
def test_the_policy_listed_exists_with_the_defaults_told(name: str, said: str) -> None:
    assert {f.name for f in fields(Policy)} >= {name}
    assert said == f"{getattr(Policy(), name):g}"


@pytest.mark.parametrize("page", LINKED)
def test_every_link_within_the_project_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", LINKED[page]):
        if "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


SAID = re.findall(r"`([^`]+)`", PAGES["docs/operations.md"].split("## Bad days", 1)[1].split("\n## ", 1)[0])
SOURCES = "\n".join(file.read_text() for file in (ROOT / "kagent").rglob("*.py"))


@pytest.mark.parametrize(
    "words", [words for words in SAID if " " in words and not words.startswith("kagent ")]
)
def test_the_messages_explained_are_messages(words: str) -> None:
    assert words in SOURCES


def test_every_page_is_linked_from_the_readme() -> None:
    pages = {file.name for file in (ROOT / "docs").glob("*.md")}

    assert pages <= set(re.findall(r"docs/([a-z-]+\.md)", PAGES["README.md"]))


def test_the_architecture_names_files_that_are_there() -> None:
    page = LINKED["docs/architecture.md"]
    named = set(re.findall(r"`((?:kagent|tables|tests)/[^`* ]*)`", page))

    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    assert {f"kagent/{file.parent.name}/" for file in (ROOT / "kagent").glob("*/__init__.py")} <= named


def test_the_commands_named_in_the_pages_exist() -> None:
    named = {name for page in LINKED.values() for name in re.findall(r"`kagent ([a-z]+)", page)}

    assert named <= set(COMMANDS)
