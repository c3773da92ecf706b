"""Java: where it is, and whether it is one that Spark 4 and Kafka 4 run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from kagent.errors import SetupError

# Spark 4.0 runs on 17 and 21 (https://spark.apache.org/docs/4.0.0/), and Kafka 4 brokers need 17.
WANTED = (17, 21)
ADVICE = "install OpenJDK 17 or 21 and put it on PATH, or set JAVA_HOME"


def java() -> str:
    """The path of a Java that fits. Raises SetupError if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None or not Path(found).exists():
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "Java was not found"
        raise SetupError(f"{where}: {ADVICE}.")
    major = version(found)
    if major < min(WANTED):
        raise SetupError(f"{found} is Java {major}, which is too old: {ADVICE}.")
    return found


def version(path: str) -> int:
    """The major version of the Java at this path. Raises SetupError if it does not run."""
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{path} does not run ({error}): {ADVICE}.") from error
    # `java -version` prints to stderr; up to Java 8 the version began with "1.".
    match = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if match is None:
        raise SetupError(f"{path} does not tell its version: {ADVICE}.")
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major
