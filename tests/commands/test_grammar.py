"""One grammar: global options anywhere, old spellings with a note, suggestions, help that is quick and in sections."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kagent.cli import COMMANDS, RENAMED, root
from kagent.commands import common


def invoke(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(root, list(arguments))
    return answer.exit_code, answer.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("-b", "a:1", "settings", "--json"),
        ("settings", "-b", "a:1", "--json"),
        ("settings", "--json", "--bootstrap-server", "a:1"),
        ("settings", "--bootstrap", "a:1", "--json"),
        ("-b", "x:1", "settings", "-b", "a:1", "--json"),
    ],
)
def test_the_address_may_stand_anywhere_and_the_last_one_wins(arguments: tuple[str, ...]) -> None:
    code, output = invoke(*arguments)

    assert code == 0
    assert json.loads(output)["clusters"]["main"]["bootstrap"] == "a:1"


@pytest.mark.parametrize(
    ("typed", "meant"), [("lagg", "lag"), ("wach", "watch"), ("setings", "settings"), ("mut", "mute")]
)
def test_a_mistyped_command_is_answered_with_the_right_one(typed: str, meant: str) -> None:
    code, output = invoke(typed)

    assert code == 2
    assert f"Did you mean {meant}" in output


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--grp", "--group"),
        ("--outptu", "--output"),
        ("--botstrap", "--bootstrap"),
        ("--srot", "--sort"),
        ("--format", "--output"),
    ],
)
def test_a_mistyped_option_is_answered_with_the_one_of_nearly_the_same_letters(
    typed: str, meant: str
) -> None:
    code, output = invoke("lag", typed, "x")

    assert code == 2
    assert f"Did you mean {meant}?" in output or f"Possible options: {meant}" in output, output


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("mute", "orders", "--for", "half an hour"), "did you mean 30m?"),
        (("capture", "folder", "orders", "--for", "90 secs"), "did you mean 90s?"),
    ],
)
def test_a_duration_in_another_form_is_answered_with_the_right_one(
    typed: tuple[str, ...], meant: str
) -> None:
    code, output = invoke(*typed)

    assert code == 2
    assert meant in output.replace("\n", " ")


@pytest.mark.parametrize(("typed", "meant"), [(("alert", "tset"), "test"), (("history", "wirte"), "write")])
def test_a_mistyped_command_of_a_command_is_answered_too(typed: tuple[str, ...], meant: str) -> None:
    code, output = invoke(*typed)

    assert code == 2
    assert f"There is no command {typed[-1]!r}. Did you mean {meant}?" in output


@pytest.mark.parametrize("command", [name for name, old in RENAMED.items() if "--group" in old])
def test_every_command_about_groups_takes_them_by_an_option_too(command: str) -> None:
    found = root.get_command(click.Context(root), command)

    assert found is not None
    rest = root.resolve_command(click.Context(root), [command, "--group=a", "--group", "b"])[2]
    has_option = any("--group" in param.opts for param in found.params)
    assert rest == (["--group=a", "--group", "b"] if has_option else ["a", "b"])


@pytest.mark.parametrize(("typed", "meant"), [("groups", "lag"), ("silence", "mute"), ("start", "up")])
def test_another_word_for_a_command_is_answered_with_the_command(typed: str, meant: str) -> None:
    assert f"Did you mean {meant}?" in CliRunner().invoke(root, [typed]).output


def test_no_summary_of_a_command_is_cut_off() -> None:
    asked = [("history", "--help"), ("alert", "--help"), ("--help",)]
    lines = [line for each in asked for line in invoke(*each)[1].splitlines() if "Usage:" not in line]

    assert [line for line in lines if line.endswith("...")] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pipeline", "--trigger", "50ms"], "'50ms' is too short: it must be at least 100ms."),
        (["backtest", "--tick", "0.5"], "'0.5' is too short: it must be at least 1s."),
        (["history", "write", "--trigger", "a minute"], "did you mean 1m?"),
    ],
)
def test_every_length_of_time_is_written_with_a_unit(arguments: list[str], said: str) -> None:
    assert said in CliRunner().invoke(root, arguments).output


def test_a_command_like_no_other_is_answered_with_where_to_look() -> None:
    assert "`kagent --help` lists them" in invoke("xyzzy")[1]


def test_help_lists_every_command_once_under_a_section() -> None:
    lines = invoke("--help")[1].splitlines()

    assert [sum(line.startswith(f"  {name} ") for line in lines) for name in COMMANDS] == [1] * len(COMMANDS)
    assert {"Look:", "Act:", "Run:", "Set up:"} <= set(lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_the_global_options_and_says_so(name: str) -> None:
    with click.Context(root) as ctx:
        command = root.get_command(ctx, name)
        assert command is not None
        assert {"bootstrap", "config", "cluster", "verbose"} <= {param.name for param in command.params}
        assert "Global options" in command.get_help(click.Context(command, parent=ctx))


def test_help_loads_no_command_and_no_client() -> None:
    program = (
        "import sys; import kagent.cli; print(sorted(m for m in sys.modules if m.split('.')[0] in {names}))"
    )
    names = {"aiokafka", "confluent_kafka", "pyspark", "faust", "pydantic", "yaml", "rich", "numpy"}
    found = subprocess.run(
        [sys.executable, "-c", program.format(names=names)], capture_output=True, text=True, check=True
    )

    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(("name", "old"), [(name, old) for name, olds in RENAMED.items() for old in olds])
def test_an_old_spelling_still_works(name: str, old: str) -> None:
    with click.Context(root) as ctx:
        command = root.get_command(ctx, name)
        assert command is not None
        is_argument = RENAMED[name][old] == "GROUP" and any(
            param.name in ("group", "groups") for param in command.params
        )
        assert is_argument or any(old in param.opts for param in command.params)


def test_an_old_spelling_is_noted_on_standard_error() -> None:
    answer = CliRunner().invoke(root, ["backtest", "--from", "sometime"])

    assert "note: --from is now --since; the old spelling still works." in answer.stderr
    assert "note" not in answer.stdout


def test_a_name_is_a_file_if_there_is_one_else_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders").write_text("")
    Path("folder").mkdir()

    assert [common.is_group(name, None) for name in ("orders", "payments", "folder", "-", "a/b", "x.jsonl")] == [
        False, True, True, False, False, False
    ]  # fmt: skip
    assert not common.is_group("payments", "other")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("settings", "--check"), 0),
        (("lagg",), 2),
        (("lag", "--no-such-option"), 2),
        (("backtest", "--since", "sometime"), 2),
        (("capture", "folder"), 2),
        (("alert", "test", "nobody"), 2),
    ],
    ids=str,
)
@pytest.mark.slow
def test_the_exit_code_is_the_one_that_is_documented(arguments: tuple[str, ...], code: int) -> None:
    command = [sys.executable, "-m", "kagent", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert answer.returncode == code, answer.stderr
    assert "Traceback" not in answer.stderr
    assert bool(answer.stderr) is (code != 0)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_command_that_fails_says_so_by_its_exit_code_though_its_output_is_closed(closed: str) -> None:
    command = shlex.join([sys.executable, "-m", "kagent", "lagg"])
    answer = subprocess.run(
        f"{command} {closed}", shell=True, capture_output=True, text=True, timeout=120, check=False
    )

    assert answer.returncode == 2, answer.stderr
    assert "Traceback" not in answer.stderr


AWAY = [
    ("lag",), ("watch",), ("watch", "--open"), ("check", "--for", "1s"), ("explain", "g", "--live"), ("plan", "g"),
    ("assign", "g"), ("mute", "g"), ("mutes",), ("topics",), ("keys", "t"), ("decode", "--follow"), ("status",),
    ("apply", "g"),
]  # fmt: skip


@pytest.fixture(scope="module")
def asked_of_nobody() -> Iterator[Callable[[tuple[str, ...]], tuple[int, str]]]:
    """What a command's exit code and error text are where nothing listens. All start at once: each takes a second to load."""
    started = {
        arguments: subprocess.Popen(
            [sys.executable, "-m", "kagent", *arguments, "-b", "127.0.0.1:1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for arguments in AWAY
    }  # fmt: skip

    @cache  # a second attempt of a test finds the pipe closed
    def ended(arguments: tuple[str, ...]) -> tuple[int, str]:
        _, stderr = started[arguments].communicate(timeout=180)
        return started[arguments].returncode, stderr

    yield ended
    for process in started.values():
        with process:  # closes the pipe of one that no test asked for
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", AWAY, ids=" ".join)
def test_a_cluster_that_is_away_is_one_sentence_in_every_command(
    arguments: tuple[str, ...], asked_of_nobody: Callable[[tuple[str, ...]], tuple[int, str]]
) -> None:
    code, stderr = asked_of_nobody(arguments)

    assert code == 2, stderr
    assert "Traceback" not in stderr
    assert [line for line in stderr.splitlines() if "127.0.0.1:1 cannot be reached: check" in line]
    assert len(stderr.strip().splitlines()) == 1, stderr
