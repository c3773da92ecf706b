"""One YAML file and ``KAGENT_…`` variables, the variable winning.

A variable's name is the path in upper case, its steps joined by two underscores:
``KAGENT_PIPELINE__TRIGGER=2`` is ``pipeline: {trigger: 2}`` and ``KAGENT_CLUSTERS__MAIN__BOOTSTRAP=…`` is
``clusters: {main: {bootstrap: …}}``. Secrets come from a variable or a file (``password_file``), never a flag.
"""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from kagent.alert.destinations import AlertSettings, secret
from kagent.errors import SettingsError

CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Strict(BaseModel):
    """A part of the settings: a name that does not exist is an error, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Security(Strict):
    """How to log in to a cluster; set once, given to Spark, Faust and the admin client alike."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = Field(None, description="A file that holds the password.")
    ca_file: Path | None = Field(
        None, description="PEM of the authority that signed the brokers' certificates."
    )
    cert_file: Path | None = Field(None, description="PEM of the client's certificate chain (mutual TLS).")
    key_file: Path | None = Field(None, description="PEM of the client's private key, PKCS#8.")
    key_password: SecretStr | None = None

    @model_validator(mode="after")
    def _whole(self) -> Security:
        if self.protocol.startswith("SASL") and not (self.username and (self.password or self.password_file)):
            raise ValueError(f"{self.protocol} needs username and password (or password_file)")
        return self

    def secret(self) -> str | None:
        """The password, from its file if there is one. Raises SettingsError if the file cannot be read."""
        if self.password_file is None:
            return self.password.get_secret_value() if self.password else None
        try:
            return self.password_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SettingsError(
                f"The password file {self.password_file} cannot be read ({error.strerror})."
            ) from error


class Cluster(Strict):
    """One Kafka cluster."""

    bootstrap: str = Field(description="host:port, several with commas.")
    cluster_id: str | None = Field(None, description="If set, kagent refuses to run against another cluster.")
    security: Security = Security()


class Topics(Strict):
    """kagent's own topics on the home cluster."""

    prefix: str = "kagent-"
    partitions: int = Field(8, ge=1, le=50)
    replication: int = Field(1, ge=1, description="3 in production.")
    retention_hours: int = Field(24, ge=1, description="How long events are kept.")

    @property
    def events(self) -> str:
        return f"{self.prefix}group-events"

    @property
    def recommendations(self) -> str:
        return f"{self.prefix}recommendations"

    @property
    def mutes(self) -> str:
        return f"{self.prefix}mutes"

    @property
    def alerts(self) -> str:
        return f"{self.prefix}alerts"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}dead-letters"

    @property
    def ticks(self) -> str:
        return f"{self.prefix}ticks"


class PipelineSettings(Strict):
    """The Spark stream."""

    trigger: float = Field(1.0, gt=0, description="Seconds between triggers.")
    checkpoint: str = Field(
        "kagent-checkpoint", description="Folder or URL where the stream keeps its place."
    )
    master: str = Field("local[*]", description="Spark's master.")
    driver_memory: str = "1g"
    max_offsets_per_trigger: int = Field(2_000_000, ge=1)
    connector: str = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
    history: str | None = Field(
        None, description="Folder or URL of the history (Delta tables); none: not kept."
    )
    history_interval: float = Field(
        10.0, ge=1, description="Seconds between writes of the history: how fine it is."
    )
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Where the pipeline serves Prometheus metrics; none: nowhere."
    )
    metrics_host: str = Field("0.0.0.0", description="Address for the pipeline's metrics.")
    options: dict[str, str] = Field(default_factory=dict, description="Further Spark settings, as they are.")


class HttpSettings(Strict):
    """Who may see the worker's page and API, and how they are encrypted."""

    login: Literal["none", "token", "proxy"] = Field(
        "none", description="Who is let in: all, who sends the token, or whom a proxy has logged in."
    )
    token: SecretStr | None = Field(None, description="Sent as `Authorization: Bearer …`.")
    token_file: Path | None = Field(None, description="A file that holds the token.")
    proxy_header: str = Field(
        "X-Forwarded-User", description="Set by the proxy, which must be the only way to the port."
    )
    cert_file: Path | None = Field(
        None, description="PEM of the certificate chain: the port then speaks TLS."
    )
    key_file: Path | None = Field(None, description="PEM of its key.")
    ca_file: Path | None = Field(
        None,
        description="PEM of the authority that signed the workers' certificates, for workers that ask each other.",
    )

    @model_validator(mode="after")
    def _whole(self) -> HttpSettings:
        if self.login == "token" and not (self.token or self.token_file):
            raise ValueError("login: token needs token or token_file")
        if self.login != "token" and (self.token or self.token_file):
            raise ValueError("a token without login: token would protect nothing")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together")
        return self

    def secret_token(self) -> str | None:
        """The token, from its file if there is one. Raises SettingsError if the file cannot be read."""
        return secret(self.token, self.token_file)

    def login_headers(self) -> dict[str, str]:
        """What a worker, or ``kagent explain``, sends to be let in by a worker."""
        if self.login == "token":
            return {"Authorization": f"Bearer {self.secret_token() or ''}"}
        return {self.proxy_header: "kagent"} if self.login == "proxy" else {}

    def client_tls(self) -> ssl.SSLContext | None:
        """How a worker's certificate is checked; None where workers have none. Raises SettingsError."""
        if self.cert_file is None:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"worker.http.ca_file: {self.ca_file} cannot be used ({error}).") from error


class WorkerSettings(Strict):
    """The Faust worker."""

    tick: float = Field(10.0, gt=0, description="Seconds between judgements.")
    sample: float = Field(5.0, gt=0, description="Seconds between samples of the log ends.")
    state_interval: float = Field(30.0, gt=0, description="Seconds between state messages.")
    keep_resolved_hours: float = Field(
        168.0, gt=0, description="When a resolved recommendation gets its tombstone."
    )
    store: str = "memory://"
    data: str = Field("kagent-data", description="Folder for the worker's files.")
    web_host: str = Field(
        "127.0.0.1",
        description="Where the web port listens; workers on several machines need 0.0.0.0, and then a login.",
    )
    web_port: int = Field(6066, ge=0, le=65535)
    http: HttpSettings = HttpSettings()
    advertised_host: str | None = Field(
        None,
        description="Where other workers reach this one's web port; by default the address it reaches the cluster from.",
    )
    max_series: int = Field(
        100_000,
        ge=0,
        description="Most series of partitions and members on /metrics; groups keep their sums.",
    )
    max_metric_groups: int = Field(
        20_000,
        ge=0,
        description="Most groups on /metrics: those with an incident, then those with the most lag.",
    )
    max_groups: int = Field(20_000, ge=1, description="Most groups looked after; what is known stays.")
    max_partitions_per_group: int = Field(50_000, ge=1)


class GroupSettings(BaseModel):
    """What holds for the groups whose name matches; the fields are those of ``kagent.policy.Policy``."""

    model_config = ConfigDict(extra="allow", frozen=True)

    match: str = Field(description="A glob, or a regular expression between slashes: /^orders-[0-9]+$/.")


class Settings(BaseSettings):
    """Everything kagent can be told."""

    model_config = SettingsConfigDict(
        env_prefix="KAGENT_",
        env_nested_delimiter="__",
        extra="ignore",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    clusters: dict[str, Cluster] = Field(default_factory=dict, description="The clusters to watch, by name.")
    home: str | None = Field(
        None, description="Which cluster holds kagent's own topics; by default the watched one."
    )
    topics: Topics = Topics()
    pipeline: PipelineSettings = PipelineSettings()
    worker: WorkerSettings = WorkerSettings()
    policy: dict[str, Any] = Field(default_factory=dict, description="Judgement for all groups.")
    groups: list[GroupSettings] = Field(
        default_factory=list, description="Judgement by pattern; the first match holds."
    )
    ignore: list[str] = Field(
        default_factory=list, description="Groups never judged, besides the built-in ones."
    )
    redact: list[Literal["host", "client_id"]] = Field(
        default_factory=list,
        description="What of a member is told only as a hash, wherever the worker speaks.",
    )
    redact_salt: SecretStr | None = Field(None, description="Keeps those hashes from being guessed.")
    redact_salt_file: Path | None = Field(None, description="A file that holds it.")
    alert: AlertSettings = Field(AlertSettings(), description="Destinations of `kagent alert`.")

    @field_validator("clusters")
    @classmethod
    def _names(cls, clusters: dict[str, Cluster]) -> dict[str, Cluster]:
        for name in clusters:
            if not CLUSTER_NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} is no name for a cluster: letters, digits, dot, dash and underscore only"
                )
        return clusters

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings  # the file's values come in as arguments, so the variable wins

    def cluster(self, name: str | None = None) -> tuple[str, Cluster]:
        """The named cluster, or the only one. Raises SettingsError, naming the choices."""
        if not self.clusters:
            raise SettingsError(
                "No cluster is configured: pass --bootstrap host:9092, or set KAGENT_BOOTSTRAP or a settings file."
            )
        if name is None:
            if len(self.clusters) > 1:
                raise SettingsError(
                    f"Several clusters are configured; choose one with --cluster: {', '.join(self.clusters)}."
                )
            name = next(iter(self.clusters))
        if name not in self.clusters:
            raise SettingsError(
                f"No cluster named {name!r} is configured; there are: {', '.join(self.clusters)}."
            )
        return name, self.clusters[name]

    def salt(self) -> str | None:
        """The secret under which names are hashed, if one is set. Raises SettingsError if its file cannot be read."""
        return secret(self.redact_salt, self.redact_salt_file)

    def home_cluster(self, watched: str) -> Cluster:
        """The cluster that holds kagent's own topics."""
        return self.cluster(self.home or watched)[1]


def load(config: str | Path | None = None, bootstrap: str | None = None) -> Settings:
    """The settings in effect: file (``config``, else ``KAGENT_CONFIG``), then variables, then ``bootstrap``.

    ``bootstrap`` (else ``KAGENT_BOOTSTRAP``) is the address of the first cluster, or of a cluster ``main`` without any.
    Raises SettingsError with the path of the field that is wrong.
    """
    path = config or os.environ.get("KAGENT_CONFIG")
    bootstrap = bootstrap or os.environ.get("KAGENT_BOOTSTRAP")
    values = _file(Path(path)) if path else {}
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError(_sentence(error)) from error
    if bootstrap:
        name = next(iter(settings.clusters), "main")
        known = settings.clusters.get(name)
        cluster = known.model_copy(update={"bootstrap": bootstrap}) if known else Cluster(bootstrap=bootstrap)
        settings = settings.model_copy(update={"clusters": {name: cluster}})
    return settings


def _file(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read ({error.strerror}).") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise SettingsError(f"The settings file {path} is not YAML{where}.") from error
    if not isinstance(values, dict):
        if values is None:
            return {}
        raise SettingsError(f"The settings file {path} must hold names and values, such as `clusters:`.")
    unknown = sorted(set(values) - set(Settings.model_fields))
    if unknown:
        raise SettingsError(f"The settings file {path} has unknown names: {', '.join(map(str, unknown))}.")
    return values


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "settings"
    more = error.error_count() - 1
    rest = f" (and {more} more)" if more else ""
    return f"The settings are wrong at {where}: {first['msg']}{rest}."
