"""The Java assignors (``java/``), built: one jar for brokers and for Java consumers. ``make java`` makes it anew."""

from __future__ import annotations

from pathlib import Path

JAR = Path(__file__).with_name("kagent-assignor.jar")
"""The jar, in the wheel too."""
CLASS = "io.kagent.assignor.KagentAssignor"
"""Broker side, for ``group.consumer.assignors``."""
UNIFORM_CLASS = "io.kagent.assignor.KagentUniformAssignor"
"""Broker side too, under the name of Kafka's `uniform` and in its place."""
CONSUMER_CLASS = "io.kagent.assignor.KagentConsumerAssignor"
"""Client side, for ``partition.assignment.strategy`` of the classic protocol."""
NAME = "kagent"
"""By which groups of either protocol name it."""
UNIFORM = "uniform"
SERVER_SIDE = "org.apache.kafka.coordinator.group.assignor"


def follows_plans(protocol: str | None, uniform_follows: bool) -> bool:
    """Whether the brokers' assignor that a KIP-848 group names reads kagent's plans. ``uniform_follows``: the group's policy."""
    return protocol == NAME or (uniform_follows and protocol == UNIFORM)


def broker_lines(
    bootstrap: str,
    cluster: str = "main",
    prefix: str = "kagent-",
    apply: str = "dry",
    as_uniform: bool = False,
) -> dict[str, str]:
    """The settings of every broker, name → value; ``apply``: dry, follow or off.

    The first assignor of the list is the default of all groups that name none, so Kafka's own stays first, unless
    ``as_uniform`` puts kagent's in its place.
    """
    uniform = UNIFORM_CLASS if as_uniform else f"{SERVER_SIDE}.UniformAssignor"
    own = [uniform, f"{SERVER_SIDE}.RangeAssignor"]
    lines = {
        "group.consumer.assignors": ",".join([*own, CLASS]),
        "kagent.bootstrap.servers": bootstrap,
        "kagent.apply": apply,
    }
    changed = {"kagent.cluster": (cluster, "main"), "kagent.topic.prefix": (prefix, "kagent-")}
    return lines | {name: value for name, (value, usual) in changed.items() if value != usual}
