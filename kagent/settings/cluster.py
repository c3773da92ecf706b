"""A Kafka cluster: its name, its address, and the login."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from kagent.errors import SettingsError
from kagent.settings.strict import Strict

# No slash: keys are <cluster>/<group>, and a group's name may hold slashes.
ADDRESS = r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d+))?"
CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _cluster_name(name: str) -> str:
    if not CLUSTER_NAME.fullmatch(name):
        near = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:63]
        hint = f"; did you mean {near}?" if near else ", at most 63"
        raise ValueError(
            f"{name!r} is no name for a cluster: letters, digits, dot, dash and underscore only{hint}"
        )
    return name


ClusterName = Annotated[str, AfterValidator(_cluster_name)]


class Security(Strict):
    """How to log in to a cluster; set once, given to Spark, Faust and the admin client alike."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="As in Kafka's security.protocol."
    )
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "PLAIN", description="As in Kafka's sasl.mechanism; used with SASL only."
    )
    username: str | None = Field(None, description="Whom to log in as, with SASL.")
    password: SecretStr | None = Field(None, description="The password of that user.")
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
        # PLAIN is the default: settings that were printed whole are right as they are.
        if self.mechanism != "PLAIN" and not self.protocol.startswith("SASL"):
            raise ValueError(
                f"mechanism is not used with protocol {self.protocol}; did you mean SASL_{self.protocol}?"
            )
        if self.password and self.password_file:
            raise ValueError("needs either password or password_file, not both")
        if self.key_password and self.key_file is None:
            raise ValueError("key_password needs cert_file and key_file")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together: set both")
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


def address_meant(text: str) -> str | None:
    """The addresses that the text holds besides a scheme, a login, a path, a remark, or another sign between them.

    >>> [
    ...     address_meant(text)
    ...     for text in ("kafka://u:p@a:9092/x", "localhost 9092", "a:1; b:2", "b: 9092", "b:")
    ... ]
    ['a:9092', 'localhost:9092', 'a:1,b:2', 'b:9092', 'b:9092']
    """
    bare = re.sub(r"^\w+://|^[^/@]*@", "", re.sub(r"^\w+://", "", text.strip("'\" ")))
    # `localhost/9092`, `a;9092`, `a 9092`: a number is a port.
    joined = re.sub(
        r"(?<!:)(?:\s*[/;|]\s*|\s+)(?=\d+(?:[;|\s]|$))", ":", re.sub(r"\s*:\s*", ":", bare.strip())
    )
    parts = re.split(r"[;|\s]+", joined)
    found = [re.fullmatch(r"([\w.-]+(?::\d+)?)[:/]?(?:/.*)?", part) for part in parts]
    # A remark behind the address: `broker:9092 (TLS)`.
    if not all(found) and ":" not in parts[0]:
        return None
    if not found[0]:
        return None
    return ",".join(each[1] if ":" in each[1] else f"{each[1]}:9092" for each in found if each)


def with_ports(bootstrap: str) -> str:
    """The addresses, each with a port: where it is left out librdkafka takes 9092, but Kafka's Java client refuses it.

    Raises ValueError for what is no address.
    """
    addresses: list[str] = []
    parts = [part.strip() for part in bootstrap.split(",")]
    if any(parts) and not all(parts):
        raise ValueError(
            f"must be host:port, several with commas; there is a comma too many; did you mean {','.join(filter(None, parts))}?"
        )
    for address in parts:
        found = re.fullmatch(ADDRESS, address)
        if addresses and address.isdigit():
            near = address_meant(re.sub(r",\s*(?=\d+(,|$))", ":", bootstrap))
            raise ValueError(
                f"must be host:port, several with commas; {address!r} is no host; did you mean {near}?"
            )
        if found is None or not 0 < int(found[2] or 9092) < 65536:
            # Without brackets it is ambiguous where an IPv6 address ends and its port begins (RFC 3986).
            is_ipv6 = re.fullmatch(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*", address)
            hint = "; an IPv6 address stands in brackets, as in [::1]:9092" if is_ipv6 else ""
            near = address_meant(address)
            hint = (
                f"; did you mean {near}?"
                if near
                else hint or "; the address of one broker is enough, such as broker:9092"
            )
            hint = "; a port is from 1 to 65535" if found else hint
            # What stands before an @ is a login.
            shown = re.sub(r"[^/@]*@", "…@", address)
            raise ValueError(f"must be host:port, several with commas; {shown!r} is no host:port{hint}")
        addresses.append(f"{found[1]}:{found[2] or 9092}")
    return ",".join(addresses)


class Cluster(Strict):
    """One Kafka cluster."""

    bootstrap: str = Field(
        examples=["broker:9092"],
        json_schema_extra={"pattern": rf"^\s*{ADDRESS}(\s*,\s*{ADDRESS})*\s*$"},
        description="host:port, several with commas.",
    )
    cluster_id: str | None = Field(None, description="If set, kagent refuses to run against another cluster.")
    security: Security = Security()
    command_config: Path | None = Field(
        None, description="File with the login for Kafka's own tools, named in advice as --command-config."
    )

    @field_validator("bootstrap")
    @classmethod
    def _with_ports(cls, bootstrap: str) -> str:
        return with_ports(bootstrap)

    def tool_options(self) -> str:
        """How Kafka's own command-line tools reach this cluster, to be pasted behind their name."""
        config = self.command_config
        if config is None and self.security.protocol != "PLAINTEXT":
            config = Path("client.properties")
        login = f" --command-config {quote(str(config))}" if config else ""
        return f"--bootstrap-server {quote(self.bootstrap)}{login}"
