"""One YAML file and ``KAGENT_…`` variables, the variable winning.

A variable's name is the path in upper case, its steps joined by two underscores:
``KAGENT_PIPELINE__TRIGGER=2`` is ``pipeline: {trigger: 2}`` and ``KAGENT_CLUSTERS__MAIN__BOOTSTRAP=…`` is
``clusters: {main: {bootstrap: …}}``. Secrets come from a variable or a file (``password_file``), never a flag.
Durations are seconds, or have a unit: ``90s``, ``5m``, ``2h``, ``1d``.
"""

from __future__ import annotations

import copy
import ipaddress
import logging
import os
import re
import ssl
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableVariable

from kagent import file_systems, own_groups
from kagent.destination_settings import AlertSettings, secret
from kagent.durations import Hours, Seconds, WholeHours
from kagent.errors import SettingsError
from kagent.group_pattern import GroupPattern, matches
from kagent.policy import Policies, PolicySettings, make_policy, refuse_truth, retired
from kagent.settings_file import SettingsFile, Where, read
from kagent.settings_mistakes import (
    GivenSettings,
    Mistake,
    absent,
    hidden,
    in_order,
    mistakes,
    sentence,
    suggestion,
    take_out,
)

log = logging.getLogger("kagent.settings")
MASTER = r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\]|-cluster\[[^\]]+\])?|spark://[^\s/:]+:\d+(,[^\s/:]+:\d+)*|k8s://\S+|yarn"
"""As Spark 4 takes it: https://spark.apache.org/docs/4.0.0/submitting-applications.html#master-urls"""
LEAST_DRIVER_MB = 450
"""Spark refuses to start with less (UnifiedMemoryManager: one and a half of its 300 MB)."""
PUBLIC_URL = r"^https?://[^/\s?#]+[^\s?#]*$"
DEFAULT_CLUSTER = "main"
"""The name of a cluster of which only the address was given."""
# No slash: keys are <cluster>/<group>, and a group's name may hold slashes.
CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _cluster_name(name: str) -> str:
    if not CLUSTER_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a cluster: letters, digits, dot, dash and underscore only")
    return name


ClusterName = Annotated[str, AfterValidator(_cluster_name)]


def _host(host: str) -> str:
    """A name or an address by itself: with a scheme or a port it is found wrong only when nothing answers there."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if not re.fullmatch(r"[\w.-]*", host):
            raise ValueError(
                f"must be a host name or an address, without a scheme or port, not {host!r}"
            ) from None
    return host


HostName = Annotated[str, AfterValidator(_host)]


class Strict(BaseModel):
    """A part of the settings: a name that does not exist is an error, not ignored."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any, info: ValidationInfo) -> Any:
        return refuse_truth(value, cls.model_fields[str(info.field_name)].annotation)


class Security(Strict):
    """How to log in to a cluster; set once, given to Spark, Faust and the admin client alike."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="As in Kafka's security.protocol."
    )
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "PLAIN", description="As in Kafka's sasl.mechanism; used with SASL only."
    )
    username: str | None = Field(None, description="Whom to log in as, with SASL.")
    password: SecretStr | None = Field(None, description="Of that user.")
    password_file: Path | None = Field(None, description="A file that holds the password.")
    ca_file: Path | None = Field(
        None, description="PEM of the authority that signed the brokers' certificates."
    )
    cert_file: Path | None = Field(None, description="PEM of the client's certificate chain (mutual TLS).")
    key_file: Path | None = Field(None, description="PEM of the client's private key, PKCS#8.")
    key_password: SecretStr | None = Field(None, description="Opens key_file, if it is encrypted.")

    @model_validator(mode="after")
    def _whole(self) -> Security:
        if self.protocol.startswith("SASL") and not (self.username and (self.password or self.password_file)):
            raise ValueError(f"{self.protocol} needs username and password (or password_file)")
        if self.username and not self.protocol.startswith("SASL"):
            raise ValueError(f"username is not used with protocol {self.protocol}; did you mean SASL_SSL?")
        if (self.password or self.password_file) and not self.protocol.startswith("SASL"):
            raise ValueError(f"password is not used with protocol {self.protocol}; did you mean SASL_SSL?")
        if self.password and self.password_file:
            raise ValueError("needs either password or password_file, not both")
        if self.key_password and self.key_file is None:
            raise ValueError("key_password is of no use without cert_file and key_file")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together")
        if not self.protocol.endswith("SSL"):
            # Whoever names an authority believes that the connection is encrypted.
            for name in ("ca_file", "cert_file"):
                if getattr(self, name):
                    near = self.protocol.replace("PLAINTEXT", "SSL")
                    raise ValueError(
                        f"{name} is not used with protocol {self.protocol}; did you mean {near}?"
                    )
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


def with_ports(bootstrap: str) -> str:
    """The addresses, each with a port: where it is left out librdkafka takes 9092, but Kafka's Java client refuses it.

    Raises ValueError for what is no address.
    """
    addresses = []
    for address in map(str.strip, bootstrap.split(",")):
        found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d+))?", address)
        if found is None or not 0 < int(found[2] or 9092) < 65536:
            # Without brackets it is ambiguous where an IPv6 address ends and its port begins (RFC 3986).
            is_ipv6 = re.fullmatch(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*", address)
            hint = "; an IPv6 address stands in brackets, as in [::1]:9092" if is_ipv6 else ""
            raise ValueError(f"must be host:port, several with commas; {address!r} is no host:port{hint}")
        addresses.append(f"{found[1]}:{found[2] or 9092}")
    return ",".join(addresses)


class Cluster(Strict):
    """One Kafka cluster."""

    bootstrap: str = Field(description="host:port, several with commas.")
    cluster_id: str | None = Field(None, description="If set, kagent refuses to run against another cluster.")
    security: Security = Security()
    command_config: Path | None = Field(
        None, description="File with the login for Kafka's own tools, named in advice as --command-config."
    )

    @field_validator("bootstrap")
    @classmethod
    def _with_ports(cls, bootstrap: str) -> str:
        if "${" in bootstrap:
            raise ValueError("variables are not replaced in the file; set KAGENT_CLUSTERS__<NAME>__BOOTSTRAP")
        return with_ports(bootstrap)

    def tool_options(self) -> str:
        """How Kafka's own command-line tools reach this cluster, to be pasted behind their name."""
        config = self.command_config
        if config is None and self.security.protocol != "PLAINTEXT":
            config = Path("client.properties")
        login = f" --command-config {quote(str(config))}" if config else ""
        return f"--bootstrap-server {quote(self.bootstrap)}{login}"


class Topics(Strict):
    """kagent's own topics on the home cluster."""

    # A topic's name has at most 249 characters, changelogs' names included.
    prefix: str = Field("kagent-", max_length=200, description="What their names begin with.")
    # __consumer_offsets has 50 partitions by default: more would not spread its groups further.
    partitions: int = Field(
        8, ge=1, le=50, description="Of the topic of events: more workers can share more."
    )
    replication: int = Field(1, ge=1, description="3 in production.")
    retention_hours: WholeHours = Field(24, ge=1, description="How long events are kept.")

    @field_validator("prefix")
    @classmethod
    def _prefix(cls, prefix: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9._-]*", prefix):
            raise ValueError(
                f"must hold letters, digits, dot, dash and underscore only, as topics do, not {prefix!r}"
            )
        return prefix

    @property
    def app(self) -> str:
        """The worker's group, and what its changelogs, transactional ids and the other groups of kagent begin with."""
        return self.prefix.rstrip("-") or "kagent"

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

    trigger: Seconds = Field(1.0, gt=0, description="Time between triggers.")
    checkpoint: str = Field(
        "",
        description="Folder or URL of the stream's checkpoint; by default `checkpoint` under `data`.",
    )
    master: str = Field("local[*]", description="Spark's master, such as local[2] or spark://host:7077.")
    driver_memory: str = Field("1g", description="Memory of Spark's driver, such as 512m or 2g.")
    # Bounds a batch, so that progress comes while the pipeline catches up: without it, a backlog is one long silence.
    max_offsets_per_trigger: int = Field(2_000_000, ge=1, description="Most records read in one trigger.")
    # One until no worker of a release is left that reads single events only: such a one would stay blind.
    events_per_message: int = Field(
        1,
        ge=1,
        le=1000,
        description="Most groups' events in one message to the workers; 50 costs them a quarter. Only once all workers read such messages.",
    )
    connector: str = Field(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        description="Maven coordinates of Spark's Kafka connector.",
    )
    history: str | None = Field(
        None, description="Folder or URL of the history (Delta tables); none: not kept."
    )
    history_interval: Seconds = Field(
        10.0, ge=1, description="Time between writes of the history: how fine it is."
    )
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Where the pipeline serves Prometheus metrics; none: nowhere."
    )
    metrics_host: HostName = Field("0.0.0.0", description="Address for the pipeline's metrics.")
    options: dict[str, str] = Field(default_factory=dict, description="Further Spark settings, as they are.")

    @field_validator("master")
    @classmethod
    def _master(cls, master: str) -> str:
        # Checked here: Spark names a wrong master only after a JVM has started.
        if not re.fullmatch(MASTER, master):
            raise ValueError(f"must be local[n], spark://host:port, k8s://… or yarn, not {master!r}")
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
        if isinstance(memory, int) and not isinstance(memory, bool):
            memory = str(memory)
        # As -Xmx takes it: the JVM does not start with 2GB.
        if isinstance(memory, str) and not re.fullmatch(r"\d+[kmgt]", memory, re.IGNORECASE):
            words = re.fullmatch(r"(\d+)\s*([kmgt])[a-z]*", memory, re.IGNORECASE)
            near = f"; did you mean {words[1]}{words[2].lower()}?" if words else ""
            raise ValueError(f"must be a number with a unit, such as 512m or 2g, not {memory!r}{near}")
        if isinstance(memory, str) and _megabytes(memory) < LEAST_DRIVER_MB:
            raise ValueError(f"must be at least {LEAST_DRIVER_MB}m, or Spark does not start, not {memory!r}")
        return memory


def _megabytes(memory: str) -> float:
    found = re.match(r"(\d+)([kmgt])", memory.lower())
    return int(found[1]) * 1024 ** ("kmgt".index(found[2]) - 1) if found else 0


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
    public_url: str | None = Field(
        None,
        json_schema_extra={"pattern": PUBLIC_URL},
        description="Where people reach the page, such as `https://ops.example/kagent`: alerts then link to it.",
    )

    @field_validator("public_url")
    @classmethod
    def _address(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(PUBLIC_URL, url):
            raise ValueError(f"must be an address such as https://ops.example/kagent, not {url!r}")
        return url

    @field_validator("proxy_header")
    @classmethod
    def _header(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):  # a token of RFC 9110, 5.6.2
            raise ValueError(f"must be the name of a header, such as X-Forwarded-User, not {name!r}")
        return name

    @model_validator(mode="after")
    def _whole(self) -> HttpSettings:
        if self.login == "token" and not (self.token or self.token_file):
            raise ValueError("login: token needs token or token_file")
        if self.token and self.token_file:
            raise ValueError("needs either token or token_file, not both")
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
        # Workers ask each other directly, past the proxy.
        return {self.proxy_header: "kagent"} if self.login == "proxy" else {}

    def client_tls(self) -> ssl.SSLContext | None:
        """How a worker's certificate is checked; None where workers have none. Raises SettingsError."""
        if self.cert_file is None:
            return None
        try:
            # Also without a ca_file: the system's authorities then sign the workers' certificates.
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"worker.http.ca_file: {self.ca_file} cannot be used ({error}).") from error


class WorkerSettings(Strict):
    """The Faust worker."""

    tick: Seconds = Field(10.0, gt=0, le=3600, description="Time between judgements.")
    sample: Seconds = Field(5.0, gt=0, le=3600, description="Time between samples of the log ends.")
    state_interval: Seconds = Field(30.0, gt=0, le=3600, description="Time between state messages.")
    flush: Seconds = Field(
        15.0,
        gt=0,
        le=3600,
        description="Most time a changed row waits to be committed; so much is read again after a kill. Messages do not wait.",
    )
    keep_resolved_hours: Hours = Field(
        168.0, gt=0, description="When a resolved recommendation gets its tombstone."
    )
    store: str = Field("memory://", description="Where Faust keeps table rows: memory:// or rocksdb://.")
    data: str = Field(
        "", description="Folder for the worker's files; by default `worker` under the setting `data`."
    )
    web_host: HostName = Field(
        "127.0.0.1",
        description="Where the web port listens; workers on several machines need 0.0.0.0, and then a login.",
    )
    web_port: int = Field(6066, ge=0, le=65535, description="Port of the page, /metrics and the JSON API.")
    http: HttpSettings = HttpSettings()
    advertised_host: HostName | None = Field(
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
    # Any client can create groups by committing: memory must not be theirs to fill.
    max_groups: int = Field(20_000, ge=1, description="Most groups watched; groups already watched stay.")
    max_partitions_per_group: int = Field(
        50_000, ge=1, description="Most partitions of one group that are judged."
    )

    @field_validator("store")
    @classmethod
    def _store(cls, store: str) -> str:
        if not re.match(r"(memory|rocksdb|aerospike)://", store):
            raise ValueError(f"must begin with memory:// or rocksdb://, not {store!r}")
        return store


class GroupSettings(PolicySettings):
    """What holds for the groups whose name matches; the fields are those of ``kagent.policy.Policy``."""

    match: GroupPattern = Field(
        description="A glob, or a regular expression between slashes: /^orders-[0-9]+$/."
    )

    @field_validator("lower_threshold", check_fields=False)
    @classmethod
    def _below(cls, lower: float, info: ValidationInfo) -> float:
        """Compared by `_contradictions`: here the default would stand for the threshold that `policy` sets."""
        return lower


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="KAGENT_",
        env_nested_delimiter="__",
        extra="ignore",
        frozen=True,
        nested_model_default_partial_update=True,
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
        default_factory=list, description="Judgement by pattern; the first match holds."
    )
    ignore: list[GroupPattern] = Field(
        default_factory=list, description="Groups never judged, besides the built-in ones."
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

    def command_options(self, cluster: str) -> str:
        """The global options with which another ``kagent`` command reaches this cluster, to be pasted behind its name."""
        if self._file:
            return f"--config {quote(self._file)} --cluster {quote(cluster)}"
        # An address alone makes a cluster `main`; of one with another name the variables must be set there too.
        known = self.clusters.get(cluster) if cluster == DEFAULT_CLUSTER else None
        return (f"-b {quote(known.bootstrap)} " if known else "") + f"--cluster {quote(cluster)}"

    @model_validator(mode="before")
    @classmethod
    def _folders(cls, values: Any) -> Any:
        return with_folders(values) if isinstance(values, Mapping) else values

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
                f"No cluster named {name!r} is configured; there are: {', '.join(self.clusters)}."
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


OLD_FOLDERS = {"checkpoint": "kagent-checkpoint", "worker": "kagent-data"}
"""Where an older kagent kept these, in the working directory: they are still used if they are there."""


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
    return found


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in effect, what they were made from, notes about what has no effect any more, and the cluster whose
    address came from ``-b`` or ``KAGENT_BOOTSTRAP``."""

    settings: Settings
    given: GivenSettings
    notes: tuple[str, ...] = ()
    addressed: str | None = None


def load(
    config: str | Path | None = None, bootstrap: str | None = None, cluster: str | None = None
) -> Settings:
    """The settings in effect: file (``config``, else ``KAGENT_CONFIG``), then variables, then ``bootstrap``.

    ``bootstrap`` (else ``KAGENT_BOOTSTRAP``) is the address of the cluster that ``cluster`` (else ``KAGENT_CLUSTER``) names,
    of the first one without a name, or of a cluster ``main`` where there is none.
    Raises SettingsError with every mistake, its file and line or its variable.
    """
    loaded = loaded_from(config, bootstrap, cluster)
    for note in loaded.notes:
        log.warning("%s", note)
    return loaded.settings


def loaded_from(
    config: str | Path | None = None, bootstrap: str | None = None, cluster: str | None = None
) -> Loaded:
    """As :func:`load`, with where every value comes from."""
    path = config or os.environ.get("KAGENT_CONFIG")
    bootstrap = bootstrap or os.environ.get("KAGENT_BOOTSTRAP")
    given = GivenSettings.of(read(Path(path)) if path else SettingsFile(), os.environ)
    settings = _checked(given)
    if path:
        # Absolute: a command in advice is pasted in another folder.
        settings._file = os.path.abspath(path)
    # After validation, over the file and the variables: what stands on the command line wins.
    addressed = None
    if bootstrap:
        named = cluster or os.environ.get("KAGENT_CLUSTER")
        addressed = named if named in settings.clusters else next(iter(settings.clusters), DEFAULT_CLUSTER)
        settings = _at_address(settings, addressed, bootstrap)
    return Loaded(settings, given, tuple(_notes(given)), addressed)


def _at_address(settings: Settings, name: str, bootstrap: str) -> Settings:
    """With this address for the cluster of this name; of the others only the one that holds kagent's topics is left."""
    known = settings.clusters
    try:
        address = with_ports(bootstrap)
    except ValueError as error:
        raise SettingsError(f"-b or KAGENT_BOOTSTRAP: {error}.") from error
    given = known[name].model_copy(update={"bootstrap": address}) if known else Cluster(bootstrap=address)
    home = {n: other for n, other in known.items() if n == settings.home}
    return settings.model_copy(update={"clusters": {**home, name: given}})


def _checked(given: GivenSettings) -> Settings:
    settings, error = _validated(given, given.file.values)
    # Also without an error: pydantic ignores unknown names at the top, as KAGENT_CONFIG and the like are none.
    found = mistakes(Settings, given, error)
    rest, taken, wrong = copy.deepcopy(given.file.values), set[Where](), error
    # Once more without what is wrong, until the rest is right: all mistakes are named at once.
    while wrong is not None and (gone := take_out(rest, Settings, wrong)):
        taken.update(gone)
        settings, wrong = _validated(given, rest)
        found += hidden(Settings, given, wrong, taken) if wrong else []
    if settings is not None:
        found += _contradictions(settings, given, taken)
    if found or settings is None:
        raise SettingsError(sentence(in_order(found))) from error
    return settings


def _validated(
    given: GivenSettings, values: Mapping[str, Any]
) -> tuple[Settings | None, ValidationError | None]:
    try:
        return Settings(**values), None
    except ValidationError as wrong:
        return None, wrong
    except UnreadableVariable as wrong:
        raise SettingsError(sentence([_unreadable(given, wrong)])) from wrong


def _unreadable(given: GivenSettings, error: Exception) -> Mistake:
    """A variable for a list or a mapping that is no JSON."""
    field = re.search(r'field "(\w+)"', str(error))
    return Mistake(
        given.place((field[1],)) if field else "", "", "must hold JSON, such as '[\"a\"]' or '{\"a\": 1}'"
    )


def _contradictions(settings: Settings, given: GivenSettings, taken: Collection[Where]) -> list[Mistake]:
    """What is right by itself and wrong beside something else. ``taken``: ways to what was wrong and left out."""
    found = []
    home = settings.home
    # Those of the file too: what was wrong about one of them was taken out.
    names = list(dict.fromkeys([*settings.clusters, *_names(given.file.values.get("clusters"))]))
    if home is not None and names and home not in names:
        near = suggestion(home, names)
        hint = f"; did you mean {near}?" if near else f"; there are: {', '.join(names)}"
        found.append(Mistake(given.place(("home",)), "home", f"no cluster is named {home!r}{hint}"))
    found += _folders_spark_cannot_open(settings.pipeline, given)
    found += _filters_that_match_no_cluster(settings, names, given)
    if settings.redact_salt and settings.redact_salt_file:
        name = "redact_salt_file"
        found.append(
            Mistake(given.place((name,)), name, "needs either redact_salt or redact_salt_file, not both")
        )
    base = make_policy(settings.policy)
    for at, group in enumerate(settings.groups):
        where = ("groups", at)
        try:
            # With the base: a field can be right alone and contradict what `policy` sets for all.
            make_policy({k: v for k, v in group.model_dump(exclude_unset=True).items() if k != "match"}, base)
        except SettingsError as error:
            problem = str(error).removeprefix("The policy is wrong: ").rstrip(".")
            # What the group does not say itself it has from `policy`, which may have been left out as wrong.
            inherited = [way for way in taken if way[-1] not in group.model_fields_set]
            if not absent(problem, ("policy",), inherited) and not absent(problem, where, taken):
                found.append(Mistake(given.place(where), f"groups[{at}]", problem))
    return found


def _folders_spark_cannot_open(pipeline: PipelineSettings, given: GivenSettings) -> Iterator[Mistake]:
    for name, place in (("checkpoint", pipeline.checkpoint), ("history", pipeline.history)):
        why = file_systems.problem(place or "", pipeline.options)
        if why is not None:
            yield Mistake(given.place(("pipeline", name)), f"pipeline.{name}", why)


def _filters_that_match_no_cluster(
    settings: Settings, names: Sequence[str], given: GivenSettings
) -> Iterator[Mistake]:
    """Of a destination that takes incidents of certain clusters only: with a typo it would never hear of one."""
    for name, destination in settings.alert.destinations.items():
        for at, pattern in enumerate(destination.only.clusters):
            if names and not any(matches(pattern, cluster) for cluster in names):
                where = ("alert", "destinations", name, "only", "clusters", at)
                near = suggestion(pattern, names)
                hint = f"did you mean {near}?" if near else f"there are: {', '.join(names)}"
                setting = f"alert.destinations.{name}.only.clusters[{at}]"
                yield Mistake(given.place(where), setting, f"no cluster is named {pattern!r}; {hint}")


def _names(section: Any) -> list[str]:
    return list(section) if isinstance(section, Mapping) else []


def _notes(given: GivenSettings) -> list[str]:
    """A sentence for each setting that an older kagent had."""
    names: list[tuple[Where, str]] = [
        (("policy", name), name) for name in given.file.values.get("policy") or ()
    ]
    for at, group in enumerate(given.file.values.get("groups") or ()):
        names += [(("groups", at, name), name) for name in group]
    names += [(where, str(where[1])) for where in given.variables if where[0] == "policy" and len(where) > 1]
    return [
        f"{given.place(where)}: the setting {name} has no effect: {note}."
        for where, name in names
        if (note := retired(name)) is not None
    ] + [*_never_reached(given), *_unclosed(given)]


def _unclosed(given: GivenSettings) -> Iterator[str]:
    """A sentence for each pattern that is a glob by the rules, and likely meant as something else."""
    groups = given.file.values.get("groups") or ()
    ignored = given.file.values.get("ignore") or ()
    patterns: list[tuple[Where, Any]] = [
        (("groups", at, "match"), group.get("match")) for at, group in enumerate(groups)
    ]
    patterns += [(("ignore", at), pattern) for at, pattern in enumerate(ignored)]
    for where, pattern in patterns:
        if not isinstance(pattern, str) or (len(pattern) > 1 and pattern[0] == pattern[-1] == "/"):
            continue
        if pattern.startswith("/"):
            yield f"{given.place(where)}: {pattern!r} is a glob; a regular expression ends with a slash too: '{pattern}/'."
        elif pattern.count("[") > pattern.count("]"):
            yield f"{given.place(where)}: {pattern!r} has a [ without a ], which then stands for itself."


def _never_reached(given: GivenSettings) -> Iterator[str]:
    """A sentence for each entry of ``groups`` whose pattern stands in an earlier one: the first match holds."""
    first: dict[str, int] = {}
    for at, group in enumerate(given.file.values.get("groups") or ()):
        before = first.setdefault(str(group.get("match")), at)
        if before != at:
            place = given.place(("groups", before)).rpartition(":")[2]
            yield f"{given.place(('groups', at))}: groups[{at}] has no effect: the pattern is that of line {place}, which holds."
