"""The ``kagent`` command: a table of commands, loaded one at a time so that ``kagent --help`` is quick."""

from __future__ import annotations

import atexit
import errno
import importlib
import io
import logging
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from kagent.commands.suggesting_group import SuggestingGroup
from kagent.errors import KagentError
from kagent.worker.repeated_lines import shorten_outages

# pydantic looks through every installed package for plugins of its own, a tenth of a command's start; kagent has none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What the disk under our output says when it takes no more."""

# section → name → (module under kagent.commands, one line of help). The click command in it is called `command`.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Look": {
        "status": ("status", "Say in five lines whether kagent itself works."),
        "watch": ("watch", "Show the open incidents and keep them up to date."),
        "lag": ("lag", "Show the lag of groups, as the cluster reports it."),
        "check": ("check", "Judge a cluster's groups once, from outside."),
        "explain": ("explain", "Say why a group is judged as it is, and what would help."),
        "keys": ("keys", "Say which keys make a partition of a topic hot."),
    },
    "Act": {
        "plan": ("plan", "Plan the fewest moves that bring a group near its best."),
        "assign": ("assign", "Compute what each assignment strategy would give."),
        "apply": ("apply", "Have a KIP-848 group take its open recommendation now."),
        "assignor": ("assignor", "Say how brokers and Java consumers get kagent's assignor."),
        "mute": ("mute", "Silence the groups that match a name or pattern."),
        "mutes": ("mutes", "List the mutes: who, until when, which groups."),
        "alert": ("alert", "Send incidents to destinations such as PagerDuty and Alertmanager."),
    },
    "Run": {
        "up": ("up", "Run pipeline and worker as one supervised process tree."),
        "pipeline": ("pipeline", "Run the Spark stream from __consumer_offsets to group events."),
        "worker": ("worker", "Run the Faust worker."),
        "demo": ("demo", "Show the whole job on a real broker, in some minutes."),
    },
    "Look back": {
        "history": ("history", "Keep and maintain the history (Delta tables)."),
        "report": ("report", "Write an HTML page about a group or a cluster."),
        "backtest": ("backtest", "Replay the past: what would have been recommended."),
        "calibrate": ("calibrate", "Propose thresholds for each group from its past."),
    },
    "Set up": {
        "settings": ("settings", "Print or check the settings in effect, secrets masked."),
        "topics": ("topics", "Create kagent's own topics and report what is wrong with them."),
        "acls": ("acls", "Print the least rights that pipeline, worker and subscribers need."),
        "jars": ("jars", "Fetch the Java archives into the cache."),
    },
    "Tools": {
        "capture": ("capture", "Record groups of a live cluster into a folder."),
        "replay": ("replay", "Replay a captured group through the judgement, hours in minutes."),
        "decode": ("decode", "Decode records of __consumer_offsets, from hex or live."),
        "partition": ("partition", "Say which partition the producer puts a key in."),
        "schema": ("schema", "Print the contract of the recommendations topic."),
    },
}
COMMANDS: dict[str, tuple[str, str]] = {
    name: about for section in SECTIONS.values() for name, about in section.items()
}


RENAMED: dict[str, dict[str, str]] = {
    "backtest": {"--from": "--since", "--to": "--until", "--group": "GROUP"},
    "calibrate": {"--from": "--since", "--to": "--until", "--group": "GROUP"},
    "report": {"--from": "--since", "--to": "--until", "--group": "GROUP"},
    "check": {"--group": "GROUP"},
    "capture": {"--group": "GROUP"},
    "replay": {"--group": "GROUP"},
    "explain": {"--from": "--worker", "--group": "GROUP"},
    "lag": {"--group": "GROUP"},
    "mute": {"--group": "GROUP"},
    "apply": {"--group": "GROUP"},
}
"""Command → old spelling → what it is called now. Old ones work, with a note."""


def _note_old_spellings(name: str, args: list[str]) -> None:
    for old, new in RENAMED.get(name, {}).items():
        if any(arg == old or arg.startswith(f"{old}=") for arg in args):
            what = "is now the argument GROUP" if new == "GROUP" else f"is now {new}"
            click.echo(f"note: {old} {what}; the old spelling still works.", err=True)


def _group_as_argument(command: click.Command, args: list[str]) -> list[str]:
    """``--group NAME`` as the argument that it is, for a command that has no such option."""
    if any("--group" in param.opts for param in command.params) or not any(
        param.name in ("group", "groups") for param in command.params
    ):
        return args
    return [arg.removeprefix("--group=") for arg in args if arg != "--group"]


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Keep a global option where every command finds it; given twice, the one after the command wins."""
    # At the root: click parses options after the command in a context of the command's own.
    given = ctx.find_root().ensure_object(dict)
    if value or param.name not in given:
        given[param.name] = value
    return value


def _global(*names: str, **more: Any) -> click.Option:
    return click.Option(names, callback=_remember, expose_value=False, **more)


def global_options(inner: bool = False) -> list[click.Option]:
    """The options that may stand before or after the command. ``inner``: those of a command."""
    # Out of each command's help, which would repeat them, but not out of what the shell offers.
    hidden = inner and "_KAGENT_COMPLETE" not in os.environ
    return [
        _global(
            "-b", "--bootstrap-server", "--bootstrap", "bootstrap",
            metavar="HOST:PORT", hidden=hidden, help="The cluster's address, instead of a settings file.",
        ),
        _global(
            "--config",
            type=click.Path(dir_okay=False),
            envvar=None if inner else "KAGENT_CONFIG",
            hidden=hidden,
            help="The settings file (YAML).",
        ),
        _global(
            "--cluster",
            envvar=None if inner else "KAGENT_CLUSTER",
            hidden=hidden,
            help="Which of the settings' clusters; needed only if there are several.",
        ),
        _global("--verbose", is_flag=True, hidden=hidden, help="Show tracebacks and debug logs."),
    ]  # fmt: skip


ANYWHERE = "Global options (-b, --config, --cluster, --verbose) may stand here too: see kagent --help."


def _with_global_options(command: click.Command) -> click.Command:
    if not any(param.name == "bootstrap" for param in command.params):
        command.params += global_options(inner=True)
        command.epilog = command.epilog or ANYWHERE
        command.context_settings.setdefault("help_option_names", ["-h", "--help"])
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        # Of `history` and `alert`, whose own commands take them too.
        _with_global_options(inner)
    return command


class LazyGroup(SuggestingGroup):
    """A click group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kagent.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return _with_global_options(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name and command:
            _note_old_spellings(name, rest)
            rest = _group_as_argument(command, rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, about) for name, (_, about) in commands.items()], col_max=12)


@click.group(
    cls=LazyGroup,
    params=global_options(),
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with `kagent -b HOST:9092 check`. Exit codes: 0 well, 1 findings, 2 kagent or the cluster is in trouble.",
)
@click.version_option(package_name="kagent", prog_name="kagent")
def root() -> None:
    """Find consumer groups whose lag is badly spread over their members, and what helps.

    Global options may stand before or after the command.
    """


def main(args: list[str] | None = None) -> Any:
    """Run the command line; a KagentError becomes one sentence on stderr and exit code 2."""
    argv = sys.argv[1:] if args is None else args
    if sys.stdin is None:  # the parent process closed it: there is nothing to read
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # names are anybody's text, terminals are not all UTF-8
    if "--verbose" not in argv:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what matters comes as an exception
    try:
        return root.main(args=argv, prog_name="kagent", standalone_mode=False)
    except click.exceptions.Abort:
        # 128 + SIGINT, as shells report it.
        sys.exit(130)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KagentError as error:
        if "--verbose" in argv:
            raise
        from kagent.commands.output import say  # loads rich, which `--help` does without

        for line in f"kagent: {error}".splitlines():
            say(line, err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away (`| head`)
        sys.exit(0)
    except OSError as error:
        if error.errno not in FULL or "--verbose" in argv:
            raise
        click.echo(f"kagent: The output cannot be written ({error.strerror}).", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python tries once more on its way out
        sys.exit(2)


def run() -> None:
    """The ``kagent`` command as a process of its own: :func:`main`, and its end."""
    shorten_outages()  # a thousand lines about a topic's bad records would hide the answer
    try:
        sys.exit(main())
    except SystemExit as end:
        if end.code == 2:
            _fail_at_once()
        raise


def _fail_at_once() -> NoReturn:
    """End the process with code 2, without taking Python and the C libraries down around threads that still run.

    A command that fails leaves Kafka clients open: the error holds them. Their native threads then run through the teardown, and
    a command that found no cluster was once seen to end with a segmentation fault, after its sentence.
    """
    atexit._run_exitfuncs()  # Spark's gateway and temporary folders
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: the parent process closed it
        with suppress(OSError, ValueError):  # its reader went away, or we closed it
            stream.flush()
    os._exit(2)


if __name__ == "__main__":
    run()
