"""Maven is not needed to run the Java tests: javac and JUnit's console launcher do, against the jar that is shipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kagent.assignor import JAR
from kagent.embedded.jars import broker_jars, resolve
from kagent.embedded.java import java

FOLDER = Path(__file__).parents[2] / "java"
TESTS = FOLDER / "src" / "test"
LAUNCHER = "org.junit.platform.console.ConsoleLauncher"


def console() -> list[Path]:
    """JUnit's launcher of the version that the pom names; the platform's versions are the engine's with another major."""
    version = re.search(r"<junit\.version>5\.([\d.]+)</", (FOLDER / "pom.xml").read_text())
    assert version
    return resolve(f"org.junit.platform:junit-platform-console-standalone:1.{version[1]}")


@pytest.mark.slow
def test_the_java_tests_pass_against_the_jar_in_the_package(tmp_path: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("there is no JDK here")
    path = os.pathsep.join(map(str, (JAR, *broker_jars(), *console())))
    files = map(str, TESTS.rglob("*.java"))
    subprocess.run([javac, "--release", "17", "-cp", path, "-d", str(tmp_path), *files], check=True)
    classes = os.pathsep.join((str(tmp_path), str(TESTS / "resources"), path))
    scan = ("execute", f"--scan-class-path={tmp_path}", "--fail-if-no-tests", "--details=tree")
    ran = subprocess.run(
        [java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, LAUNCHER, *scan, "--disable-banner", "--disable-ansi-colors"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"(\d+) tests successful", ran.stdout)
    assert passed
    assert int(passed[1]) >= sum(len(re.findall(r"@Test\b", f.read_text())) for f in TESTS.rglob("*.java"))
