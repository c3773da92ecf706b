"""What every sender needs: the two ways to fail, the facts and the link of a message, HTTP."""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlencode

import httpx

from kagent import __version__
from kagent.alert.delivery_log import Delivered, Event
from kagent.client.incident_text import number, stale_note
from kagent.contract.recommendation import Recommendation
from kagent.contract.words import VERDICTS
from kagent.errors import SettingsError
from kagent.settings.alert_destinations import HttpDestination
from kagent.text import shown

# Not 401, 403 or 404: a key that is being rotated or a route that is being deployed comes right by itself.
REFUSED = {400, 413, 422}
"""The request itself is at fault: repeating it cannot help."""
OTHER_HOST = {62, 64}
"""OpenSSL's verification codes for a name and for an address that does not match:
https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/."""


class DeliveryRefused(Exception):
    """The destination rejects this message for good."""


class DeliveryFailed(Exception):
    """It did not arrive; it may, later. The text holds no URL and no secret."""


class AlertSender(Protocol):
    """Delivers one event. Raises DeliveryRefused or DeliveryFailed."""

    async def send(self, event: Event, delivered: Delivered) -> None: ...


def page_of(public_url: str | None, rec: Recommendation) -> str | None:
    """The address of the group on the worker's page, None where the page has no public address.

    It has the name as it is shown, which the page finds too: an address stays short and harmless whatever the group is called.
    """
    if not public_url:
        return None
    query = urlencode({"cluster": shown(rec.cluster), "group": shown(rec.group)})
    return f"{public_url.rstrip('/')}/ui/group?{query}"


def facts(event: Event, rec: Recommendation, page_url: str | None = None) -> dict[str, Any]:
    """What a template may name: plain values, names made safe to show."""
    action = rec.applicable_actions[0] if rec.applicable_actions else None
    return {
        "event": event,
        "id": rec.id,
        "cluster": shown(rec.cluster),
        "group": shown(rec.group),
        "status": rec.status.value,
        "verdict": rec.verdict.value,
        "severity": rec.severity.value,
        "confidence": rec.confidence,
        "reason": shown(rec.reason, 2000),
        "skew_now": rec.skew.now,
        "skew_after": rec.skew.after,
        "action": action.type.value if action else "none",
        "how": shown(action.how, 2000) if action else "",
        "stale": rec.stale,
        "resolution": rec.resolution.value if rec.resolution else None,
        "owner": shown(rec.owner) if rec.owner else None,
        "runbook_url": rec.runbook_url,
        "page_url": page_url,
        "labels": {shown(k): shown(v) for k, v in rec.labels.items()},
        "opened_at": iso_time(rec.opened_at),
        "as_of": iso_time(rec.as_of),
    }


def iso_time(ms: int) -> str:
    """ISO 8601 in UTC, of ms since the epoch."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def summary(rec: Recommendation) -> str:
    """One line for a person."""
    skew = f", skew {number(rec.skew.now)}" if rec.skew.now is not None else ""
    stale = stale_note(rec)
    return f"{shown(rec.cluster)}/{shown(rec.group)}: {VERDICTS[rec.verdict].short}{skew}{stale}"


def incident_key(rec: Recommendation) -> str:
    """Same for all messages of one incident, and of a fixed length: receivers use it to recognise a repetition."""
    # Without the time: a retry, or a repetition after a restart, has the same key.
    return "kagent-" + hashlib.sha256(f"{rec.cluster}/{rec.group}/{rec.id}".encode()).hexdigest()


class Http:
    """Posts; TLS is verified, redirects are not followed, nothing of the URL reaches an error's text."""

    def __init__(self, about: HttpDestination) -> None:
        # Made once: loading the system's authorities takes tens of milliseconds.
        self.timeout, self.tls = about.timeout, ssl.create_default_context()
        if about.ca_file:
            try:
                self.tls.load_verify_locations(about.ca_file)
            except OSError as error:  # ssl's errors too
                raise SettingsError(
                    f"The file {about.ca_file} cannot be used as authority ({error})."
                ) from error

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Raises DeliveryRefused or DeliveryFailed."""
        try:
            async with httpx.AsyncClient(timeout=self.timeout, verify=self.tls) as client:
                answer = await client.post(
                    url, content=body, headers={"User-Agent": f"kagent/{__version__}", **headers}
                )
        # Of a header with letters that HTTP does not allow, httpx raises UnicodeEncodeError.
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            # httpx's text holds the URL, and a webhook's URL is often its secret.
            raise DeliveryFailed(_why(error)) from None
        if answer.status_code in REFUSED:
            raise DeliveryRefused(f"HTTP {answer.status_code}")
        if not answer.is_success:
            raise DeliveryFailed(f"HTTP {answer.status_code}")


def _why(error: BaseException) -> str:
    """What went wrong on the way, without the URL."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            if cause.verify_code in OTHER_HOST:
                return "its certificate is for another host"
            return "its certificate is signed by no authority that this machine trusts; name that authority in ca_file"
        if isinstance(cause, socket.gaierror):
            return "the name of its host is not known"
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens at its address (connection refused)"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    return "it cannot be reached" if isinstance(error, httpx.ConnectError) else type(error).__name__
