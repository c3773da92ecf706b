"""``kagent keys TOPIC``: which keys make a partition hot, and what more partitions would change."""

from __future__ import annotations

from typing import Any

import click
import orjson

from kagent.commands import completion
from kagent.commands.common import chosen
from kagent.commands.output import print_table
from kagent.commands.spans import SPAN
from kagent.commands.spark import started
from kagent.text import shown


@click.command()
@click.argument("topic", shell_complete=completion.topics)
@click.option("--last", type=SPAN, default="1h", show_default=True, help="How far to look back.")
@click.option(
    "--sample",
    "most",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="At most so many records.",
)
@click.option("--bytes", "by_bytes", is_flag=True, help="Weigh by bytes instead of records.")
@click.option("--partitions", multiple=True, type=click.IntRange(min=1), help="Numbers of partitions to try.")
@click.option("--master", help="Spark's master.", default="local[*]", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    topic: str,
    last: float,
    most: int,
    by_bytes: bool,
    partitions: tuple[int, ...],
    master: str,
    as_json: bool,
) -> None:
    """Sample TOPIC and say which keys make a partition hot. Values are not looked at."""
    settings, _, cluster = chosen(ctx)
    from kagent.history.hot_keys import sample, stretch
    from kagent.kafka.admin import Admin
    from kagent.pipeline.spark_errors import told

    ranges, seconds = stretch(Admin(cluster), topic, last, most)
    with started(settings, master, f"Sampling {shown(topic)}", delta=False) as spark, told():
        group = f"{settings.topics.prefix}keys"
        found = sample(spark, cluster, topic, ranges, seconds, by_bytes, group)
    counts = partitions or tuple(found.partitions * n for n in (1, 2, 3, 4))
    if as_json:
        click.echo(orjson.dumps(as_document(found, counts)).decode())
    else:
        _print(found, counts, "bytes" if by_bytes else "records")


def as_document(found: Any, counts: tuple[int, ...]) -> dict[str, Any]:
    """The answer as JSON."""
    from kagent.history.hot_keys import FITS, changes, hot

    load = found.load
    return {
        "topic": found.topic,
        "partitions": found.partitions,
        "records": found.records,
        "seconds": found.seconds,
        "load": load.tolist(),
        "skew": float(load.max() / load.mean()),
        "hot": [
            {"partition": p, "times_mean": times, "keys": [{"key_hex": k.hex(), "share": s} for k, s in keys]}
            for p, times, keys in hot(found)
        ],
        "default_partitioner": found.fit,
        "changes": [
            {"partitions": c.partitions, "skew": c.skew, "bound": c.bound} for c in changes(found, counts)
        ]
        if found.fit >= FITS
        else None,
    }


def _no_hot_keys(load: Any) -> str:
    """Why no key is listed: the partitions are even, or the records of the full ones have no key that stands out."""
    if load.max() <= 1.2 * load.mean():
        return "No partition has more than 1.2 times the mean."
    return "The full partitions have no key that stands out; the records may have no keys at all."


def _print(found: Any, counts: tuple[int, ...], unit: str) -> None:
    from kagent.history.hot_keys import FITS, changes, hot

    load = found.load
    click.echo(
        f"{shown(found.topic)}: {found.records:,} records of the last {found.seconds:,.0f} s in {found.partitions} "
        f"partitions; the fullest has {load.max() / load.mean():.2f} times the mean ({unit})."
    )
    rows = [
        (str(p), f"{times:.2f}", shown(key.decode(errors="backslashreplace"), 60), f"{share:.1%}")
        for p, times, keys in hot(found)
        for key, share in keys
    ]
    if rows:
        print_table(("hot partition", "× mean", "key", "share of partition"), rows)
    else:
        click.echo(_no_hot_keys(load))
    if found.fit < FITS:
        click.echo(
            f"Only {found.fit:.0%} lies where the Java producer's default partitioner would put it: the producer uses "
            "another one, so kagent cannot say what more partitions would change."
        )
        return
    print_table(
        ("partitions", "skew", "least possible (one key is never split)"),
        [(str(c.partitions), f"{c.skew:.2f}", f"{c.bound:.2f}") for c in changes(found, counts)],
    )
