"""Prometheus Alertmanager, API v2: https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml."""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson

from kagent.alert.delivery_log import Delivered, Event
from kagent.alert.sending import Http, facts, iso_time, page_of, summary
from kagent.client.incident_text import number
from kagent.settings.alert_destinations import Alertmanager

ANNOTATIONS = (
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
"""Facts that may change over an incident's life: as labels, each change would make another alert."""


class ToAlertmanager:
    """``POST /api/v2/alerts``. The labels hold over an incident's whole life: they are its identity there."""

    def __init__(
        self, about: Alertmanager, public_url: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.about, self.public_url, self.clock, self.http = about, public_url, clock, Http(about)

    async def send(self, event: Event, delivered: Delivered) -> None:
        """Also used to repeat what is open."""
        rec = delivered.rec
        page_url = page_of(self.public_url, rec)
        values = facts(event, rec, page_url)
        now = self.clock() * 1000
        alert = {
            "labels": {
                **self.about.labels,
                "alertname": "KagentIncident",
                "cluster": values["cluster"],
                "group": values["group"],
                "incident": rec.id,
                # As it was opened: another severity would be another alert, and the first one would stay.
                "severity": delivered.first_severity,
                **({"owner": values["owner"]} if values["owner"] else {}),
            },
            "annotations": {
                "summary": summary(rec),
                "skew": number(rec.skew.now),
                "skew_after": number(rec.skew.after),
                "stale": str(rec.stale).lower(),
                **{name: str(values[name]) for name in ANNOTATIONS if values[name]},
            },
            "startsAt": values["opened_at"],
            # Alertmanager resolves an alert by itself at endsAt, so an open one is repeated before that.
            "endsAt": iso_time(int(now if event == "close" else now + 5000 * self.about.resend)),
            # Alertmanager's page shows it as the alert's source.
            **({"generatorURL": page_url} if page_url else {}),
        }
        url = self.about.url.rstrip("/") + "/api/v2/alerts"
        await self.http.post(url, orjson.dumps([alert]), {"Content-Type": "application/json"})


SENDER = ToAlertmanager
