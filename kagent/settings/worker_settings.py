"""The section ``worker``: the Faust worker, and who may see its page."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Literal

from pydantic import (
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from kagent.duration_fields import Hours, Seconds
from kagent.errors import SettingsError
from kagent.settings.alert_destinations import secret
from kagent.settings.strict import HostName, Strict

PUBLIC_URL = r"^https?://[^/\s?#]+[^\s?#]*$"


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
            raise ValueError("a token without login: token would protect nothing; write login: token")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together: set both")
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
        description="The maximum time before a changed row is committed. After a kill the worker reads that much again. Messages do not wait.",
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
        examples=["0.0.0.0", "::"],
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
        description="The maximum number of series of partitions and members on /metrics; sums by group are always there.",
    )
    max_metric_groups: int = Field(
        20_000,
        ge=0,
        description="The maximum number of groups on /metrics: those with an incident first, then those with the most lag.",
    )
    # Any client can create groups by committing: memory must not be theirs to fill.
    max_groups: int = Field(
        20_000, ge=1, description="The maximum number of groups watched; groups already watched stay."
    )
    max_partitions_per_group: int = Field(
        50_000, ge=1, description="The maximum number of partitions of one group that are judged."
    )

    @field_validator("store")
    @classmethod
    def _store(cls, store: str) -> str:
        if not re.match(r"(memory|rocksdb|aerospike)://", store):
            raise ValueError(f"must begin with memory:// or rocksdb://, not {store!r}")
        return store
