"""A Spark session for this cluster: jars from the cache, this Python on the executors, quiet logs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import kagent
from kagent.embedded.jars import delta_jars, spark_jars
from kagent.embedded.java import java
from kagent.errors import SetupError
from kagent.pipeline.no_pandas import hidden
from kagent.pipeline.restarts import STOP_WITHIN_S
from kagent.pipeline.temporary_folder import own_folder, temporary_files_in
from kagent.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(settings: PipelineSettings, master: str | None = None, delta: bool = False) -> SparkSession:
    """Start Spark. Raises SetupError if Java or the jars are missing."""
    from pyspark.sql import SparkSession

    # Before pyspark: it reports a missing or too old Java only as JAVA_GATEWAY_EXITED.
    java()
    jars = spark_jars(settings.connector) + (delta_jars() if delta else [])
    where = master or settings.master
    local = where.startswith("local")
    # Else the executors take whatever python3 is on their PATH. On a cluster spark.pyspark.python may name another.
    os.environ["PYSPARK_PYTHON"] = settings.options.get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.Builder().appName("kagent").master(where)
    config = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark's default is the zone of the machine: times in the tables would hang on where the pipeline runs.
        "spark.sql.session.timeZone": "UTC",
        # 200 by default, for large clusters; a shuffle here moves little, and each partition is a task.
        "spark.sql.shuffle.partitions": "2",
        **BATCHES,
        **KEPT,
        # The newer offset lookup hides internal topics: the stream would read nothing, silently.
        # https://spark.apache.org/docs/latest/structured-streaming-kafka-integration.html#offset-fetching
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
        "spark.sql.streaming.noDataProgressEventInterval": "1000",  # Spark reports progress when idle, too
        JAVA_OPTIONS: java_options(where),
        "spark.sql.streaming.metricsEnabled": "true",
        "spark.sql.streaming.stopTimeout": f"{STOP_WITHIN_S:.0f}s",
        **(LOCAL if local else {}),
        **(DELTA if delta else {}),
        **settings.options,
    }
    temporary = own_folder()
    # Nothing is kept in it, and Spark would make it in the working directory.
    config.setdefault("spark.sql.warehouse.dir", (temporary / "warehouse").as_uri())
    config[JAVA_OPTIONS] = with_temporary_folder(config[JAVA_OPTIONS], temporary)
    for name, value in config.items():
        builder = builder.config(name, value)
    # PySpark imports its own test tools here, and these pandas (NumpyScalarConverter in pyspark/sql/types.py).
    with without_own_variables(), own_sigint(), hidden(), temporary_files_in(temporary), _java_there():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if not local:
        spark.sparkContext.addPyFile(str(package(temporary)))
    return spark


@contextmanager
def _java_there() -> Iterator[None]:
    """PySpark's error where Java ended before Spark was there, as a sentence. A service manager that stops a service ends all its
    processes, Java too."""
    from py4j.protocol import Py4JNetworkError
    from pyspark.errors import PySparkRuntimeError

    try:
        yield
    except (PySparkRuntimeError, Py4JNetworkError, ConnectionError) as error:
        if isinstance(error, PySparkRuntimeError) and "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise SetupError(
            "Java ended while Spark started: what it printed above says why, or something stopped it."
        ) from error


def java_options(master: str) -> str:
    """What the JVM of a driver with this master is started with."""
    logging = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    return f"{logging} {ONE_CORE}" if master in ("local", "local[1]") else logging


def with_temporary_folder(options: str, folder: Path) -> str:
    """These options of Java's, and this folder for its temporary files and Spark's, unless the options name another."""
    return options if "-Djava.io.tmpdir=" in options else f'{options} "-Djava.io.tmpdir={folder}"'


@contextmanager
def own_sigint() -> Iterator[None]:
    """Keep the process's own handler of Ctrl-C. PySpark's asks the JVM to cancel its jobs over the connection on which the main
    thread waits for an answer, which breaks the connection and ends in stack traces (SparkContext.__init__)."""
    own = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, own)


@contextmanager
def without_own_variables() -> Iterator[None]:
    """Within the block no variable of kagent's is set: a login in one would be seen in the environment of Java and its workers.

    The driver hands Java what it needs of the settings.
    """
    own = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("KAGENT_")}
    try:
        yield
    finally:
        os.environ.update(own)


def package(folder: Path) -> Path:
    """The kagent package as an archive in this folder, for executors that do not have it. They need its dependencies."""
    source = Path(kagent.__file__).parent
    archive = folder / "kagent.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for path, _, names in os.walk(source, followlinks=True):  # kagent/tables may be a link
            for name in sorted(names):
                if not name.endswith(".pyc"):
                    out.write(Path(path) / name, "kagent" / Path(path).relative_to(source) / name)
    return archive


JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOGGING = Path(__file__).with_name("log4j2.properties")
BATCHES = {
    # With a limit in bytes Spark adds up the columns' sizes anew for every row: a fifth of Java's time for a stream. This
    # value switches it off; so few rows then bound a batch, to 2 GB of records as large as a broker takes by default (1 MB).
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}
# Java chooses collector, compiler threads and pools for the number of cores it is given: for one core the serial collector. That collector
# is not named here, as Java refuses to start if a user's options name another. A heap would begin with a 64th of the machine's memory and
# keep what a catch-up once needed: this one begins small, grows up to pipeline.driver_memory, and is given back. What Java's compiler has
# freed the C library keeps, some 30 MB, until it is trimmed; Java before 17.0.9 knows no such option and passes over it.
ONE_CORE = (
    "-XX:ActiveProcessorCount=1 -Xms64m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40 "
    "-XX:+IgnoreUnrecognizedVMOptions -XX:TrimNativeHeapInterval=60000"
)
KEPT = {
    # What Spark's pages show of jobs that have ended: these pages are off, and a trigger a second soon fills the usual thousands.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
}
LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # of a log that one machine reads in no time; the default is 50
    # VACUUM lists a table's folder in as many tasks as this says; the default, 10,000, takes minutes on a laptop.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}
