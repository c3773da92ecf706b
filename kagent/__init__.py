"""kagent watches the consumer groups of a Kafka cluster and recommends what to do about badly spread lag."""

from typing import Any

__all__ = ["__version__", "recommendations"]


def __getattr__(name: str) -> Any:
    """``kagent.recommendations`` is loaded when it is asked for, as the pure modules need no Kafka client. So is the version: to read
    the package's metadata takes as long as all of ``kagent --help``."""
    if name == "recommendations":
        from kagent.client.client import recommendations

        return recommendations
    if name == "__version__":
        from importlib.metadata import version

        return version("kagent")
    raise AttributeError(f"module 'kagent' has no attribute {name!r}")
