"""The jar in the package is what the sources say."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from kagent.assignor import CLASS, CONSUMER_CLASS, JAR, UNIFORM_CLASS, broker_lines
from kagent.cli import root
from kagent.embedded.jars import broker_jars

JAVA = Path(__file__).parents[2] / "java"
SOURCES = JAVA / "src" / "main" / "java"


def entries(ending: str) -> dict[str, bytes]:
    with zipfile.ZipFile(JAR) as jar:
        return {name: jar.read(name) for name in jar.namelist() if name.endswith(ending)}


def test_the_jar_has_the_sources_as_they_are() -> None:
    here = {str(path.relative_to(SOURCES)): path.read_bytes() for path in SOURCES.rglob("*.java")}
    assert entries(".java") == here, "run make java"


def test_the_jar_has_a_class_of_each_source_and_none_of_anybody_else() -> None:
    classes = {re.sub(r"(\$.*)?\.class$", "", name) for name in entries(".class")}
    assert classes == {name.removesuffix(".java") for name in entries(".java")}
    assert {name.replace(".", "/") for name in (CLASS, CONSUMER_CLASS, UNIFORM_CLASS)} <= classes


@pytest.mark.slow
def test_the_sources_compile_to_the_classes_in_the_jar(tmp_path: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("there is no JDK here")
    path = ":".join(str(jar) for jar in broker_jars())
    files = [str(path) for path in SOURCES.rglob("*.java")]
    subprocess.run([javac, "-g", "--release", "17", "-cp", path, "-d", str(tmp_path), *files], check=True)
    made = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*.class")}
    shipped = entries(".class")
    assert made.keys() == shipped.keys()
    manifest = entries("MANIFEST.MF")["META-INF/MANIFEST.MF"].decode()
    release = subprocess.run([javac, "-version"], check=True, capture_output=True, text=True).stdout
    if (
        f"Build-Jdk-Spec: {release.split()[1].split('.')[0]}" in manifest
    ):  # another compiler writes other bytes
        assert [name for name, data in made.items() if data != shipped[name]] == []


def test_the_command_prints_the_jar_and_the_lines_of_a_broker() -> None:
    runner = CliRunner()
    assert runner.invoke(root, ["assignor", "--jar"]).output.strip() == str(JAR)
    printed = runner.invoke(root, ["--bootstrap", "kafka:9092", "assignor", "--apply", "follow"]).output
    for name, value in broker_lines("kafka:9092", apply="follow").items():
        assert f"{name}={value}" in printed
    printed = runner.invoke(root, ["--bootstrap", "kafka:9092", "assignor", "--as-uniform"]).output
    assert f"group.consumer.assignors={UNIFORM_CLASS}," in printed
    assert "UniformAssignor," not in printed.replace(UNIFORM_CLASS, "")
