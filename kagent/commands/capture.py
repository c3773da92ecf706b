"""``kagent capture``: what groups write to ``__consumer_offsets`` for a while, and their log ends, in a folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType

import click

from kagent.commands import completion, output
from kagent.commands.check import announce_rounds
from kagent.commands.common import admin_of, chosen
from kagent.commands.spans import SPAN
from kagent.errors import InputError
from kagent.text import counted


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("groups", nargs=-1, metavar="GROUP...", shell_complete=completion.groups)
@click.option("--group", "also", multiple=True, hidden=True, help="The same as the argument GROUP.")
@click.option("--for", "seconds", type=SPAN, default="10m", show_default=True, help="How long to capture.")
@click.option(
    "--redact",
    is_flag=True,
    help="Replace names of groups, topics, members, clients and hosts by pseudonyms.",
)
@click.pass_context
def command(
    ctx: click.Context,
    folder: Path,
    groups: tuple[str, ...],
    also: tuple[str, ...],
    seconds: float,
    redact: bool,
) -> None:
    """Capture groups into FOLDER, for `kagent replay` and for bug reports.

    GROUP is a name, a glob or a /regex/.

    Reads __consumer_offsets from its beginning, so that members are known, then for the given time. Joins no group and
    writes nothing to the cluster. Ctrl-C ends it early, with exit code 0: what was
    captured until then can be replayed.
    """
    # No default of all groups: a capture is handed to others, and names what it holds.
    if not (groups or also):
        raise InputError("Name the groups that are to be captured: names, globs or /regexes/.")
    settings, _, cluster = chosen(ctx)
    announce_rounds(cluster.bootstrap, seconds, quiet=False)
    from kagent.capture.folder_writer import FolderWriter
    from kagent.capture.pseudonyms import Pseudonyms
    from kagent.capture.recorder import CapturedGroups, Recorder
    from kagent.check.judge_cluster import chooser

    wanted = CapturedGroups(chooser((*groups, *also)))
    with (
        _stopped_by_signals() as stop,
        FolderWriter(folder, Pseudonyms() if redact else None) as writer,
    ):
        recorder = Recorder(admin_of(cluster), wanted, writer, seconds, stop, _report, settings.worker.sample)
        recorder.run()
    output.say(
        f"{folder}: {counted(len(wanted.names), 'group')}, {counted(writer.records, 'record')} and "
        f"{counted(writer.samples, 'sample')} of {counted(len(writer.topics), 'topic')} in {recorder.live_s:.0f} s."
    )
    if writer.left_out:
        output.say(f"Left out: {counted(writer.left_out, 'record')} that could not be redacted.", err=True)
    if not writer.records:
        output.say("No record of a group that matches was seen: there is nothing to replay.", err=True)


def _report(line: str) -> None:
    click.echo(line, err=True)


@contextmanager
def _stopped_by_signals() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set, in the place of what they do otherwise."""
    stop = Event()

    def end(number: int, frame: FrameType | None) -> None:
        # Only noted: the recorder finishes its round, so that the folder can be replayed.
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        # Put back, so that Ctrl-C ends what the caller does next.
        for number, handler in before.items():
            signal.signal(number, handler)
