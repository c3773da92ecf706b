"""The same stream on a Spark standalone cluster of two workers, the package shipped to its executors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from kagent.embedded.broker import die_with_parent, free_port
from kagent.pipeline.spark_session import package

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# Run in a process of its own: a JVM holds one Spark master at most.
DRIVER = """
import json, sys
from kagent.pipeline.stream_service import Pipeline
from kagent.pipeline.spark_session import session
from kagent.settings import load
import kagent

def where(batches):
    import os, pyarrow as pa, kagent
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [kagent.__file__] * batch.num_rows, "host": [os.environ["SPARK_EXECUTOR_DIRS"]] * batch.num_rows})

settings = load(bootstrap=sys.argv[2])
spark = session(settings.pipeline, sys.argv[1])
try:
    made = spark.range(0, 40, numPartitions=8).mapInArrow(where, "file string, host string").distinct().collect()
    pipeline = Pipeline(settings, "main", settings.clusters["main"], available_now=True, checkpoint=sys.argv[3])
    pipeline.run_on(spark, pipeline.prepared())
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    print("FOUND " + json.dumps({"files": sorted({r[0] for r in made}), "executors": executors, "own": kagent.__file__}))
finally:
    spark.stop()
"""


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers."""
    home = Path(pyspark.__file__).parent
    port = free_port()
    env = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *argv: str) -> None:
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{argv[0]}", *argv[1:]]
            started.append(
                subprocess.Popen(command, stdout=log, stderr=log, env=env, preexec_fn=die_with_parent)
            )

    start(
        "master",
        "master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        str(free_port()),
    )
    _listening(port)
    for n in (1, 2):
        folder = str(tmp_path / f"worker-{n}")
        options = ["--cores", "1", "--memory", "900m", "--work-dir", folder, "--webui-port", str(free_port())]
        start(f"worker-{n}", "worker.Worker", *options, f"spark://127.0.0.1:{port}")
    yield f"spark://127.0.0.1:{port}"
    for process in reversed(started):
        process.terminate()
    for process in started:
        process.wait(30)


def _listening(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the master does not listen")


def test_the_stream_runs_on_two_workers_with_the_package_shipped(
    standalone: str, kafka: Any, tmp_path: Path
) -> None:
    topic = kafka.topic("on-cluster")
    kafka.commit("on-cluster", topic, {0: 1, 1: 2})
    env = {
        **os.environ,
        "KAGENT_TOPICS__PREFIX": "oncluster-",
        "KAGENT_PIPELINE__OPTIONS": json.dumps(
            {
                "spark.executor.memory": "600m",
                "spark.driver.host": "127.0.0.1",
                "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            }
        ),
    }
    argv = [sys.executable, "-c", DRIVER, standalone, kafka.broker.bootstrap, str(tmp_path / "checkpoint")]
    ran = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=400, check=False)

    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(
        next(line for line in ran.stdout.splitlines() if line.startswith("FOUND ")).split(" ", 1)[1]
    )
    assert found["executors"] == 2
    assert found["own"] not in found["files"]
    assert all("kagent.zip" in file for file in found["files"])
    events = [m.value() for m in kafka.read("oncluster-group-events")]
    assert any(json.loads(e).get("group") == "on-cluster" for e in events)


def test_the_shipped_package_is_whole(tmp_path: Path) -> None:
    names = zipfile.ZipFile(package(tmp_path)).namelist()

    assert {
        "kagent/__init__.py",
        "kagent/pipeline/build.py",
        "kagent/offsets/columns.py",
        "kagent/tables/lag.py",
    } <= set(names)
