"""One YAML file and ``KAGENT_…`` variables, the variable winning.

A variable's name is the path in upper case, its steps joined by two underscores:
``KAGENT_PIPELINE__TRIGGER=2`` is ``pipeline: {trigger: 2}`` and ``KAGENT_CLUSTERS__MAIN__BOOTSTRAP=…`` is
``clusters: {main: {bootstrap: …}}``. Secrets come from a variable or a file (``password_file``), never a flag.
Durations are seconds, or have a unit: ``90s``, ``5m``, ``2h``, ``1d``.
"""

from kagent.settings.all_settings import GroupSettings, Settings
from kagent.settings.cluster import Cluster, Security
from kagent.settings.loading import Loaded, load, loaded_from
from kagent.settings.pipeline_settings import PipelineSettings
from kagent.settings.topic_names import Topics
from kagent.settings.worker_settings import HttpSettings, WorkerSettings

__all__ = [
    "Cluster",
    "GroupSettings",
    "HttpSettings",
    "Loaded",
    "PipelineSettings",
    "Security",
    "Settings",
    "Topics",
    "WorkerSettings",
    "load",
    "loaded_from",
]
