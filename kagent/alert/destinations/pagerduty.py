"""PagerDuty Events v2: https://developer.pagerduty.com/docs/events-api-v2/trigger-events/."""

from __future__ import annotations

from typing import Any

import orjson

from kagent.alert.delivery_log import Delivered, Event
from kagent.alert.sending import Http, facts, incident_key, page_of, summary
from kagent.contract.recommendation import Severity
from kagent.settings.alert_destinations import PagerDuty, secret

SEVERITY = {Severity.PAGE: "critical", Severity.TICKET: "warning", Severity.INFO: "info"}
LONGEST_SUMMARY = 1024
"""PagerDuty refuses a longer one with HTTP 400."""


class ToPagerDuty:
    """Events v2; the incident's id is the dedup key, so a repetition opens nothing twice."""

    def __init__(self, about: PagerDuty, public_url: str | None = None) -> None:
        self.about, self.public_url, self.http = about, public_url, Http(about)

    async def send(self, event: Event, delivered: Delivered) -> None:
        """Trigger, or resolve."""
        rec = delivered.rec
        values = facts(event, rec)
        message: dict[str, Any] = {
            "routing_key": secret(self.about.routing_key, self.about.routing_key_file),
            "event_action": "resolve" if event == "close" else "trigger",
            # At most 255 characters, which names of cluster and group together can exceed: hence a hash.
            "dedup_key": incident_key(rec),
        }
        if event != "close":
            message["client"] = "kagent"
            if page_url := page_of(self.public_url, rec):
                message["client_url"] = page_url
            message["payload"] = {
                "summary": summary(rec)[:LONGEST_SUMMARY],
                "source": values["cluster"],
                "severity": SEVERITY[rec.severity],
                "component": values["group"],
                "class": values["verdict"],
                "timestamp": values["as_of"],
                "custom_details": {n: values[n] for n in ("reason", "action", "how", "stale", "skew_now")},
            }
        await self.http.post(self.about.url, orjson.dumps(message), {"Content-Type": "application/json"})


SENDER = ToPagerDuty
