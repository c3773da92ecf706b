"""``kagent decode``: records of ``__consumer_offsets`` as JSON, from lines of hex or from the live topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from kagent.commands.common import admin_of, chosen, ended_by_ctrl_c
from kagent.commands.input_lines import lines
from kagent.commands.output import announce, json_line
from kagent.offsets import DecodeError
from kagent.offsets.decode_lines import READERS, answer, record

if TYPE_CHECKING:
    from kagent.settings import Cluster

POLL_SECONDS = 1.0


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "--kind",
    type=click.Choice(sorted(READERS)),
    default="record",
    show_default=True,
    metavar="KIND",
    help=f"What the lines of FILE hold: {', '.join(sorted(READERS))}.",
)
@click.option("--follow", is_flag=True, help="Read the live topic of the cluster instead of FILE.")
@click.option(
    "--from-beginning", is_flag=True, help="With --follow: all that the topic still has, then go on."
)
@click.option(
    "--group", "groups", multiple=True, help="Only records of this group; may be given several times."
)
@click.pass_context
def command(
    ctx: click.Context, file: BinaryIO, kind: str, follow: bool, from_beginning: bool, groups: tuple[str, ...]
) -> None:
    """Decode records of __consumer_offsets, one line of JSON each.

    FILE (standard input by default) has lines {"key_hex": …, "value_hex": … or null}; with --kind other than record
    {"hex": …}. What is malformed gives {"error": …}.
    """
    if follow:
        _, _, cluster = chosen(ctx)
        announce(f"Reading __consumer_offsets of {cluster.bootstrap} until Ctrl-C.")
        with ended_by_ctrl_c(ctx):
            _print(_live(cluster, from_beginning), groups)
    else:
        _print((_answer(number, line, kind) for number, line in lines(file)), groups)


def _print(found: Iterable[dict[str, Any]], groups: Collection[str]) -> None:
    for item in found:
        if not groups or _group(item) in groups:
            click.echo(json_line(item))


def _answer(number: int, line: bytes, kind: str) -> dict[str, Any]:
    decoded = answer(line, kind)
    return {**decoded, "error": f"line {number}: {decoded['error']}"} if "error" in decoded else decoded


def _group(item: dict[str, Any]) -> str | None:
    """The group of a record: the first field of every key."""
    # The key schemas call it group (offset commits, classic groups) or groupId (KIP-848 and later).
    key = item.get("key") or {}
    return key.get("group") or key.get("groupId")


def _live(cluster: Cluster, from_beginning: bool) -> Iterator[dict[str, Any]]:
    """The topic's records as they are committed; those of aborted transactions are never seen."""
    from kagent.kafka.offsets_topic import partitions, polled, reader

    with reader(cluster, partitions(admin_of(cluster)), from_beginning) as consumer:
        while True:
            # One record that cannot be decoded is a line with `error`, not the end of the stream.
            yield from map(_decoded, polled(consumer, POLL_SECONDS))


def _decoded(message: Any) -> dict[str, Any]:
    place = {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
    }
    try:
        return {**place, **record(message.key(), message.value())}
    except DecodeError as error:
        return {**place, "error": str(error)}
