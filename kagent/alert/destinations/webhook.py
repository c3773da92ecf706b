"""Any HTTP receiver: JSON or the text of a template, signed."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable

import orjson
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from kagent.alert.delivery_log import Delivered, Event
from kagent.alert.sending import DeliveryFailed, DeliveryRefused, Http, facts, incident_key, page_of
from kagent.contract.recommendation import Recommendation
from kagent.errors import SettingsError
from kagent.settings.alert_destinations import Webhook, checked_url, secret


class ToWebhook:
    """The template's text, signed: ``X-Kagent-Signature: t=<unix seconds>,v1=<hex of HMAC-SHA256 over "t.body">``."""

    def __init__(
        self, about: Webhook, public_url: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.about, self.public_url, self.clock, self.http = about, public_url, clock, Http(about)
        html = about.content_type.startswith("text/html")
        # Sandboxed: a template comes from a settings file, its values from names that any client may choose.
        environment = ImmutableSandboxedEnvironment(autoescape=html, undefined=StrictUndefined)
        try:
            self.template = environment.from_string(about.template) if about.template else None
        except TemplateError as error:
            raise SettingsError(f"A webhook's template cannot be used: {error}.") from error

    async def send(self, event: Event, delivered: Delivered) -> None:
        """Idempotent for a receiver that keeps the ``Idempotency-Key``."""
        body = self.body(event, delivered.rec)
        stamp = str(int(self.clock()))
        headers = {
            "Content-Type": self.about.content_type,
            # With event and time: a change is no repetition of the open.
            "Idempotency-Key": incident_key(delivered.rec) + f"-{event}-{delivered.rec.as_of}",
        }
        key = secret(self.about.secret, self.about.secret_file)
        if key:
            headers["X-Kagent-Signature"] = f"t={stamp},v1={signature(key, stamp, body)}"
        url = secret(self.about.url, self.about.url_file) or ""
        try:
            # Here too: a URL from a file is read anew each time and was not seen when the settings were.
            checked_url(url, self.about.insecure)
        except ValueError as error:
            raise DeliveryFailed(f"its URL {error}") from None
        await self.http.post(url, body, headers)

    def body(self, event: Event, rec: Recommendation) -> bytes:
        """What is sent. Raises DeliveryRefused if the template fails."""
        values = facts(event, rec, page_of(self.public_url, rec))
        if self.template is None:
            return orjson.dumps(values)
        try:
            return self.template.render(values).encode()
        except Exception as error:  # a template may raise whatever it likes
            raise DeliveryRefused(f"its template fails: {type(error).__name__}") from None


def signature(key: str, stamp: str, body: bytes) -> str:
    """Hex of HMAC-SHA256 over ``<stamp>.<body>``."""
    # The time is signed with the body, so that a receiver can refuse a repetition of an old request.
    return hmac.new(key.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()


SENDER = ToWebhook
