"""`kagent alert test` sends one incident and its end to a receiver that runs, and says in a sentence what went wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from click.testing import CliRunner, Result

from kagent.cli import root
from tests.fixtures.alerts import Alerts, Receiver


def sent(folder: Path, name: str, **destinations: Any) -> Result:
    """`kagent alert test NAME` with a settings file of these destinations."""
    config = folder / "kagent.yaml"
    config.write_text(yaml.safe_dump({"alert": {"destinations": destinations}}))
    return CliRunner().invoke(root, ["--config", str(config), "alert", "test", name])


def test_a_webhook_gets_the_incident_and_its_end(receiver: Receiver, tmp_path: Path) -> None:
    answer = sent(tmp_path, "hook", hook={"type": "webhook", "url": receiver.url})

    assert (answer.exit_code, answer.output) == (0, "hook (webhook) took a test incident and its end.\n")
    assert receiver.events("kagent-test") == ["open", "close"]
    opened, closed = receiver.bodies()
    assert opened["id"] == closed["id"]
    assert "no group is affected" in opened["reason"]


@pytest.mark.slow
def test_alertmanager_takes_it_as_firing_and_as_resolved(alertmanager: Alerts, tmp_path: Path) -> None:
    answer = sent(tmp_path, "am", am={"type": "alertmanager", "url": alertmanager.url})

    assert answer.exit_code == 0, answer.exception
    received = dict(
        re.findall(
            r'alerts_received_total\{status="(\w+)".*\} (\d+)', httpx.get(f"{alertmanager.url}/metrics").text
        )
    )
    assert received == {"firing": "1", "resolved": "1"}
    assert alertmanager.groups() == []


@pytest.mark.parametrize(("status", "why"), [(500, "HTTP 500"), (400, "HTTP 400"), (401, "HTTP 401")])
def test_a_receiver_that_refuses_is_named_with_its_answer(
    receiver: Receiver, tmp_path: Path, status: int, why: str
) -> None:
    receiver.status = status
    answer = sent(tmp_path, "hook", hook={"type": "webhook", "url": receiver.url})

    assert answer.exit_code != 0
    assert f"hook (webhook) did not take the test incident: {why}" in str(answer.exception)
    assert receiver.tried == 1


def test_a_receiver_that_is_down_is_named_without_its_address(receiver: Receiver, tmp_path: Path) -> None:
    answer = sent(tmp_path, "hook", hook={"type": "webhook", "url": "http://127.0.0.1:1/SECRET"})

    assert "hook (webhook) did not take the test incident: nothing listens at its address" in str(
        answer.exception
    )
    assert "SECRET" not in str(answer.exception)


def test_an_unknown_destination_is_answered_with_the_likely_one(tmp_path: Path) -> None:
    answer = sent(tmp_path, "hok", hook={"type": "webhook", "url": "http://127.0.0.1:1/"})

    assert "no alert destination hok; did you mean hook?" in str(answer.exception)
