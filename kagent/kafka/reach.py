"""Why a cluster does not talk to us: asked by one plain connection, as clients tell of it late or in words of OpenSSL.

Only what waiting cannot mend is an error here: a certificate that is not believed, TLS to a plaintext port or the other way
round. A broker that is away is left to the client, which tries again.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import closing

from kagent.errors import KafkaError, Misconfigured
from kagent.kafka import names
from kagent.kafka.clients import ssl_context
from kagent.kafka.names import connected
from kagent.settings import Cluster

CONNECT_WITHIN_S = 3.0
ANSWER_WITHIN_S = 3.0
AGAIN_AFTER_S = 1.0
EXPIRED, NOT_YET_VALID, OTHER_NAME, OTHER_ADDRESS = 10, 9, 62, 64
"""``X509_V_ERR_…`` of OpenSSL; any other is an authority that is not known."""
TLS_ALERT, TLS_HANDSHAKE = 0x15, 0x16
KAFKA = b"\0"
"""The first byte of an answer: it begins with its size in four bytes, which is less than 16 MB."""
SPEAKS_TLS = "speaks TLS, and the settings say plaintext: set security.protocol to SSL or SASL_SSL"
NO_TLS = "does not speak TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use its TLS port"
NO_KAFKA = "does not speak Kafka's protocol, so it is no broker: check host and port"
# Brokers give the correlation id back, whatever it is. An HTTP server would wait for the end of a line, and this is two of them.
CORRELATION_ID = b"\r\n\r\n"
# Size, API key 18, version 0, correlation id, then the client id as a length and its bytes.
API_VERSIONS = struct.pack(">ihh4sh6s", 16, 18, 0, CORRELATION_ID, 6, b"kagent")
"""``ApiVersionsRequest`` version 0, the one request that every broker answers before a login."""


class LoginRefused(Misconfigured):
    """The cluster is there and does not believe the user or the password."""


def check(cluster: Cluster) -> bool:
    """Whether a broker of the address speaks as the settings say; False if none can be reached. Raises Misconfigured with a
    sentence if those that are reached do not, SettingsError if a file of the settings cannot be used."""
    context = ssl_context(cluster.security)
    wrong: list[str] = []
    for host, port in addresses(cluster.bootstrap):
        try:
            with closing(connected(host, port, CONNECT_WITHIN_S)) as connection:
                connection.settimeout(ANSWER_WITHIN_S)
                if context is not None:
                    trouble = _encrypted(connection, context, host, port)
                else:
                    trouble = _in_plaintext(connection, host, port)
        except OSError:
            continue
        if trouble is None:
            return True
        wrong.append(f"The server at {host}:{port} {trouble}.")
    if wrong:
        # One broker that fits is enough, as clients go on to the next; only if all are wrong are the settings wrong.
        raise Misconfigured(wrong[0])
    return False


def refuse_absent(bootstrap: str) -> None:
    """Raise KafkaError at once if every address refuses the connection or has no host: for a person who typed one and waits.

    One that only does not answer in time is left to the client, as a broker may come; so is all to a service, which outlives its
    brokers' restarts.
    """
    knocks = [*_knocks(bootstrap, CONNECT_WITHIN_S)]
    if knocks and all(isinstance(each, ConnectionRefusedError | socket.gaierror) for each in knocks):
        raise KafkaError(unreachable(bootstrap))


def listens(bootstrap: str, within_s: float) -> bool:
    """Whether some address takes a connection; each is given so long."""
    return None in _knocks(bootstrap, within_s)


def _knocks(bootstrap: str, within_s: float) -> Iterator[OSError | None]:
    """What a connection to each address comes to, one after the other, up to the first that is taken: None."""
    for host, port in addresses(bootstrap):
        try:
            connected(host, port, within_s).close()
        except OSError as error:
            yield error
        else:
            yield None
            return


def unreachable(bootstrap: str) -> str:
    """The sentence for a cluster of which no broker can be reached."""
    return f"The cluster at {bootstrap} cannot be reached: {advice(bootstrap)}."


def addresses(bootstrap: str) -> Iterator[tuple[str, int]]:
    """Host and port of each server in ``bootstrap``."""
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        if host and port.isdigit():
            # An IPv6 address stands in brackets before its port (RFC 3986).
            yield host.strip("[]"), int(port)


def advice(bootstrap: str) -> str:
    """What to look at where no broker of the address can be reached."""
    unnamed = names.lacking(host for host, _ in addresses(bootstrap))
    return (
        f"{unnamed}: check it and the name server"
        if unnamed
        else "check the address and that a broker listens"
    )


def _in_plaintext(connection: socket.socket, host: str, port: int) -> str | None:
    """What is wrong where the settings say plaintext."""
    try:
        first = _first_byte(connection)
    except TimeoutError:
        return None  # slow, perhaps: the client waits longer
    except ConnectionError:
        first = b""
    if first == KAFKA:
        return None
    if not first or first[0] in (TLS_ALERT, TLS_HANDSHAKE):
        return SPEAKS_TLS if _speaks_tls(host, port) else None
    return NO_KAFKA


def _first_byte(connection: socket.socket) -> bytes:
    """Of the answer to a plaintext request."""
    connection.sendall(API_VERSIONS)
    return connection.recv(1)


def _is_plaintext(first: bytes) -> bool:
    # A TLS server answers plaintext with an alert.
    return bool(first) and first[0] not in (TLS_ALERT, TLS_HANDSHAKE)


def _speaks_plaintext(host: str, port: int) -> bool:
    """Whether a plaintext request has an answer."""
    try:
        with closing(connected(host, port, CONNECT_WITHIN_S)) as connection:
            connection.settimeout(ANSWER_WITHIN_S)
            return _is_plaintext(_first_byte(connection))
    except OSError:
        return False


def _speaks_tls(host: str, port: int) -> bool:
    """Whether a handshake comes about; what its certificate says does not matter here, nothing is sent."""
    # Without verification: this only asks whether the port speaks TLS, and sends nothing.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            closing(connected(host, port, CONNECT_WITHIN_S)) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except OSError:
        return False


def _encrypted(connection: socket.socket, context: ssl.SSLContext, host: str, port: int) -> str | None:
    try:
        return _handshake(connection, context, host)
    # A broker that starts, stops or has much to do ends or delays handshakes too; only one that answers in plaintext surely speaks it.
    except TimeoutError:
        return NO_TLS if _speaks_plaintext(host, port) else None
    except _Ended as first:
        if _speaks_plaintext(host, port):
            return NO_TLS
        time.sleep(AGAIN_AFTER_S)
        try:
            with closing(connected(host, port, CONNECT_WITHIN_S)) as another:
                another.settimeout(ANSWER_WITHIN_S)
                return _handshake(another, context, host)
        except _Ended:
            return str(first)
        except TimeoutError:
            return None


class _Ended(Exception):
    """The other side ended the handshake without a word."""


def _handshake(connection: socket.socket, context: ssl.SSLContext, host: str) -> str | None:
    """What is wrong with it. Raises TimeoutError, _Ended."""
    try:
        with context.wrap_socket(connection, server_hostname=host):
            return None
    except ssl.SSLCertVerificationError as error:
        return _certificate(error, host)
    except (ConnectionError, ssl.SSLEOFError) as error:
        raise _Ended(
            "ends the TLS handshake: it probably speaks plaintext, or wants a client certificate (security.cert_file)"
        ) from error
    except ssl.SSLError as error:
        if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return NO_TLS
        return f"refuses the TLS handshake ({error.reason or error}): check security in the settings"


def _certificate(error: ssl.SSLCertVerificationError, host: str) -> str:
    if error.verify_code in (EXPIRED, NOT_YET_VALID):
        return f"has a certificate that is not valid now ({error.verify_message}): have it renewed"
    if error.verify_code in (OTHER_NAME, OTHER_ADDRESS):
        return f"has a certificate for another name than {host}: use a name that is in it"
    return f"has a certificate of an authority that is not known ({error.verify_message}): set security.ca_file to the authority's PEM"
