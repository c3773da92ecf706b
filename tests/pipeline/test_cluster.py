"""The same stream on a Spark standalone cluster of two workers, the package shipped to its executors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyspark
import pytest

from kagent.contract.admission import decode_all
from kagent.contract.events import GroupEvent
from kagent.embedded.broker import die_with_parent, free_port
from kagent.pipeline.build import Target
from kagent.pipeline.spark_session import package
from kagent.pipeline.stream import per_task

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow(minutes=2)]

# Run in a process of its own: a JVM holds one Spark master at most.
DRIVER = """
import json, sys, threading
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
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    pipeline = Pipeline(settings, "main", settings.clusters["main"], checkpoint=sys.argv[3])
    threading.Thread(target=lambda: (sys.stdin.read(), pipeline.stop.set()), daemon=True).start()
    pipeline.run_on(spark, pipeline.prepared())
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
    end = time.monotonic() + 180
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the master does not listen")


def test_two_executors_tell_what_one_tells_and_losing_one_loses_nothing(
    standalone: str, kafka: Any, kafka_reader: Any, tmp_path: Path
) -> None:
    topic = kafka.topic("on-cluster")
    prefix = f"kagent-of-{topic}-"  # a second attempt must not read what the first wrote
    groups = [
        f"on-cluster-{n}" for n in range(8)
    ]  # in all partitions of the source: both executors have work
    for group in groups:
        kafka.commit(group, topic, {0: 1, 1: 2})
    with driver(standalone, kafka.broker.bootstrap, tmp_path, prefix) as running:
        exists(kafka, f"{prefix}group-events")
        events = kafka_reader(kafka.broker.bootstrap, f"{prefix}group-events", 8)
        events.until(lambda found: set(groups) <= set(found), within=300)
        lost = executors()
        assert len(lost) == 2
        lost[0].kill()
        for group in groups:
            kafka.commit(group, topic, {0: 5, 1: 6})
        events.until(lambda found: all(found[group] == 6 for group in groups), within=300)
        found = ended(running)

    assert found["executors"] == 2
    assert found["own"] not in found["files"]
    assert all("kagent.zip" in file for file in found["files"])
    told = newest((m.value() for m in kafka.read(f"{prefix}group-events")), groups)
    assert {key[0] for key in told} == set(groups)
    assert told == newest(by_one_task(kafka.read("__consumer_offsets")), groups)


@contextmanager
def driver(master: str, bootstrap: str, folder: Path, prefix: str) -> Iterator[subprocess.Popen[str]]:
    """The pipeline on this master; it ends when its input does."""
    options = {
        "spark.executor.memory": "600m",
        "spark.driver.host": "127.0.0.1",
        # A standalone master tells the driver how many cores to wait for only with this limit.
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    env = {
        **os.environ,
        "KAGENT_TOPICS__PREFIX": prefix,
        "KAGENT_PIPELINE__OPTIONS": json.dumps(options),
    }
    argv = [sys.executable, "-c", DRIVER, master, bootstrap, str(folder / "checkpoint")]
    with (folder / "driver.log").open("w") as log:
        running = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env
        )
    try:
        yield running
    finally:
        running.kill()
        running.wait(30)


def ended(running: subprocess.Popen[str]) -> dict[str, Any]:
    """What the driver found, once it has stopped in its own way."""
    out, _ = running.communicate(timeout=120)
    assert running.returncode == 0
    line = next(line for line in out.splitlines() if line.startswith("FOUND "))
    found: dict[str, Any] = json.loads(line.split(" ", 1)[1])
    return found


def exists(kafka: Any, topic: str) -> None:
    """Wait until the pipeline has made its topic."""
    end = time.monotonic() + 300
    while topic not in kafka.asked.topic_names():
        assert time.monotonic() < end, f"there is no {topic}"
        time.sleep(0.5)


def executors() -> list[psutil.Process]:
    """The executors' JVMs, all below this process."""
    children = psutil.Process().children(recursive=True)
    living = [p for p in children if p.status() != psutil.STATUS_ZOMBIE]
    return [p for p in living if "CoarseGrainedExecutorBackend" in " ".join(p.cmdline())]


def by_one_task(records: list[Any]) -> Iterator[bytes]:
    """The events that one task makes of all these records of the source."""
    rows = pa.RecordBatch.from_pydict({
        "key": pa.array([r.key() for r in records], pa.binary()),
        "value": pa.array([r.value() for r in records], pa.binary()),
        "partition": pa.array([r.partition() for r in records], pa.int32()),
        "offset": pa.array([r.offset() for r in records], pa.int64()),
        "time": pa.array([r.timestamp()[1] for r in records], pa.int64()),
    })  # fmt: skip
    made = per_task(Target("main", "events", "dead-letters", "one-task"))(iter([rows]))
    # Other tests write records here that become dead letters.
    return (row["value"] for batch in made for row in batch.to_pylist() if row["topic"] == "events")


def newest(values: Iterable[bytes], groups: list[str]) -> dict[tuple[str, str, int], tuple[int, int, int]]:
    """(group, topic, partition) → (source offset, committed offset, commit time) of these groups' newest commits."""
    found: dict[tuple[str, str, int], tuple[int, int, int]] = {}
    for event in (event for value in values for event in decode_all(value)):
        if not isinstance(event, GroupEvent) or event.group not in groups:
            continue  # also the tests' own readers commit
        for o in event.offsets:
            for p, source, offset, time_ms in zip(
                o.partition, o.source_offset, o.committed, o.time, strict=True
            ):
                key, commit = (event.group, o.topic, int(p)), (int(source), int(offset), int(time_ms))
                found[key] = max(found.get(key, commit), commit)
    return found


def test_the_shipped_package_is_whole(tmp_path: Path) -> None:
    names = zipfile.ZipFile(package(tmp_path)).namelist()

    assert {
        "kagent/__init__.py",
        "kagent/pipeline/build.py",
        "kagent/offsets/columns.py",
        "kagent/tables/lag.py",
    } <= set(names)
