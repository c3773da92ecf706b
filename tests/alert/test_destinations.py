"""What a destination wants, what its settings may be, and what leaves for it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from kagent.alert.bridge import DestinationState
from kagent.alert.delivery_log import Delivered
from kagent.alert.destinations import sender
from kagent.alert.destinations.webhook import ToWebhook
from kagent.alert.sending import DeliveryFailed, DeliveryRefused, facts
from kagent.errors import SettingsError
from kagent.reference_pages import DOCS
from kagent.settings import load
from kagent.settings.alert_destinations import DESTINATIONS, AlertSettings, HttpDestination, Wants
from kagent.settings.webhook_template import FIELDS
from kagent.text import shown

EVIL = "<script>alert(1)</script>\x1b[2J"


def destination(**said: Any) -> Any:
    return AlertSettings.model_validate({"destinations": {"x": said}}).destinations["x"]


@pytest.mark.parametrize(
    ("wants", "taken"),
    [
        ({}, ["ticket", "page"]),
        ({"severity": "info"}, ["info", "ticket", "page"]),
        ({"severity": "page"}, ["page"]),
        ({"groups": ["ord*"]}, ["ticket", "page"]),
        ({"groups": ["/pay.*/"]}, []),
        ({"verdicts": ["stalled"]}, []),
        ({"clusters": ["main"]}, ["ticket", "page"]),
        ({"clusters": ["other"]}, []),
        ({"scopes": ["group"]}, ["ticket", "page"]),
        ({"scopes": ["topic", "broker", "cluster"]}, []),
    ],
)
def test_filters(rec: Any, wants: dict[str, Any], taken: list[str]) -> None:
    about = Wants.model_validate(wants)

    assert [s for s in ("info", "ticket", "page") if about.takes(rec(severity=s))] == taken


def test_a_destination_may_take_only_what_many_groups_have_in_common(rec: Any) -> None:
    about = Wants.model_validate({"scopes": ["topic", "broker", "cluster"]})
    common = rec(severity="ticket").model_copy(update={"scope": "broker"})

    assert about.takes(common)
    assert not Wants.model_validate({"scopes": ["group"]}).takes(common)


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        {"type": "webhook", "url": "http://example.com/TOKEN"},
        {"type": "webhook", "url": "ftp://example.com/TOKEN"},
        {"type": "webhook", "url": "https:///TOKEN"},
        {"type": "webhook", "url": "https://example.com:99999/TOKEN"},
        {"type": "webhook", "url": "https://[::1/TOKEN"},
        {"type": "webhook", "url": "https://example.com/TOKEN\r\nX-Other: 1"},
        {"type": "webhook", "url": "file:///etc/TOKEN"},
        {"type": "webhook"},
        {"type": "alertmanager", "url": "alertmanager:9093/TOKEN"},
        {"type": "pagerduty"},
        {"type": "apprise", "url": "json://TOKEN", "url_file": "TOKEN"},
        {"type": "fax"},
    ],
)
def test_wrong_destinations_are_refused_without_their_secrets(said: dict[str, Any], tmp_path: Path) -> None:
    config = tmp_path / "kagent.yaml"
    config.write_text(orjson.dumps({"alert": {"destinations": {"x": said}}}).decode())

    with pytest.raises(SettingsError) as error:
        load(config)

    assert "alert.destinations.x" in str(error.value)
    assert "TOKEN" not in str(error.value)


def test_secrets_are_masked_and_may_come_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGENT_ALERT__DESTINATIONS__PD__TYPE", "pagerduty")
    monkeypatch.setenv("KAGENT_ALERT__DESTINATIONS__PD__ROUTING_KEY", "R0UTING")

    settings = load()

    assert settings.alert.destinations["PD".lower()].type == "pagerduty"
    assert "R0UTING" not in settings.model_dump_json()
    assert "R0UTING" not in repr(settings)


def test_a_desk_opens_changes_and_closes_once(rec: Any) -> None:
    desk = DestinationState(Wants())

    def told(message: Any) -> list[str]:
        found = desk.events("k", message)
        for _, said in found:
            desk.delivered["k"] = Delivered.of(said, desk.delivered.get("k"))
        return [event for event, _ in found]

    opened, changed = rec(at=1), rec(at=2, status="updated", verdict="slow_member")
    closed = rec(at=3, status="resolved")
    assert [told(m) for m in (opened, opened, changed, opened, changed)] == [["open"], [], ["change"], [], []]
    assert [told(m) for m in (closed, closed, opened, None)] == [["close"], [], [], []]
    assert told(rec(at=9, id="other")) == ["open"]
    assert told(rec(at=10, id="third")) == ["close", "open"]
    assert told(None) == ["close"]


def test_a_desk_ignores_what_a_worker_wrote_after_it_had_lost_the_group(rec: Any) -> None:
    desk = DestinationState(Wants())
    owner = rec(at=2, status="updated", revision=3)
    desk.delivered["k"] = Delivered.of(owner, None)

    assert desk.events("k", rec(at=5, status="resolved", revision=2)) == []
    assert desk.events("k", rec(at=5, id="second", opened_at=owner.opened_at - 1, revision=9)) == []
    assert [event for event, _ in desk.events("k", rec(at=5, status="resolved", revision=4))] == ["close"]


def test_an_incident_opens_when_it_becomes_worth_it_and_closes_whatever_it_has_become(rec: Any) -> None:
    desk = DestinationState(Wants())
    assert desk.events("k", rec(severity="info")) == []

    (opened,) = desk.events("k", rec(severity="page", status="updated", at=2))
    assert opened[0] == "open"
    desk.delivered["k"] = Delivered.of(opened[1], None)

    (changed,) = desk.events("k", rec(severity="info", status="updated", at=3))
    assert changed[0] == "change"
    desk.delivered["k"] = Delivered.of(changed[1], desk.delivered["k"])
    assert desk.delivered["k"].first_severity == "page"
    assert [e for e, _ in desk.events("k", rec(severity="info", status="resolved", at=4))] == ["close"]


def test_a_webhook_is_signed_and_sends_only_what_its_template_names(receiver: Any, rec: Any) -> None:
    template = '{"text": {{ group | tojson }}}'
    about = destination(type="webhook", url=receiver.url, secret="key", template=template)

    asyncio.run(sender(about).send("open", Delivered.of(rec(EVIL), None)))

    headers, body = receiver.received[0]
    stamp, found = (part.split("=")[1] for part in headers["X-Kagent-Signature"].split(","))
    assert found == hmac.new(b"key", f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert orjson.loads(body) == {"text": "<script>alert(1)</script>\\x1b[2J"}
    assert b"<script>" not in body


LEAST: dict[str, dict[str, str]] = {"alertmanager": {}, "pagerduty": {"routing_key": "R"}, "webhook": {}}
"""Type → what its settings need beside a URL, for every destination that is asked over HTTP."""
PAGE_FIELD = {"alertmanager": "generatorURL", "pagerduty": "client_url", "webhook": "page_url"}


def test_what_holds_for_destinations_is_tried_with_each_of_them() -> None:
    over_http = {kind for kind, model in DESTINATIONS.items() if issubclass(model, HttpDestination)}

    assert set(LEAST) == set(PAGE_FIELD) == over_http


@pytest.mark.parametrize("kind", DESTINATIONS)
def test_the_page_shows_how_each_is_set(kind: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "alerting.md"

    assert f"type: {kind}" in page.read_text(encoding="utf-8")


HOSTILE = [
    "<script>alert(1)</script>",
    "x\x1b[2J\x1b]0;owned\x07",
    "n" * 32_000,
    '"}{',
    "{{ 7 * 7 }}",
    "a\nb",
    "\u202etxt",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", LEAST)
def test_a_name_is_data_wherever_it_is_sent(receiver: Any, rec: Any, kind: str, name: str) -> None:
    said = rec(name, id="1", reason=f"{name} is behind.", owner=name, labels={name: name})

    asyncio.run(
        sender(destination(type=kind, url=receiver.url, **LEAST[kind])).send("open", Delivered.of(said, None))
    )

    ((_, body),) = receiver.received

    def texts(node: Any) -> list[str]:
        if isinstance(node, dict):
            return [t for k, v in node.items() for t in [k, *texts(v)]]
        return (
            [t for v in node for t in texts(v)]
            if isinstance(node, list)
            else [node]
            if isinstance(node, str)
            else []
        )

    found = texts(orjson.loads(body))
    assert any(shown(name) in text for text in found)
    assert all(text.isprintable() for text in found)
    assert max(map(len, found)) <= 2_300
    assert "49" not in {text.strip() for text in found}


@pytest.mark.parametrize(("kind", "field"), PAGE_FIELD.items())
def test_an_alert_links_to_its_group_on_the_page(receiver: Any, rec: Any, kind: str, field: str) -> None:
    about = destination(type=kind, url=receiver.url, **LEAST[kind])
    evil = Delivered.of(rec('a&b="<x>\x1b[2J', id="1"), None)

    asyncio.run(sender(about, "https://ops.example/kagent/").send("open", evil))
    asyncio.run(sender(about).send("open", evil))

    (_, linked), (_, plain) = receiver.received
    alert, without = (
        body[0] if isinstance(body, list) else body for body in map(orjson.loads, (linked, plain))
    )
    address = "https://ops.example/kagent/ui/group?cluster=main&group=a%26b%3D%22%3Cx%3E%5Cx1b%5B2J"
    assert alert[field] == address
    assert without.get(field) is None


def test_a_header_that_http_does_not_allow_is_a_failed_delivery(receiver: Any, rec: Any) -> None:
    about = destination(type="webhook", url=receiver.url, content_type="text/plain; title=für-dich")

    with pytest.raises(DeliveryFailed):
        asyncio.run(sender(about).send("open", Delivered.of(rec(), None)))

    assert receiver.received == []


def test_html_templates_escape_names(rec: Any) -> None:
    about = destination(
        type="webhook", url="http://localhost/", content_type="text/html", template="<p>{{ group }}</p>"
    )

    body = ToWebhook(about).body("open", rec(EVIL))

    assert body == b"<p>&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J</p>"


@pytest.mark.parametrize("template", ["{{ ''.__class__.__mro__ }}", "{{ labels.password }}", "{{ 1 / 0 }}"])
def test_a_template_cannot_reach_beyond_its_facts(rec: Any, template: str) -> None:
    about = destination(type="webhook", url="http://localhost/", template=template)

    with pytest.raises(DeliveryRefused):
        ToWebhook(about).body("open", rec())


def test_the_settings_and_the_page_know_every_fact_that_a_template_may_name(rec: Any) -> None:
    page = (DOCS / "alerting.md").read_text().split("## What a template may name")[1].split("##")[0]

    assert sorted(facts("open", rec())) == sorted(FIELDS)
    assert all(f"`{name}`" in page for name in FIELDS)


def test_of_superseded_advice_no_command_is_sent(rec: Any) -> None:
    skip = {"type": "skip_or_fix_record", "how": "--to-offset 23856 --execute", "feasible": "yes"}
    values = facts("change", rec("orders", status="superseded", actions=[skip]))

    assert (values["status"], values["action"], values["how"]) == ("superseded", "none", "")


@pytest.mark.parametrize(
    ("template", "said"),
    [("{% if %}", "is no Jinja2 template"), ("{{ password }}", "there is no field password")],
)
def test_a_template_that_must_fail_is_refused_at_the_start(template: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        destination(type="webhook", url="http://localhost/", template=template)


def test_pagerduty_triggers_and_resolves_one_incident(receiver: Any, rec: Any) -> None:
    about = destination(type="pagerduty", url=receiver.url, routing_key="R")
    desk = sender(about)

    asyncio.run(_both(desk, rec("g" * 32_000, severity="page")))

    opened, closed = receiver.bodies()
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"]
    assert len(opened["dedup_key"]) <= 255
    assert opened["payload"]["severity"] == "critical"
    assert len(opened["payload"]["summary"]) <= 1024


async def _both(desk: Any, rec: Any) -> None:
    await desk.send("open", Delivered.of(rec, None))
    await desk.send("close", Delivered.of(rec, None))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise imports it
def test_apprise_reaches_what_it_knows(receiver: Any, rec: Any) -> None:
    about = destination(type="apprise", url=receiver.url.replace("http://", "json://"))

    asyncio.run(sender(about).send("open", Delivered.of(rec(EVIL), None)))

    (body,) = receiver.bodies()
    assert "\x1b" not in body["title"] + body["message"]


CALLS = ["@everyone", "@here", "a@channel", "<@U123>", "<@&456>", "<@!789>", "[log in](https://elsewhere)"]


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # apprise imports it
@pytest.mark.parametrize("name", CALLS)
def test_no_name_notifies_people_in_a_chat_or_hides_where_a_link_leads(
    receiver: Any, rec: Any, name: str
) -> None:
    about = destination(type="apprise", url=receiver.url.replace("http://", "json://"))

    asyncio.run(sender(about).send("open", Delivered.of(rec(name), None)))

    (body,) = receiver.bodies()
    for text in (body["title"], body["message"]):
        assert "@" not in text
        assert "](" not in text
        assert name.replace("@", r"\x40").replace("](", r"]\x28") in text


CERTIFICATES = Path(__file__).parent / "data"


@pytest.mark.parametrize("kind", LEAST)
def test_a_certificate_is_trusted_only_with_its_authority(by_tls: Any, rec: Any, kind: str) -> None:
    server = by_tls(CERTIFICATES / "here.pem")
    said: dict[str, Any] = {"type": kind, "url": f"{server.url}/TOKEN", **LEAST[kind]}

    with pytest.raises(DeliveryFailed) as refused:
        asyncio.run(sender(destination(**said)).send("open", Delivered.of(rec(), None)))
    assert "signed by no authority that this machine trusts" in str(refused.value)
    assert "TOKEN" not in str(refused.value)
    assert server.received == []

    asyncio.run(
        sender(destination(**said, ca_file=str(CERTIFICATES / "ca.pem"))).send(
            "open", Delivered.of(rec(), None)
        )
    )
    assert len(server.received) == 1


def test_a_certificate_for_another_host_is_refused_though_its_authority_is_trusted(
    by_tls: Any, rec: Any
) -> None:
    server = by_tls(CERTIFICATES / "elsewhere.pem")
    about = destination(type="webhook", url=server.url, ca_file=str(CERTIFICATES / "ca.pem"))

    with pytest.raises(DeliveryFailed, match="its certificate is for another host"):
        asyncio.run(sender(about).send("open", Delivered.of(rec(), None)))
    assert server.received == []


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_an_authority_that_cannot_be_used_is_one_sentence(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)

    with pytest.raises(SettingsError, match=r"ca\.pem cannot be used as authority"):
        sender(destination(type="webhook", url="https://localhost/", ca_file=str(file)))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_apprise_may_not_leave_certificates_unverified(receiver: Any, rec: Any) -> None:
    about = destination(type="apprise", url=receiver.url.replace("http://", "jsons://") + "?verify=no")

    with pytest.raises(DeliveryFailed, match="switches the verification"):
        asyncio.run(sender(about).send("open", Delivered.of(rec(), None)))


def test_a_wrong_name_in_the_settings_is_refused() -> None:
    with pytest.raises(ValidationError):
        AlertSettings.model_validate({"destinations": {"a/b": {"type": "pagerduty", "routing_key": "R"}}})
