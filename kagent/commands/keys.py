"""``kagent keys TOPIC``: which keys make a partition hot, and what more partitions would change."""

from __future__ import annotations

from typing import Any

import click

from kagent.commands import completion, output
from kagent.commands.common import admin_of, chosen
from kagent.commands.output import Format, ListColumns, Record, print_table
from kagent.commands.spans import SPAN
from kagent.commands.spark import bar, started
from kagent.text import shown, span
from kagent.text_table import TableColumn

COLUMNS = (
    TableColumn("partition", "HOT PARTITION", right=True),
    TableColumn("times_mean", "× MEAN", right=True),
    TableColumn("key", "KEY", least=16),
    TableColumn("share", "SHARE OF PARTITION", rank=1, right=True),
)
LISTING = ListColumns(COLUMNS, ("partition", "times_mean", "key", "key_hex", "share"))
"""A partition with more than this times the mean is full; as ``hot`` has it."""


@click.command()
@click.argument("topic", shell_complete=completion.topics)
@click.option("--last", type=SPAN, default="1h", show_default=True, help="How far to look back.")
@click.option(
    "--sample",
    "most",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="Read at most this many records.",
)
@click.option("--bytes", "by_bytes", is_flag=True, help="Weigh by bytes instead of records.")
@click.option("--partitions", multiple=True, type=click.IntRange(min=1), help="Numbers of partitions to try.")
@click.option("--master", help="Spark's master.", default="local[*]", show_default=True)
@output.options
@click.pass_context
def command(
    ctx: click.Context,
    topic: str,
    last: float,
    most: int,
    by_bytes: bool,
    partitions: tuple[int, ...],
    master: str,
    form: Format,
) -> None:
    """Sample TOPIC and say which keys make a partition hot. Values are not looked at.

    --json prints one document; --output yaml or csv, --sort and --top are about the keys of hot partitions.
    """
    settings, _, cluster = chosen(ctx)
    with bar(f"Measuring {shown(topic)}"):
        from kagent.history.hot_keys import ranges_to_sample, sample
        from kagent.pipeline.spark_errors import errors_as_sentences

        ranges, seconds = ranges_to_sample(admin_of(cluster), topic, last, most)
    with started(settings, master, f"Sampling {shown(topic)}", delta=False) as spark, errors_as_sentences():
        # kagent's own prefix, so that the commits of this read are known as its own and not judged.
        group = f"{settings.topics.prefix}keys"
        found = sample(spark, cluster, topic, ranges, seconds, by_bytes, group)
    # Multiples: with them each partition's keys are split, and no two partitions are mixed (murmur2 modulo n).
    counts = partitions or tuple(found.partitions * n for n in (1, 2, 3, 4))
    if form.output == "json":
        click.echo(output.json_line(as_document(found, counts)))
    elif form.is_table:
        _print(found, counts, "bytes" if by_bytes else "records", form)
    else:
        output.print_list(form, LISTING, _records(found), _cells)


def as_document(found: Any, counts: tuple[int, ...]) -> dict[str, Any]:
    """The answer as JSON."""
    from kagent.history.hot_keys import FITS, hot, with_partition_counts

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
            {"partitions": c.partitions, "skew": c.skew, "bound": c.bound}
            for c in with_partition_counts(found, counts)
        ]
        if found.fit >= FITS
        else None,
    }


def without_hot_keys(load: Any, keyless: Any) -> str:
    """Why no key is listed: the partitions are even, or what fills the fullest one is no key that stands out."""
    from kagent.history.hot_keys import HOT

    if load.max() <= HOT * (load.mean() or 1.0):
        return f"No partition has more than {HOT:g} times the mean."
    bare = float(keyless[load.argmax()] / load.max())
    if bare >= 0.5:
        return f"Records without a key are {bare:.0%} of the fullest partition: the producer does not spread them evenly."
    return "No key stands out in the fullest partition: each of its keys has less than 1% of it."


def _records(found: Any) -> list[Record]:
    from kagent.history.hot_keys import hot

    return [
        {
            "partition": p,
            "times_mean": times,
            # Keys are bytes; key_hex beside it is exact.
            "key": key.decode(errors="backslashreplace"),
            "key_hex": key.hex(),
            "share": share,
        }
        for p, times, keys in hot(found)
        for key, share in keys
    ]


def _cells(record: Record) -> dict[str, str]:
    return {
        "partition": str(record["partition"]),
        "times_mean": f"{record['times_mean']:.2f}",
        "key": shown(record["key"]),
        "share": f"{record['share']:.1%}",
    }


def _print(found: Any, counts: tuple[int, ...], unit: str, form: Format) -> None:
    from kagent.history.hot_keys import FITS, with_partition_counts

    load = found.load
    output.say(
        f"{shown(found.topic)}: {found.records:,} records of the last {span(found.seconds)} in {found.partitions} "
        f"partitions; the fullest has {load.max() / load.mean():.2f} times the mean ({unit})."
    )
    records = _records(found)
    if records:
        output.print_list(form, LISTING, records, _cells)
        click.echo()
    else:
        output.say(without_hot_keys(load, found.keyless))
    # Predictions move keys by the default partitioner: for another one they would be made up.
    if found.fit < FITS:
        output.say(_unpredictable(found))
        return
    # Not called skew: that is a group's, as it is judged.
    print_table(
        ("partitions", "max/mean load", "least possible (one key is never split)"),
        [
            (str(c.partitions), f"{c.skew:.2f}", f"{c.bound:.2f}")
            for c in with_partition_counts(found, counts)
        ],
    )


def _unpredictable(found: Any) -> str:
    why = (
        "records without a key are not spread evenly"
        if found.uneven > found.misplaced
        else "the producer uses another one"
    )
    return (
        f"Only {found.fit:.0%} of the load lies where the Java producer's default partitioner puts it: {why}, "
        "so kagent cannot say what more partitions would change."
    )
