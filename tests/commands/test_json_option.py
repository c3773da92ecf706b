"""Commands that print JSON take ``-o json`` as those that print tables do."""

from __future__ import annotations

import click
import pytest

from kagent.cli import root


def named() -> list[str]:
    ctx = click.Context(root)
    commands = {name: root.get_command(ctx, name) for name in root.list_commands(ctx)}
    return [
        name
        for name, command in commands.items()
        if command is not None and any("--json" in each.opts for each in command.params)
    ]


@pytest.mark.parametrize("name", named())
def test_what_takes_json_takes_output_json(name: str) -> None:
    command = root.get_command(click.Context(root), name)

    assert command is not None
    outputs = [each for each in command.params if "--output" in each.opts]
    assert [("-o" in each.opts, "json" in getattr(each.type, "choices", ())) for each in outputs] == [
        (True, True)
    ]
