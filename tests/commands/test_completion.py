"""Shell completion: commands, options, and the groups and topics of a real broker; a cluster that is away completes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import click
import pytest

from kagent.cli import root
from kagent.commands.completion import _typed


def completed(*words: str, broker: str = "127.0.0.1:1") -> list[str]:
    """What bash would be offered for the last of these words, as click's own script asks."""
    program = "from kagent.cli import root; root(prog_name='kagent')"
    environment = {
        **os.environ,
        "_KAGENT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("kagent", *words)),
        "COMP_CWORD": str(len(words)),
        "KAGENT_BOOTSTRAP": broker,
    }
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=True,
    )
    return [line.split(",", 1)[1] for line in answer.stdout.splitlines() if line]


def test_every_argument_that_is_a_group_is_completed() -> None:
    with click.Context(root) as ctx:
        commands = {name: root.get_command(ctx, name) for name in root.list_commands(ctx)}
        without = [
            name
            for name, command in commands.items()
            for param in (command.params if command else ())
            if isinstance(param, click.Argument)
            and param.name in ("group", "groups", "topic")
            and param._custom_shell_complete is None
            and name != "replay"  # its groups are those of a folder
        ]
    assert without == []


@pytest.mark.slow
def test_commands_and_options_are_completed_without_a_cluster() -> None:
    assert completed("wa") == ["watch"]
    assert "--since" in completed("backtest", "--s")
    assert {"--sort"} <= set(completed("lag", "--so"))
    assert completed("lag", "--con") == ["--config"]
    assert completed("history", "write", "--clu") == ["--cluster"]


@pytest.mark.slow
def test_a_cluster_that_is_away_completes_nothing_and_says_nothing() -> None:
    assert completed("explain", "orders") == []


@pytest.mark.parametrize(
    ("line", "shell", "offered"),
    [
        ("kagent lag or", "bash_complete", r"orders\ of\ eu"),
        ("kagent lag 'or", "bash_complete", "orders of eu"),
        ("kagent lag or", "zsh_complete", "orders of eu"),
    ],
)
def test_a_name_with_spaces_is_one_word_to_the_shell(
    line: str, shell: str, offered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("_KAGENT_COMPLETE", shell)

    assert _typed("orders of eu") == offered
    assert _typed("orders.eu-1_a") == "orders.eu-1_a"


@pytest.mark.kafka
def test_groups_and_topics_are_completed_from_the_cluster(broker: str, cast: Any) -> None:
    cast.topic("completed-topic", 1, 1)
    cast.commit("completed-group", "completed-topic", 0)

    for command in ("explain", "mute", "lag", "plan"):
        assert completed(command, "completed-", broker=broker) == ["completed-group"]
    assert completed("keys", "completed-", broker=broker) == ["completed-topic"]


@pytest.mark.kafka
def test_before_the_first_letter_only_users_groups_are_offered(broker: str, cast: Any) -> None:
    cast.topic("offered-topic", 1, 1)
    for group in ("offered-group", "kagent-keys-1"):
        cast.commit(group, "offered-topic", 0)

    offered = completed("lag", "", broker=broker)

    assert "offered-group" in offered
    assert "kagent-keys-1" not in offered
    assert completed("lag", "kagent-k", broker=broker) == ["kagent-keys-1"]
