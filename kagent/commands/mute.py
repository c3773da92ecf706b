"""``kagent mute GROUP``: ask for silence about a group; a record on the mutes topic."""

from __future__ import annotations

import getpass
import time

import click
import orjson

from kagent.commands.common import chosen
from kagent.commands.spans import SPAN
from kagent.errors import InputError, KafkaError
from kagent.group_key import group_key
from kagent.settings import Cluster
from kagent.text import shown

DEADLINE = 15.0


@click.command()
@click.argument("group")
@click.option("--for", "seconds", type=SPAN, default="2h", show_default=True, help="For how long.")
@click.option("--why", default="", help="Why, for those who come after.")
@click.option("--off", is_flag=True, help="Take the mute back.")
@click.pass_context
def command(ctx: click.Context, group: str, seconds: float, why: str, off: bool) -> None:
    """Ask for silence about GROUP: nothing opens for it, and alerts and followers leave it alone."""
    settings, name, _ = chosen(ctx)
    if not group:
        raise InputError("Name the group that is to be muted.")
    value = None if off else mute_record(time.time(), seconds, why, _user())
    _write(settings.home_cluster(name), settings.topics.mutes, group_key(name, group), value)
    until = "" if off else time.strftime(" until %Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() + seconds))
    click.echo(f"{shown(group)} is {'no longer muted' if off else 'muted'}{until}.")


def mute_record(now: float, seconds: float, why: str, by: str) -> bytes:
    """The record's value: {"until": ms since the epoch, "why", "by"}; a tombstone takes it back."""
    return orjson.dumps({"until": int((now + seconds) * 1000), "why": why[:500], "by": by[:100]})


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _write(cluster: Cluster, topic: str, key: str, value: bytes | None) -> None:
    from confluent_kafka import KafkaException, Producer

    from kagent.kafka.clients import confluent

    failed: list[str] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failed.append(str(error))

    config = confluent(cluster, acks="all", log_level=0, **{"message.timeout.ms": int(DEADLINE * 1000)})
    try:
        producer = Producer(config)
        producer.produce(topic, value, key.encode(), on_delivery=delivered)
        left = producer.flush(DEADLINE + 5)
    except KafkaException as error:
        raise KafkaError(f"The mute could not be written to {topic}: {error}.") from error
    if failed or left:
        why = failed[0] if failed else "no answer in time"
        raise KafkaError(
            f"The mute could not be written to {topic} ({why}): run `kagent topics`, and check the right to write."
        )
