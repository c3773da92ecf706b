"""A Spark session for this cluster: jars from the cache, this Python on the executors, quiet logs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kagent.kafka.jars import delta_jars, spark_jars
from kagent.kafka.java import java
from kagent.settings import PipelineSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(settings: PipelineSettings, master: str | None = None, delta: bool = False) -> SparkSession:
    """Start Spark. Raises SetupError if Java or the jars are missing."""
    from pyspark.sql import SparkSession

    java()
    jars = spark_jars(settings.connector) + (delta_jars() if delta else [])
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else the executors take whatever python3 is on PATH
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    where = master or settings.master
    builder = SparkSession.Builder().appName("kagent").master(where)
    config = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        # The newer offset lookup hides internal topics: the stream would read nothing, silently.
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
        "spark.sql.streaming.noDataProgressEventInterval": "1000",  # progress is told when idle, too
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "spark.sql.streaming.metricsEnabled": "true",
        **(
            {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
            if where.startswith("local")
            else {}
        ),
        **(DELTA if delta else {}),
        **settings.options,
    }
    for name, value in config.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


LOGGING = Path(__file__).with_name("log4j2.properties")
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
