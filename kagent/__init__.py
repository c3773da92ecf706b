"""kagent watches the consumer groups of a Kafka cluster and recommends what to do about badly spread lag."""

from importlib.metadata import version
from typing import Any

__version__ = version("kagent")

__all__ = ["__version__", "recommendations"]


def __getattr__(name: str) -> Any:
    """``kagent.recommendations`` is loaded when it is asked for: the pure rooms need no Kafka client."""
    if name == "recommendations":
        from kagent.client.client import recommendations

        return recommendations
    raise AttributeError(f"module 'kagent' has no attribute {name!r}")
