"""``kagent partition``: where the producer's default partitioner puts keys, and what they do to a topic."""

from __future__ import annotations

import json
from typing import IO, Any

import click

from kagent.commands import input_lines as lines
from kagent.commands import output
from kagent.errors import InputError
from kagent.text import shown

MOST = 2**31 - 1


@click.command()
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option(
    "--partitions", type=click.IntRange(1, MOST), metavar="N", help="How many partitions the topic has."
)
@output.json_option("One line of JSON per key.")
@click.pass_context
def command(ctx: click.Context, keys: tuple[str, ...], partitions: int | None, as_json: bool) -> None:
    """Say which partition each KEY (as UTF-8) goes to, and how uneven the keys make the topic.

    Without a KEY, lines of {"key_hex": …, "n": …} are read from standard input, and each is answered by
    {"murmur2": …, "partition": …}. A line that cannot be read gets {"error": …}; the exit code is then 2.
    """
    if not keys:
        if _answer_lines(click.get_binary_stream("stdin"), partitions):
            ctx.exit(2)
        return
    if partitions is None:
        raise InputError("--partitions: say how many partitions the topic has")
    # Bytes of the command line that are not UTF-8 come as surrogates: back to the very bytes.
    encoded = [key.encode("utf-8", "surrogateescape") for key in keys]
    if as_json:
        for key in encoded:
            click.echo(json.dumps(_placed(key, partitions)))
    else:
        _print(keys, encoded, partitions)


def _placed(key: bytes, partitions: int) -> dict[str, int]:
    from kagent.strategies.partitioner import POSITIVE, murmur2

    hashed = murmur2(key)
    # Masked, not abs(): Utils.toPositive of the Java producer, as abs of the least int is negative.
    # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/common/utils/Utils.java
    return {"murmur2": hashed, "partition": (hashed & POSITIVE) % partitions}


def _answer_lines(file: IO[bytes], partitions: int | None) -> bool:
    failed = False
    for where, read in lines.objects(file):
        try:
            answer: dict[str, Any] = _placed(*_key_and_count(read, partitions))
        except InputError as error:
            failed = True
            answer = {"error": {"class": "InputError", "message": f"{where}: {error}"}}
        click.echo(json.dumps(answer))
    return failed


def _key_and_count(line: dict[str, Any] | InputError, partitions: int | None) -> tuple[bytes, int]:
    if isinstance(line, InputError):
        raise line
    try:
        key = bytes.fromhex(line["key_hex"])
    except (KeyError, TypeError, ValueError):
        raise InputError("key_hex: the bytes of the key in hex are expected") from None
    count = line.get("n", partitions)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST:
        raise InputError("n: a number of partitions is expected")
    return key, count


def _print(keys: tuple[str, ...], encoded: list[bytes], partitions: int) -> None:
    placed = [_placed(raw, partitions) for raw in encoded]
    output.print_table(
        ("key", "murmur2", "partition"),
        [(shown(k), str(p["murmur2"]), str(p["partition"])) for k, p in zip(keys, placed, strict=True)],
    )
    if len(keys) > 1:
        from kagent.strategies.partitioner import key_skew

        skew = key_skew(encoded, [1] * len(keys), partitions)
        fullest = int(skew.load.argmax())
        output.say(
            f"partition {fullest} gets {int(skew.load[fullest])} of {len(keys)} keys, "
            f"{skew.skew:.2f} times the mean of {partitions} partitions"
        )
