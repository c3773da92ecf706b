"""`kagent replay` as a person or a script runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kagent.cli import root
from kagent.errors import InputError, SettingsError
from tests.fixtures.captures import DATA

SKEW = str(DATA / "skew")


def run(*args: str) -> Result:
    result = CliRunner().invoke(root, ["replay", *args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.slow
def test_json_is_one_message_a_line_in_order_of_time_and_nothing_else() -> None:
    lines = run(SKEW, "--known-since", "7d", "--json").stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    assert {message["type"] for message in messages} == {"recommendation"}
    times = [message["as_of"] for message in messages]
    assert times == sorted(times)
    assert "skew-rc" in {message["group"] for message in messages}


@pytest.mark.slow
def test_people_read_what_was_published_and_why_the_rest_was_not() -> None:
    result = run(str(DATA / "steady"), "--known-since", "7d")
    assert result.exit_code == 0
    assert "steady-js" in result.stdout
    assert "no finding" in result.stdout
    assert "0 messages; 2 groups, 2 of them silent." in result.stdout


@pytest.mark.slow
def test_groups_are_chosen_by_glob() -> None:
    lines = run(SKEW, "--known-since", "7d", "--json", "--group", "*-rc").stdout.splitlines()
    assert {json.loads(line)["group"] for line in lines} == {"skew-rc"}


@pytest.mark.slow
def test_a_field_of_the_policy_can_be_changed() -> None:
    impatient = run(SKEW, "--known-since", "7d", "--json", "--group", "skew-rc", "--policy", "hold=60")
    default = run(SKEW, "--known-since", "7d", "--json", "--group", "skew-rc")
    opened = [json.loads(r.stdout.splitlines()[0])["opened_at"] for r in (impatient, default)]
    assert opened[0] <= opened[1]
    assert run(SKEW, "--group", "skew-rc", "--json", "--policy", "ignore=true").stdout == ""


@pytest.mark.slow
def test_a_policy_file_is_used_in_place_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "quiet.yaml"
    file.write_text("ignore: ['skew-*']\n")
    result = run(SKEW, "--known-since", "7d", "--policy", str(file))
    assert "the settings leave this group out" in result.stdout


@pytest.mark.slow
def test_what_cannot_be_replayed_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is it a folder of `kagent capture`"):
        run(str(tmp_path))
    with pytest.raises(InputError, match=r"it holds: skew-j8, skew-jr, skew-rc\."):
        run(SKEW, "--group", "orders-*")
    with pytest.raises(SettingsError, match="there is no thresold"):
        run(SKEW, "--policy", "thresold=2")
    with pytest.raises(InputError, match="one file"):
        run(SKEW, "--policy", "a.yaml", "--policy", "b.yaml")
