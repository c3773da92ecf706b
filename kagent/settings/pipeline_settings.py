"""The section ``pipeline``: the Spark stream."""

from __future__ import annotations

import re
from typing import Any

from pydantic import (
    Field,
    field_validator,
)

from kagent.duration_fields import Seconds
from kagent.settings.strict import HostName, Strict, Text

MASTER = r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\]|-cluster\[[^\]]+\])?|spark://[^\s/:]+:\d+(,[^\s/:]+:\d+)*|k8s://\S+|yarn"
"""As Spark 4 takes it: https://spark.apache.org/docs/4.0.0/submitting-applications.html#master-urls"""
LEAST_DRIVER_MB = 450
"""Spark refuses to start with less (UnifiedMemoryManager: one and a half of its 300 MB)."""


class PipelineSettings(Strict):
    """The Spark stream."""

    trigger: Seconds = Field(1.0, gt=0, description="Time between triggers.")
    checkpoint: str = Field(
        "",
        description="Folder or URL of the stream's checkpoint; by default `checkpoint` under `data`.",
    )
    master: str = Field("local[*]", description="Spark's master, such as local[2] or spark://host:7077.")
    driver_memory: str = Field("1g", description="Memory of Spark's driver, such as 512m or 2g.")
    # Bounds a batch, so that progress comes while the pipeline catches up: without it, a backlog is one long silence.
    max_offsets_per_trigger: int = Field(
        2_000_000, ge=1, description="The maximum number of records read in one trigger."
    )
    # One until no worker of a release is left that reads single events only: such a one would stay blind.
    events_per_message: int = Field(
        1,
        ge=1,
        le=1000,
        description="The maximum number of events, one a group, in one message to the workers. With 50 the workers need a quarter of the CPU to apply them. Raise it only once all workers read such messages.",
    )
    connector: str = Field(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        description="Maven coordinates of Spark's Kafka connector.",
    )
    history: str | None = Field(
        None,
        examples=["/var/lib/kagent/history", "s3a://bucket/history"],
        description="Folder or URL of the history (Delta tables). Without it no history is kept.",
    )
    history_interval: Seconds = Field(
        10.0, ge=1, description="Time between two writes of the history, which is its resolution."
    )
    metrics_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        examples=[9100],
        description="The port of the pipeline's Prometheus metrics. Without it they are not served.",
    )
    metrics_host: HostName = Field("0.0.0.0", description="Address for the pipeline's metrics.")
    options: dict[str, Text] = Field(default_factory=dict, description="Further Spark settings, as they are.")

    @field_validator("master")
    @classmethod
    def _master(cls, master: str) -> str:
        # Checked here: Spark names a wrong master only after a JVM has started.
        if not re.fullmatch(MASTER, master):
            raise ValueError(
                f"must be local[n], spark://host:port, k8s://… or yarn, not {master!r}{_master_meant(master)}"
            )
        return master

    @field_validator("connector")
    @classmethod
    def _coordinates(cls, connector: str) -> str:
        if not re.fullmatch(r"[^\s:,]+(:[^\s:,]+){2,}", connector):
            raise ValueError(f"must be Maven coordinates, group:artifact:version, not {connector!r}")
        scala = re.search(r"_(2\.\d+)(:|$)", connector)
        if scala and scala[1] != "2.13":  # the only one that Spark 4 is built for
            raise ValueError(
                f"is built for Scala {scala[1]}, and Spark 4 needs one that ends in _2.13, not {connector!r}"
            )
        return connector

    @field_validator("options")
    @classmethod
    def _names(cls, options: dict[str, str]) -> dict[str, str]:
        for name in options:
            if not name.startswith("spark."):  # spark-submit ignores others with a warning
                raise ValueError(f"Spark's settings begin with spark.: did you mean spark.{name}?")
        return options

    @field_validator("driver_memory", mode="before")
    @classmethod
    def _memory(cls, memory: Any) -> Any:
        # Before the type: 512 is a number to YAML, and what it lacks is the unit.
        if isinstance(memory, int | float) and not isinstance(memory, bool):
            memory = str(memory)
        # As -Xmx takes it: the JVM does not start with 2GB.
        if isinstance(memory, str) and not re.fullmatch(r"\d+[kmgt]", memory, re.IGNORECASE):
            hint = _memory_meant(memory)
            raise ValueError(f"must be a number with a unit, such as 512m or 2g, not {memory!r}{hint}")
        if isinstance(memory, str) and _megabytes(memory) < LEAST_DRIVER_MB:
            raise ValueError(f"must be at least {LEAST_DRIVER_MB}m, or Spark does not start, not {memory!r}")
        return memory


def _master_meant(master: str) -> str:
    """``local[2``, ``local(2)`` and ``yarn-client``, which Spark took once."""
    threads = re.match(r"local\W*(\d+|\*)", master)
    # Spark needs a thread: `local[0]` likely stands for no limit.
    if re.fullmatch(r"spark://[^\s/:]+", master):
        return f"; did you mean {master}:7077?"
    number = (threads[1].lstrip("0") or "*") if threads else None
    near = f"local[{number}]" if number else "yarn" if master.startswith("yarn") else None
    return f"; did you mean {near}?" if near else ""


def _memory_meant(memory: str) -> str:
    words = re.fullmatch(r"(\d+)(?:[.,](\d+))?\s*([kmgt])[a-z]*", memory, re.IGNORECASE)
    if words is None:
        return ""
    unit, less = words[3].lower(), {"m": "k", "g": "m", "t": "g"}
    if not words[2] or unit == "k":
        return f"; did you mean {words[1]}{unit}?"
    # The JVM takes whole numbers only.
    return f"; did you mean {float(f'{words[1]}.{words[2]}') * 1024:.0f}{less[unit]}?"


def _megabytes(memory: str) -> float:
    found = re.match(r"(\d+)([kmgt])", memory.lower())
    return int(found[1]) * 1024 ** ("kmgt".index(found[2]) - 1) if found else 0
