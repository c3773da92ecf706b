"""One sender per kind of destination: an open, a change or a close becomes a request. Retrying is not done here."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlencode

import httpx
import orjson
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kagent import __version__
from kagent.alert.delivery_log import Event, Told
from kagent.alert.destinations import (
    Alertmanager,
    Apprise,
    Destination,
    HttpDestination,
    PagerDuty,
    Webhook,
    checked_url,
    secret,
)
from kagent.client.incident_text import number, story
from kagent.contract.recommendation import Recommendation, Severity
from kagent.errors import SettingsError
from kagent.text import shown

REFUSED = {400, 413, 422}
"""The request itself is at fault: repeating it cannot help."""
OTHER_HOST = {62, 64}
"""OpenSSL's verification codes for a name and for an address that does not match."""
PAGERDUTY = {Severity.PAGE: "critical", Severity.TICKET: "warning", Severity.INFO: "info"}


class Refused(Exception):
    """The destination will never take this message."""


class Failed(Exception):
    """It did not arrive; it may, later. The text holds no URL and no secret."""


class Sender(Protocol):
    """Delivers one event. Raises Refused or Failed."""

    async def send(self, event: Event, told: Told) -> None: ...


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
    action = rec.actions[0] if rec.actions else None
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
        "opened_at": _iso(rec.opened_at),
        "as_of": _iso(rec.as_of),
    }


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def summary(rec: Recommendation) -> str:
    """One line for a person."""
    skew = f", skew {number(rec.skew.now)}" if rec.skew.now is not None else ""
    stale = " (stale: kagent is blind here)" if rec.stale else ""
    return f"{shown(rec.cluster)}/{shown(rec.group)}: {rec.verdict.value}{skew}{stale}"


class Http:
    """Posts; TLS is verified, redirects are not followed, nothing of the URL reaches an error's text."""

    def __init__(self, about: HttpDestination) -> None:
        self.timeout, self.tls = about.timeout, ssl.create_default_context()
        if about.ca_file:
            try:
                self.tls.load_verify_locations(about.ca_file)
            except OSError as error:  # ssl's errors too
                raise SettingsError(
                    f"The file {about.ca_file} cannot be used as authority ({error})."
                ) from error

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Raises Refused or Failed."""
        try:
            async with httpx.AsyncClient(timeout=self.timeout, verify=self.tls) as client:
                answer = await client.post(
                    url, content=body, headers={"User-Agent": f"kagent/{__version__}", **headers}
                )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Failed(_why(error)) from None
        if answer.status_code in REFUSED:
            raise Refused(f"HTTP {answer.status_code}")
        if not answer.is_success:
            raise Failed(f"HTTP {answer.status_code}")


def _why(error: BaseException) -> str:
    """What went wrong on the way, without the URL."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            if cause.verify_code in OTHER_HOST:
                return "its certificate is for another host"
            return "its certificate is not signed by anybody trusted here; if it should be, name the authority as ca_file"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


class ToAlertmanager:
    """``POST /api/v2/alerts``. The labels hold over an incident's whole life: they are its identity there."""

    def __init__(
        self, about: Alertmanager, public_url: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.about, self.public_url, self.clock, self.http = about, public_url, clock, Http(about)

    async def send(self, event: Event, told: Told) -> None:
        """Also used to repeat what is open."""
        rec = told.rec
        page_url = page_of(self.public_url, rec)
        said = facts(event, rec, page_url)
        now = self.clock() * 1000
        texts = (
            "reason",
            "verdict",
            "severity",
            "action",
            "how",
            "status",
            "resolution",
            "runbook_url",
            "page_url",
            "as_of",
        )
        alert = {
            "labels": {
                **self.about.labels,
                "alertname": "KagentIncident",
                "cluster": said["cluster"],
                "group": said["group"],
                "incident": rec.id,
                "severity": told.first_severity,
                **({"owner": said["owner"]} if said["owner"] else {}),
            },
            "annotations": {
                "summary": summary(rec),
                "skew": number(rec.skew.now),
                "skew_after": number(rec.skew.after),
                "stale": str(rec.stale).lower(),
                **{name: str(said[name]) for name in texts if said[name]},
            },
            "startsAt": said["opened_at"],
            "endsAt": _iso(int(now if event == "close" else now + 5000 * self.about.resend)),
            **({"generatorURL": page_url} if page_url else {}),
        }
        url = self.about.url.rstrip("/") + "/api/v2/alerts"
        await self.http.post(url, orjson.dumps([alert]), {"Content-Type": "application/json"})


class ToPagerDuty:
    """Events v2; the incident's id is the dedup key, so a repetition opens nothing twice."""

    def __init__(self, about: PagerDuty, public_url: str | None = None) -> None:
        self.about, self.public_url, self.http = about, public_url, Http(about)

    async def send(self, event: Event, told: Told) -> None:
        """Trigger, or resolve."""
        rec = told.rec
        said = facts(event, rec)
        message: dict[str, Any] = {
            "routing_key": secret(self.about.routing_key, self.about.routing_key_file),
            "event_action": "resolve" if event == "close" else "trigger",
            "dedup_key": _dedup(rec),
        }
        if event != "close":
            message["client"] = "kagent"
            if page_url := page_of(self.public_url, rec):
                message["client_url"] = page_url
            message["payload"] = {
                "summary": summary(rec)[:1024],
                "source": said["cluster"],
                "severity": PAGERDUTY[rec.severity],
                "component": said["group"],
                "class": said["verdict"],
                "timestamp": said["as_of"],
                "custom_details": {n: said[n] for n in ("reason", "action", "how", "stale", "skew_now")},
            }
        await self.http.post(self.about.url, orjson.dumps(message), {"Content-Type": "application/json"})


def _dedup(rec: Recommendation) -> str:
    return "kagent-" + hashlib.sha256(f"{rec.cluster}/{rec.group}/{rec.id}".encode()).hexdigest()


class ToWebhook:
    """The template's text, signed: ``X-Kagent-Signature: t=<unix seconds>,v1=<hex of HMAC-SHA256 over "t.body">``."""

    def __init__(
        self, about: Webhook, public_url: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.about, self.public_url, self.clock, self.http = about, public_url, clock, Http(about)
        html = about.content_type.startswith("text/html")
        environment = ImmutableSandboxedEnvironment(autoescape=html, undefined=StrictUndefined)
        try:
            self.template = environment.from_string(about.template) if about.template else None
        except TemplateError as error:
            raise SettingsError(f"A webhook's template cannot be used: {error}.") from error

    async def send(self, event: Event, told: Told) -> None:
        """Idempotent for a receiver that keeps the ``Idempotency-Key``."""
        body = self.body(event, told.rec)
        stamp = str(int(self.clock()))
        headers = {
            "Content-Type": self.about.content_type,
            "Idempotency-Key": _dedup(told.rec) + f"-{event}-{told.rec.as_of}",
        }
        key = secret(self.about.secret, self.about.secret_file)
        if key:
            headers["X-Kagent-Signature"] = f"t={stamp},v1={signature(key, stamp, body)}"
        url = secret(self.about.url, self.about.url_file) or ""
        try:
            checked_url(url, self.about.insecure)
        except ValueError as error:
            raise Failed(f"its URL {error}") from None
        await self.http.post(url, body, headers)

    def body(self, event: Event, rec: Recommendation) -> bytes:
        """What is sent. Raises Refused if the template fails."""
        said = facts(event, rec, page_of(self.public_url, rec))
        if self.template is None:
            return orjson.dumps(said)
        try:
            return self.template.render(said).encode()
        except Exception as error:  # a template may raise whatever it likes
            raise Refused(f"its template fails: {type(error).__name__}") from None


def signature(key: str, stamp: str, body: bytes) -> str:
    """Hex of HMAC-SHA256 over ``<stamp>.<body>``."""
    return hmac.new(key.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()


class ToApprise:
    """Plain text through apprise, in a thread: its plugins block."""

    def __init__(self, about: Apprise, public_url: str | None = None) -> None:
        self.about, self.public_url = about, public_url

    async def send(self, event: Event, told: Told) -> None:
        """apprise tells success from failure, and no more."""
        async with asyncio.timeout(6 * self.about.timeout):
            await asyncio.to_thread(self._send, event, told.rec)

    def _send(self, event: Event, rec: Recommendation) -> None:
        import apprise

        service = apprise.Apprise()
        if not service.add(secret(self.about.url, self.about.url_file) or ""):
            raise Failed("apprise does not know its URL")
        if not all(target.verify_certificate for target in service):
            raise Failed("its URL switches the verification of certificates off")
        kinds = {"open": apprise.NotifyType.WARNING, "change": apprise.NotifyType.INFO}
        kind = kinds.get(event, apprise.NotifyType.SUCCESS)
        page_url = page_of(self.public_url, rec)
        lines = "\n".join(shown(line, 2000) for line in [*story(rec), *([page_url] if page_url else [])])
        title = f"{event.upper()} {summary(rec)}"
        if not service.notify(
            title=title, body=lines, notify_type=kind, body_format=apprise.NotifyFormat.TEXT
        ):
            raise Failed("apprise could not deliver it")


def sender(about: Destination, public_url: str | None = None) -> Sender:
    """The sender of this destination, which links to the page at ``public_url`` if there is one.

    Raises SettingsError for a template that cannot be used.
    """
    match about:
        case Alertmanager():
            return ToAlertmanager(about, public_url)
        case PagerDuty():
            return ToPagerDuty(about, public_url)
        case Webhook():
            return ToWebhook(about, public_url)
        case Apprise():
            return ToApprise(about, public_url)
    raise AssertionError(about)
