"""Connection settings for each client library, all made from the one ``Cluster`` of the settings."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from kagent.errors import SettingsError
from kagent.settings import Cluster, Security


def confluent(cluster: Cluster, **more: Any) -> dict[str, Any]:
    """Configuration for a confluent-kafka client."""
    security = cluster.security
    config: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": security.protocol,
        # Broker logs, metrics and quotas name clients by it.
        "client.id": "kagent",
    }
    if security.protocol.startswith("SASL"):
        config |= {
            "sasl.mechanism": security.mechanism,
            "sasl.username": security.username,
            "sasl.password": security.secret(),
        }
    readable(security)
    ssl_context(security)  # what is no certificate is a sentence here; librdkafka raises in a constructor
    files = {
        "ssl.ca.location": security.ca_file,
        "ssl.certificate.location": security.cert_file,
        "ssl.key.location": security.key_file,
    }
    config |= {name: str(path) for name, path in files.items() if path}
    if security.key_password:
        config["ssl.key.password"] = security.key_password.get_secret_value()
    return {**config, **more}


def aiokafka(cluster: Cluster, **more: Any) -> dict[str, Any]:
    """Keyword arguments for an aiokafka consumer, producer or admin client."""
    security = cluster.security
    config: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap,
        "security_protocol": security.protocol,
        "client_id": "kagent",
    }
    if security.protocol.startswith("SASL"):
        config |= {
            "sasl_mechanism": security.mechanism,
            "sasl_plain_username": security.username,
            "sasl_plain_password": security.secret(),
        }
    context = ssl_context(security)
    if context:
        config["ssl_context"] = context
    return {**config, **more}


def spark(cluster: Cluster) -> dict[str, str]:
    """Options of Spark's Kafka source and sink, with their ``kafka.`` prefix."""
    security = cluster.security
    config: dict[str, str] = {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "kafka.security.protocol": security.protocol,
    }
    if security.protocol.startswith("SASL"):
        config |= {"kafka.sasl.mechanism": security.mechanism, "kafka.sasl.jaas.config": _jaas(security)}
    # Java reads PEM files since Kafka 2.7, so that no keystore has to be built (KIP-651).
    # https://cwiki.apache.org/confluence/display/KAFKA/KIP-651+-+Support+PEM+format+for+SSL+certificates+and+private+key
    if security.ca_file:
        config |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": str(security.ca_file)}
    if security.cert_file and security.key_file:
        config |= {
            "kafka.ssl.keystore.type": "PEM",
            # The text, not a location: a PEM keystore file would have to hold both key and certificates.
            "kafka.ssl.keystore.certificate.chain": _text(security.cert_file),
            "kafka.ssl.keystore.key": _text(security.key_file),
        }
        if security.key_password:
            config["kafka.ssl.key.password"] = security.key_password.get_secret_value()
    return config


def _jaas(security: Security) -> str:
    module = "plain.PlainLoginModule" if security.mechanism == "PLAIN" else "scram.ScramLoginModule"
    user, password = (_quoted(value or "") for value in (security.username, security.secret()))
    return f"org.apache.kafka.common.security.{module} required username={user} password={password};"


def _quoted(value: str) -> str:
    # A JAAS value ends at the first quote that is not escaped.
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(path: Any) -> str:
    try:
        return str(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}).") from error


def faust_broker(cluster: Cluster) -> tuple[str, Any]:
    """Faust's broker URL and its credentials (None for PLAINTEXT)."""
    # Imported here: commands that run no worker start faster without Faust.
    import faust

    url = ";".join(f"kafka://{server.strip()}" for server in cluster.bootstrap.split(","))
    security = cluster.security
    context = ssl_context(security)
    if security.protocol.startswith("SASL"):
        return url, faust.SASLCredentials(
            username=security.username,
            password=security.secret(),
            mechanism=security.mechanism,
            ssl_context=context,
        )
    return url, faust.SSLCredentials(context) if context else None


def ssl_context(security: Security) -> ssl.SSLContext | None:
    """The TLS context of a cluster, certificates and host names verified; None without TLS."""
    if not security.protocol.endswith("SSL"):
        return None
    readable(security)
    try:
        # It verifies certificates and host names; a bare SSLContext would verify neither.
        context = ssl.create_default_context(cafile=str(security.ca_file) if security.ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"The file {security.ca_file} of security.ca_file holds no certificate of an authority in PEM ({_reason(error)})."
        ) from error
    if security.cert_file:
        # Not None: OpenSSL would ask for a password at the terminal.
        password = security.key_password.get_secret_value() if security.key_password else ""
        try:
            context.load_cert_chain(str(security.cert_file), security.key_file, password)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"The files of security.cert_file and key_file cannot be used ({_reason(error)}): a certificate and its key in PEM are "
                "expected, and security.key_password where the key has one."
            ) from error
    return context


def _reason(error: OSError) -> str:
    """OpenSSL's words, without the place in its sources."""
    found = getattr(error, "reason", None) or error.strerror or str(error)
    return str(found).replace("_", " ").lower()


def readable(security: Security) -> None:
    """Raises SettingsError that names the file of the settings that is not there or may not be read."""
    for name in ("ca_file", "cert_file", "key_file"):
        path = getattr(security, name)
        if path is None:
            continue
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise SettingsError(
                f"The file {path} of security.{name} cannot be read ({error.strerror})."
            ) from error


def masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """A client configuration as it may be logged."""
    secret = ("password", "jaas", "keystore.key")
    return {name: "***" if any(word in name for word in secret) else value for name, value in config.items()}
