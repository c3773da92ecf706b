"""Slack, Teams, e-mail and what else apprise reaches: https://github.com/caronc/apprise/wiki."""

from __future__ import annotations

import asyncio
import re

from kagent.alert.delivery_log import Delivered, Event
from kagent.alert.sending import DeliveryFailed, page_of, summary
from kagent.client.incident_text import story
from kagent.contract.recommendation import Recommendation
from kagent.settings.alert_destinations import Apprise, secret
from kagent.text import shown

LONGEST_LINE = 2000
CALLS_OR_HIDES = re.compile(r"@(?=[\w&!])|(?<=\])\(")
"""Discord and Mattermost notify everybody of a text with ``@everyone`` or ``@channel``, also behind a webhook, and show ``[text](address)``
as a link of which the address is not seen. Of apprise's plugins some escape such signs and some do not."""


def harmless(line: str) -> str:
    """The line as a chat may show it: names in it mention no one and hide no address.

    >>> harmless("@everyone [log in](https://example.com)")
    '\\\\x40everyone [log in]\\\\x28https://example.com)'
    """
    return CALLS_OR_HIDES.sub(lambda sign: f"\\x{ord(sign[0]):02x}", shown(line, LONGEST_LINE))


class ToApprise:
    """Plain text through apprise, in a thread: its plugins block."""

    def __init__(self, about: Apprise, public_url: str | None = None) -> None:
        self.about, self.public_url = about, public_url

    async def send(self, event: Event, delivered: Delivered) -> None:
        """Raises DeliveryFailed; apprise reports only success or failure."""
        async with asyncio.timeout(6 * self.about.timeout):
            await asyncio.to_thread(self._send, event, delivered.rec)

    def _send(self, event: Event, rec: Recommendation) -> None:
        import apprise

        service = apprise.Apprise()
        if not service.add(secret(self.about.url, self.about.url_file) or ""):
            raise DeliveryFailed("apprise does not know its URL")
        # apprise takes verify=no in a URL: https://github.com/caronc/apprise/wiki/URLBasics
        if not all(target.verify_certificate for target in service):
            raise DeliveryFailed("its URL switches the verification of certificates off")
        kinds = {"open": apprise.NotifyType.WARNING, "change": apprise.NotifyType.INFO}
        kind = kinds.get(event, apprise.NotifyType.SUCCESS)
        page_url = page_of(self.public_url, rec)
        lines = "\n".join(harmless(line) for line in [*story(rec), *([page_url] if page_url else [])])
        title = harmless(f"{event.upper()} {summary(rec)}")
        if not service.notify(
            title=title, body=lines, notify_type=kind, body_format=apprise.NotifyFormat.TEXT
        ):
            raise DeliveryFailed("apprise could not deliver it")


SENDER = ToApprise
