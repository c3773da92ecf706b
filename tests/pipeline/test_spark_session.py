"""How Java is started: small for one core, and whatever the user's own options ask for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kagent.embedded.java import java
from kagent.pipeline.spark_session import ONE_CORE, java_options

SESSION = """
import json, sys
from kagent.pipeline.spark_session import session
from kagent.settings import load

pipeline = load(bootstrap="127.0.0.1:1").pipeline.model_copy(update={"options": json.loads(sys.argv[1])})
spark = session(pipeline, "local[1]")
collectors = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
spark.sql("SHOW TABLES").collect()  # opens the catalog
print(json.dumps([collector.getName() for collector in collectors]))
spark.stop()
"""
DEFAULT, EXTRA = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("master", "small"),
    [
        ("local", True),
        ("local[1]", True),
        ("local[2]", False),
        ("local[*]", False),
        ("spark://a:7077", False),
    ],
)
def test_a_driver_of_one_core_is_told_so(master: str, small: bool) -> None:
    options = java_options(master)

    assert (ONE_CORE in options) is small
    assert "log4j2" in options


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["G1", "Parallel", "Serial", "Z"])
def test_java_starts_with_any_collector_before_or_after_its_options(collector: str) -> None:
    named, own = f"-XX:+Use{collector}GC", ONE_CORE.split()

    for options in ([named, *own], [*own, named]):
        done = subprocess.run([java(), *options, "-version"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "collector"),
    [
        ({}, "MarkSweepCompact"),
        ({DEFAULT: "-XX:+UseParallelGC"}, "PS MarkSweep"),
        ({EXTRA: "-XX:+UseG1GC"}, "G1 Old Generation"),
    ],
)
def test_the_collector_of_the_users_options_is_taken_and_no_folder_is_made_where_it_runs(
    options: dict[str, str], collector: str, tmp_path: Path
) -> None:
    argv = [sys.executable, "-c", SESSION, json.dumps(options)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=400, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert collector in json.loads(done.stdout.splitlines()[-1])
    assert list(tmp_path.iterdir()) == []


ENDS = """
from kagent.errors import SetupError
from kagent.pipeline.spark_session import session
from kagent.settings import load

# Less than any Java begins with.
pipeline = load(bootstrap="127.0.0.1:1").pipeline.model_copy(update={"driver_memory": "1k"})
try:
    session(pipeline, "local[1]")
except SetupError as error:
    print(error)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_java_that_ends_before_spark_is_there_is_a_sentence() -> None:
    said = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=300, check=True
    )

    assert said.stdout.splitlines()[-1].startswith("Java ended while Spark started")
