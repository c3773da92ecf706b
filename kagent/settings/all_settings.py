"""All settings as one model: its sections, and what follows from them together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import platformdirs
from pydantic import (
    BaseModel,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from kagent import own_groups
from kagent.errors import SettingsError
from kagent.group_pattern import GroupPattern
from kagent.policy import Policies, PolicySettings
from kagent.settings.alert_destinations import AlertSettings, secret
from kagent.settings.cluster import Cluster, ClusterName
from kagent.settings.given_settings import DELIMITER, PREFIX, as_in_file, way
from kagent.settings.pipeline_settings import PipelineSettings
from kagent.settings.strict import in_home
from kagent.settings.topic_names import Topics
from kagent.settings.worker_settings import WorkerSettings
from kagent.text import did_you_mean, few

DEFAULT_CLUSTER = "main"
"""The name of a cluster of which only the address was given."""
OLD_FOLDERS = {"checkpoint": "kagent-checkpoint", "worker": "kagent-data"}
"""Where an older kagent kept these, in the working directory: they are still used if they are there."""
LEFT_OUT: ContextVar[frozenset[str]] = ContextVar("left_out", default=frozenset())
"""Variables that are wrong, in lower case, while what is left is checked: pydantic reads them from the environment by itself."""


class GroupSettings(PolicySettings):
    """What holds for the groups whose name matches; the fields are those of ``kagent.policy.Policy``."""

    match: GroupPattern = Field(
        description="A glob, or a regular expression between slashes that matches the whole name: /orders-[0-9]+/."
    )

    @field_validator("lower_threshold", check_fields=False)
    @classmethod
    def _below(cls, lower: float, info: ValidationInfo) -> float:
        """Compared by `contradictions`: here the default would stand for the threshold that `policy` sets."""
        return lower


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter=DELIMITER,
        extra="ignore",
        frozen=True,
    )

    clusters: dict[ClusterName, Cluster] = Field(
        default_factory=dict, description="The clusters to watch, by name."
    )
    home: str | None = Field(
        None, description="Which cluster holds kagent's own topics; by default the watched one."
    )
    topics: Topics = Topics()
    pipeline: PipelineSettings = PipelineSettings()
    worker: WorkerSettings = WorkerSettings()
    data: str = Field(
        "", description="Folder for all that kagent keeps; by default the user's data folder of the system."
    )
    policy: PolicySettings = Field(PolicySettings(), description="Judgement for all groups.")
    groups: list[GroupSettings] = Field(
        default_factory=list,
        description="Judgement by pattern: of the entries that match a group's name the first holds.",
    )
    ignore: list[GroupPattern] = Field(
        default_factory=list,
        description="Groups that are not judged, besides those that kagent itself leaves out. An entry of `groups` with `ignore: false` wins over it.",
    )
    redact: list[Literal["host", "client_id"]] = Field(
        default_factory=list,
        description="What of a member is replaced by a hash in everything the worker publishes, serves or logs.",
    )
    redact_salt: SecretStr | None = Field(
        None, description="Makes those hashes impossible to check by guessing names."
    )
    redact_salt_file: Path | None = Field(None, description="A file that holds it.")
    alert: AlertSettings = Field(AlertSettings(), description="Destinations of `kagent alert`.")
    _file: str | None = PrivateAttr(None)
    """The file that they were read from."""
    _is_addressed: bool = PrivateAttr(False)
    _name_is_guess: bool = PrivateAttr(False)

    @property
    def is_addressed(self) -> bool:
        """Whether the address of the cluster came from ``-b`` or ``KAGENT_BOOTSTRAP``."""
        return self._is_addressed

    @property
    def name_is_guess(self) -> bool:
        """Whether only an address was given, so that nothing says how the cluster is called."""
        return self._name_is_guess

    def command_options(self, cluster: str) -> str:
        """The global options with which another ``kagent`` command reaches this cluster, to be pasted behind its name."""
        if self._file:
            return f"--config {quote(self._file)} --cluster {quote(cluster)}"
        known = self.clusters.get(cluster)
        return (f"-b {quote(known.bootstrap)} " if known else "") + f"--cluster {quote(cluster)}"

    @model_validator(mode="before")
    @classmethod
    def _folders(cls, values: Any) -> Any:
        return with_folders(values) if isinstance(values, Mapping) else values

    @field_validator("redact_salt_file")
    @classmethod
    def _home(cls, path: Path | None) -> Any:
        return in_home(path)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        left_out = LEFT_OUT.get()
        if isinstance(env_settings, EnvSettingsSource) and isinstance(init_settings, InitSettingsSource):
            env_settings.env_vars = {
                _as_in_file(name, init_settings.init_kwargs): value
                for name, value in env_settings.env_vars.items()
                if name not in left_out
            }
        return env_settings, init_settings  # the file's values come in as arguments, so the variable wins

    def cluster(self, name: str | None = None) -> tuple[str, Cluster]:
        """The named cluster, or the only one. Raises SettingsError, naming the choices."""
        if not self.clusters:
            raise SettingsError(
                "No cluster is configured: pass -b host:9092, or set KAGENT_BOOTSTRAP or a settings file."
            )
        if name is None:
            if len(self.clusters) > 1:
                raise SettingsError(
                    f"Several clusters are configured; choose one with --cluster: {', '.join(self.clusters)}."
                )
            name = next(iter(self.clusters))
        if name not in self.clusters:
            raise SettingsError(
                f"No cluster named {name!r} is configured; there are: {few(list(self.clusters))}{did_you_mean(name, self.clusters)}"
            )
        return name, self.clusters[name]

    def policies(self) -> Policies:
        """The policy of every group; kagent's own groups are ignored: their delay is in its state message."""
        return Policies(self.policy, self.groups, (*self.ignore, *own_groups.patterns(self.topics.app)))

    def salt(self) -> str | None:
        """The secret under which names are hashed, if one is set. Raises SettingsError if its file cannot be read."""
        return secret(self.redact_salt, self.redact_salt_file)

    def home_cluster(self, watched: str) -> Cluster:
        """The cluster that holds kagent's own topics."""
        return self.cluster(self.home or watched)[1]


def _as_in_file(variable: str, values: Mapping[str, Any]) -> str:
    """The variable, with names of the person's own choice as the file writes them; others as they are."""
    if not variable.startswith(PREFIX.lower()):
        return variable
    return PREFIX.lower() + DELIMITER.join(map(str, as_in_file(way(variable), values)))


def with_folders(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with folders under ``data`` where none is named."""
    given = values.get("data")
    if given is not None and not isinstance(given, str | Path):
        return dict(values)  # refused by its type
    # Not the working directory: the pipeline's checkpoint must be found again wherever it is started.
    base = Path(given or platformdirs.user_data_dir("kagent", appauthor=False)).expanduser()
    found = {**values, "data": str(base)}
    for part, name, folder in (("pipeline", "checkpoint", "checkpoint"), ("worker", "data", "worker")):
        section = found.get(part) or {}
        section = section.model_dump(exclude_unset=True) if isinstance(section, BaseModel) else section
        if isinstance(section, Mapping) and not section.get(name):
            old = Path(OLD_FOLDERS[folder])
            found[part] = {**section, name: str(old if old.is_dir() else base / folder)}
    return _in_home(found)


def _in_home(values: dict[str, Any]) -> dict[str, Any]:
    """With folders that begin with ``~`` as the shell has them; they may be URLs, and so are texts."""
    found = dict(values)
    for part, name in (("pipeline", "checkpoint"), ("pipeline", "history"), ("worker", "data")):
        section = found.get(part)
        if isinstance(section, Mapping) and isinstance(section.get(name), str):
            found[part] = {**section, name: os.path.expanduser(section[name])}
    return found
