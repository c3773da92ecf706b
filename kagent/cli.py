"""The ``kagent`` command: a table of commands, loaded one at a time so that ``kagent --help`` is quick."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from typing import Any

import click

from kagent import __version__
from kagent.errors import KagentError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What the disk under our output says when it takes no more."""

# name → (module under kagent.commands, one line of help). The click command in it is called `command`.
COMMANDS: dict[str, tuple[str, str]] = {
    "decode": ("decode", "Decode records of __consumer_offsets, from hex or live."),
    "alert": ("alert", "Send incidents to Alertmanager, PagerDuty, webhooks and apprise."),
    "acls": ("acls", "Print the least rights that pipeline, worker and subscribers need."),
    "lag": ("lag", "Show the lag of groups as the cluster tells it."),
    "replay": ("replay", "Run a captured piece of the past through the evaluation."),
    "report": ("report", "Write an HTML page about a group or a cluster."),
    "topics": ("topics", "Create kagent's own topics and report what is wrong with them."),
    "assign": ("assign", "Compute what each assignment strategy would give."),
    "backtest": ("backtest", "Replay the past: what would have been recommended."),
    "capture": ("capture", "Record groups of a live cluster into a folder."),
    "calibrate": ("calibrate", "Propose thresholds for each group from its past."),
    "demo": ("demo", "Show the whole job on a real broker, in four minutes."),
    "history": ("history", "Keep and maintain the history (Delta tables)."),
    "jars": ("jars", "Fetch the Java archives into the cache."),
    "keys": ("keys", "Say which keys make a partition of a topic hot."),
    "partition": ("partition", "Say which partition the producer puts a key in."),
    "pipeline": ("pipeline", "Run the Spark stream from __consumer_offsets to group events."),
    "up": ("up", "Run pipeline and worker as one supervised process tree."),
    "watch": ("watch", "Print recommendations as they come, and those open now."),
    "worker": ("worker", "Run the Faust worker."),
    "plan": ("plan", "Plan the fewest moves that bring a group near its best."),
    "check": ("check", "Judge a cluster's groups once, from outside."),
    "explain": ("explain", "Tell the story of one group."),
    "mute": ("mute", "Ask for silence about a group."),
    "schema": ("schema", "Print the contract of the recommendations topic."),
    "settings": ("settings", "Print the settings in effect, secrets masked."),
}


class LazyGroup(click.Group):
    """A click group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kagent.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kagent")
@click.option(
    "--config", type=click.Path(dir_okay=False), envvar="KAGENT_CONFIG", help="The settings file (YAML)."
)
@click.option(
    "--cluster",
    envvar="KAGENT_CLUSTER",
    help="Which of the settings' clusters; needed only if there are several.",
)
@click.option("--bootstrap", help="A bootstrap address instead of a settings file.")
@click.option("--verbose", is_flag=True, help="Show tracebacks and debug logs.")
@click.pass_context
def root(
    ctx: click.Context, config: str | None, cluster: str | None, bootstrap: str | None, verbose: bool
) -> None:
    """Says when a consumer group's lag is badly spread over its members, and what to do about it."""
    ctx.obj = {"config": config, "cluster": cluster, "bootstrap": bootstrap, "verbose": verbose}


def main(args: list[str] | None = None) -> Any:
    """Run the command line; a KagentError becomes one sentence on stderr and exit code 2."""
    argv = sys.argv[1:] if args is None else args
    if sys.stdin is None:  # closed by whoever started us: there is nothing to read
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # names are anybody's text, terminals are not all UTF-8
    try:
        return root.main(args=argv, prog_name="kagent", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KagentError as error:
        if "--verbose" in argv:
            raise
        click.echo(f"kagent: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away (`| head`)
        sys.exit(0)
    except OSError as error:
        if error.errno not in FULL or "--verbose" in argv:
            raise
        click.echo(f"kagent: what is said cannot be written ({error.strerror}).", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python tries once more on its way out
        sys.exit(2)


if __name__ == "__main__":
    sys.exit(main())
