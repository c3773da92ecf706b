"""The settings of every destination of ``kagent alert``, and which incidents each one receives."""

from __future__ import annotations

import ipaddress
import logging
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from kagent.contract.recommendation import SEVERITY_RANK, Recommendation, Severity, Verdict
from kagent.duration_fields import Seconds
from kagent.errors import SettingsError
from kagent.group_pattern import GroupPattern, matches
from kagent.settings.strict import Text, in_home

Scope = Literal["group", "topic", "broker", "cluster"]


def checked_url(url: str, insecure: bool = False) -> str:
    """The URL, if it is http(s) with a host; plain http only to this machine or with ``insecure``. Raises ValueError.

    The message never repeats the URL: it may hold a token.
    """
    try:
        parts = urlsplit(url)
        # `port` raises ValueError where it is no number: so it is read within the try.
        whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or parts.scheme not in ("http", "https") or not url.isprintable() or " " in url:
        raise ValueError(
            "url must be an http:// or https:// address with a host, such as https://alerts.example/hook"
        )
    # A webhook's URL and PagerDuty's key are secrets: sent in plain, anyone on the way can read them.
    if parts.scheme == "http" and not insecure and not is_local(parts.hostname):
        raise ValueError("a url with plain http is readable on its way: use https, or set insecure: true")
    return url


def is_local(host: str | None) -> bool:
    """Whether this is an address of this machine that no other one reaches."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


class StrictModel(BaseModel):
    """A name that does not exist is an error, not ignored."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    @field_validator("*")
    @classmethod
    def _home(cls, value: Any) -> Any:
        return in_home(value)


class Wants(StrictModel):
    """Which incidents a destination gets; patterns are globs or /regular expressions/."""

    severity: Severity = Field(Severity.TICKET, description="Nothing below this is sent.")
    verdicts: list[Verdict] = Field(
        default_factory=list, description="Only these verdicts; if none is named, all."
    )
    groups: list[GroupPattern] = Field(
        default_factory=list, description="Only groups that match; if none is named, all."
    )
    clusters: list[GroupPattern] = Field(
        default_factory=list, description="Only these clusters; if none is named, all."
    )
    scopes: list[Scope] = Field(
        default_factory=list,
        description="Only messages about one `group`, or about what many groups have in common (`topic`, `broker`, `cluster`); if none is named, all.",
    )

    def takes(self, rec: Recommendation) -> bool:
        """Whether this incident, as it stands, is wanted."""
        return (
            SEVERITY_RANK[rec.severity] <= SEVERITY_RANK[self.severity]
            and (not self.verdicts or rec.verdict in self.verdicts)
            and (not self.groups or any(matches(p, rec.group) for p in self.groups))
            and (not self.scopes or rec.scope in self.scopes)
            and (not self.clusters or any(matches(p, rec.cluster) for p in self.clusters))
        )


class Destination(StrictModel):
    """What every destination has. A secret is given as such (by a variable) or as a file that holds it."""

    only: Wants = Wants()
    timeout: Seconds = Field(10.0, gt=0, description="One attempt takes at most this long.")
    retry_most: Seconds = Field(60.0, gt=0, description="The maximum pause between two attempts.")

    @property
    def repeats_after_s(self) -> float | None:
        """After how many seconds an open incident is sent again; None where the receiver remembers it."""
        return None


class HttpDestination(Destination):
    """One that is reached by HTTP; its certificate is verified."""

    ca_file: Path | None = Field(
        None, description="PEM of its authority, if this machine does not trust it already."
    )


class Alertmanager(HttpDestination):
    """Prometheus Alertmanager, API v2."""

    type: Literal["alertmanager"] = Field(description="The kind of destination.")
    url: str = Field(description="Its address, without /api/v2.")
    resend: Seconds = Field(60.0, gt=0, description="Time between repetitions while open.")
    labels: dict[str, Text] = Field(default_factory=dict, description="Added to every alert.")
    insecure: bool = Field(False, description="Allow plain http to another machine.")

    @property
    def repeats_after_s(self) -> float:
        """It ends an alert by itself that is not sent again."""
        return self.resend

    @model_validator(mode="after")
    def _url(self) -> Alertmanager:
        checked_url(self.url, self.insecure)
        if re.search(r"/api(/v\d+)?(/alerts)?/?$", urlsplit(self.url).path):
            raise ValueError("url must be the address without /api/v2, which is added")
        if "#" in self.url:
            raise ValueError(
                "url must be the address without # and what follows, which is a view of its page"
            )
        return self


class PagerDuty(HttpDestination):
    """PagerDuty Events v2."""

    type: Literal["pagerduty"] = Field(description="The kind of destination.")
    routing_key: SecretStr | None = Field(None, description="The integration key of the service.")
    routing_key_file: Path | None = Field(None, description="A file that holds it.")
    url: str = Field("https://events.pagerduty.com/v2/enqueue", description="Where events are sent.")

    @model_validator(mode="after")
    def _whole(self) -> PagerDuty:
        checked_url(self.url)
        _one_of(self.routing_key, self.routing_key_file, "routing_key")
        return self


class Webhook(HttpDestination):
    """Any HTTP receiver."""

    type: Literal["webhook"] = Field(description="The kind of destination.")
    url: SecretStr | None = Field(
        None, description="Where the body is posted; a secret, as it may hold a token."
    )
    url_file: Path | None = Field(None, description="A file that holds it.")
    template: str | None = Field(None, description="Jinja2; without one, JSON of the most important fields.")
    content_type: str = Field("application/json", description="Of the body.")
    secret: SecretStr | None = Field(None, description="Signs the body (HMAC-SHA256).")
    secret_file: Path | None = Field(None, description="A file that holds it.")
    insecure: bool = Field(False, description="Allow plain http to another machine.")

    @model_validator(mode="after")
    def _whole(self) -> Webhook:
        _one_of(self.url, self.url_file, "url")
        if self.url:
            checked_url(self.url.get_secret_value(), self.insecure)
        return self

    @field_validator("content_type")
    @classmethod
    def _media_type(cls, content_type: str) -> str:
        if not re.match(r"[\w.+-]+/[\w.+-]+", content_type):
            raise ValueError(f"must be a media type, such as application/json, not {content_type!r}")
        return content_type

    @field_validator("template")
    @classmethod
    def _parsed(cls, template: str | None) -> str | None:
        from kagent.settings.webhook_template import checked_template

        return None if template is None else checked_template(template)


class Apprise(Destination):
    """Slack, Teams, e-mail and what else apprise reaches."""

    type: Literal["apprise"] = Field(description="The kind of destination.")
    url: SecretStr | None = Field(None, description="As apprise has it, such as slack://…; a secret.")
    url_file: Path | None = Field(None, description="A file that holds it.")

    @model_validator(mode="after")
    def _whole(self) -> Apprise:
        _one_of(self.url, self.url_file, "url")
        if self.url:
            _checked_service(self.url.get_secret_value())
        return self


def _checked_service(url: str) -> None:
    """Raises ValueError for a URL that apprise cannot use. It is a secret: the message repeats no more than the service."""
    service = re.match(r"([A-Za-z0-9]+)://", url)
    if service is None:
        raise ValueError("url must begin with the service and ://, such as slack:// or mailto://")
    # Here, not above: few have such a destination, every command reads the settings, and this takes a fifth of a second.
    from apprise import Apprise as Services

    log = logging.getLogger("apprise")
    before, log.disabled = log.disabled, True  # it would log the URL
    try:
        is_whole = Services.instantiate(url) is not None
    finally:
        log.disabled = before
    if is_whole:
        return
    known = services()
    if service[1].lower() in ("http", "https"):
        raise ValueError(
            f"apprise knows no complete address in this {service[1]}:// url; write the service, such as slack://…, "
            "or type: webhook for any HTTP receiver"
        )
    if service[1].lower() in known:
        raise ValueError(
            f"the url of {service[1]}:// is not complete: see https://github.com/caronc/apprise/wiki"
        )
    near = get_close_matches(service[1].lower(), known, 1, 0.6)
    hint = f"; did you mean {near[0]}://?" if near else ""
    raise ValueError(f"apprise knows no service {service[1]}://{hint}")


SERVICES = {"teams": "msteams"}
"""What people call a service, where another one's name has the word too ("Cisco Webex Teams")."""


def services() -> set[str]:
    """What apprise reaches, as its URLs begin."""
    from apprise import Apprise as Services

    return {name for each in Services().details()["schemas"] for name in _schemes(each)}


def schemes_of(service: str) -> list[str]:
    """How apprise's URLs of this service begin, by its name or a word of it: ``mailto`` for ``email``."""
    from apprise import Apprise as Services

    word = _letters(service)
    word = SERVICES.get(word, word)
    named = [(str(each["service_name"]), _schemes(each)) for each in Services().details()["schemas"]]
    for name, schemes in named:
        if word in schemes or word == _letters(name):
            return [word if word in schemes else schemes[0]]
    # `msteams`: a word of "Power Automate / Workflows (for MSTeams)".
    return [
        schemes[0]
        for name, schemes in named
        if len(word) > 3 and any(_letters(each).endswith(word) for each in name.split())
    ]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _schemes(service: dict[str, Any]) -> tuple[str, ...]:
    return (*(service["protocols"] or ()), *(service["secure_protocols"] or ()))


AnyDestination = Annotated[Alertmanager | PagerDuty | Webhook | Apprise, Field(discriminator="type")]
DESTINATIONS: dict[str, type[Destination]] = {
    get_args(model.model_fields["type"].annotation)[0]: model
    for model in get_args(get_args(AnyDestination)[0])
}
"""Type → its settings; the file of that name in ``kagent/alert/destinations`` delivers to it."""


def _destination_name(name: str) -> str:
    # The name leads the keys of the delivery log, up to the first slash.
    if not name or "/" in name or not name.isprintable():
        raise ValueError(f"{name!r} is no name for a destination: it must not hold a slash")
    return name


class AlertSettings(StrictModel):
    """``alert:`` in the settings file."""

    destinations: dict[Annotated[str, AfterValidator(_destination_name)], AnyDestination] = Field(
        default_factory=dict, description="By a name of your choice."
    )


def _one_of(value: SecretStr | None, file: Path | None, name: str) -> None:
    # Both is refused too: which of them holds would be a guess.
    if value is not None and file is not None:
        raise ValueError(f"needs either {name} or {name}_file, not both")
    if value is None and file is None:
        raise ValueError(f"needs {name} or {name}_file")
    if value is not None and not value.get_secret_value():
        raise ValueError(f"{name} is empty")


def secret(value: SecretStr | None, file: Path | None) -> str | None:
    """The secret, from its file if there is one; read anew each time, so that it can be rotated. Raises SettingsError."""
    if file is None:
        return value.get_secret_value() if value else None
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"The file {file} cannot be read ({error.strerror}).") from error
