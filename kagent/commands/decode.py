"""``kagent decode``: records of ``__consumer_offsets`` as JSON, from lines of hex or from the live topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import click
import orjson
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as Code

from kagent.commands.common import chosen
from kagent.commands.lines import lines
from kagent.errors import KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.clients import confluent
from kagent.offsets import DecodeError
from kagent.offsets.lines import READERS, answer, record
from kagent.settings import Cluster

SOURCE = "__consumer_offsets"
POLL_SECONDS = 1.0
FATAL = {Code.TOPIC_AUTHORIZATION_FAILED, Code.GROUP_AUTHORIZATION_FAILED, Code.UNKNOWN_TOPIC_OR_PART}


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "--kind",
    type=click.Choice(sorted(READERS)),
    default="record",
    show_default=True,
    help="What the lines of FILE hold.",
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
        found = _live(cluster, from_beginning)
    else:
        found = (_answer(number, line, kind) for number, line in lines(file))
    for item in found:
        if not groups or _group(item) in groups:
            click.echo(_line(item))


def _answer(number: int, line: bytes, kind: str) -> dict[str, Any]:
    told = answer(line, kind)
    return {**told, "error": f"line {number}: {told['error']}"} if "error" in told else told


def _line(item: dict[str, Any]) -> str:
    """JSON in which what a terminal would not show, or would obey, is escaped: names are anybody's text."""
    text = orjson.dumps(item).decode()
    return (
        text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    )


def _group(item: dict[str, Any]) -> str | None:
    """The group of a record: the first field of every key."""
    key = item.get("key") or {}
    return key.get("group") or key.get("groupId")


def _live(cluster: Cluster, from_beginning: bool) -> Iterator[dict[str, Any]]:
    """The topic's records as they are committed; those of aborted transactions are never seen."""
    partitions = Admin(cluster).topic_names().get(SOURCE)
    if not partitions:
        raise KafkaError(
            f"{cluster.bootstrap} shows no {SOURCE}: no group has committed yet, or a right to read it is missing "
            "(`kagent acls` prints what is needed)."
        )
    config = {
        "group.id": "kagent-decode",  # asked for by the client; no group is joined and nothing committed
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 100,
    }
    start = OFFSET_BEGINNING if from_beginning else OFFSET_END
    consumer = Consumer(confluent(cluster, **config))
    try:
        consumer.assign([TopicPartition(SOURCE, p, start) for p in range(partitions)])
        while True:
            yield from _polled(consumer)
    except KafkaException as error:
        raise KafkaError(
            f"{SOURCE} of {cluster.bootstrap} cannot be read ({error.args[0].str()})."
        ) from error
    finally:
        consumer.close()


def _polled(consumer: Consumer) -> Iterator[dict[str, Any]]:
    for message in consumer.consume(500, POLL_SECONDS):
        problem = message.error()
        if problem is None:
            yield _said(message)
        elif problem.fatal() or problem.code() in FATAL:
            raise KafkaException(problem)


def _said(message: Any) -> dict[str, Any]:
    place = {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
    }
    try:
        return {**place, **record(message.key(), message.value())}
    except DecodeError as error:
        return {**place, "error": str(error)}
