"""kagent watches the consumer groups of a Kafka cluster and recommends what to do about badly spread lag."""

from importlib.metadata import version

__version__ = version("kagent")
