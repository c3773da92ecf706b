"""How long Java's assignors take, beside Kafka's uniform in the same run: ``make java``, then ``python benchmarks/assignor.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kagent.assignor import JAR
from kagent.embedded.jars import broker_jars
from kagent.embedded.java import java

TESTS = Path(__file__).parents[1] / "java" / "target" / "test-classes"


def main() -> None:
    """Prints name, median, 99th percentile and greatest time, in ms of CPU time of the one thread."""
    if not TESTS.is_dir():
        sys.exit("Run make java first: the benchmark is among the Java tests.")
    path = ":".join(map(str, (JAR, TESTS, *broker_jars())))
    subprocess.run(
        [
            java(),
            "-Xmx1g",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            path,
            "io.kagent.assignor.Speed",
        ],
        check=True,
    )


if __name__ == "__main__":
    main()
