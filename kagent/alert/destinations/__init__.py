"""One file for each type of destination, named as its settings' ``type``; each has ``SENDER``, the class that delivers to it."""

from __future__ import annotations

from importlib import import_module

from kagent.alert.sending import AlertSender
from kagent.settings.alert_destinations import AnyDestination


def sender(about: AnyDestination, public_url: str | None = None) -> AlertSender:
    """The sender of this destination, which links to the page at ``public_url`` if there is one.

    Raises SettingsError for a template that cannot be used.
    """
    # Imported when it is needed: jinja2 and apprise are large, and most bridges have one kind of destination.
    found: AlertSender = import_module(f"kagent.alert.destinations.{about.type}").SENDER(about, public_url)
    return found
