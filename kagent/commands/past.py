"""What the commands that look at the past share: their options, the range of time, the policies, the rows."""

from __future__ import annotations

import functools
import glob
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from kagent import group_pattern, own_groups
from kagent.commands import completion
from kagent.commands.common import effective
from kagent.commands.spans import Span
from kagent.commands.spark import started
from kagent.durations import meant, to_seconds, to_text
from kagent.errors import InputError, SettingsError
from kagent.history.past_range import History, Range, place_of
from kagent.policy import Policies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kagent.settings import Settings


@dataclass(frozen=True, slots=True)
class Past:
    """What a command was asked to look at: a history, or a dump and log ends beside it. ``group``: a glob, None: all."""

    settings: Settings
    cluster: str
    within: Range
    group: str | None
    path: str | None
    dump: str | None
    ends: str | None
    master: str

    @contextmanager
    def rows(self) -> Iterator[DataFrame]:
        """The rows, on a Spark session that ends with them. Raises InputError or SettingsError."""
        # A dump needs no history, and the settings may have none.
        history = None if self.dump else place_of(self.settings, self.path)
        refuse_missing(self.dump, self.ends)
        if history is not None:
            refuse_no_history(history)
        with started(self.settings, self.master, "Replaying the past") as spark:
            from kagent.history.backtest import of_dump, of_history

            if history is None:
                yield of_dump(spark, str(self.dump), self.ends, self.cluster)
            else:
                yield of_history(spark, history, self.cluster, self.within)


def refuse_missing(*places: str | None) -> None:
    """Refuse before Spark starts what it would find missing minutes later. Raises InputError; URLs are left to Spark."""
    for place in places:
        # Spark takes globs and URLs; only a plain path can be looked for here.
        if place and "://" not in place and not Path(place).exists() and not glob.has_magic(place):
            raise InputError(f"{place} does not exist: there is no history to read.")


def refuse_no_history(history: History) -> None:
    """Refuse a folder without a history's tables before Spark starts. Raises InputError; URLs are left to Spark."""
    refuse_missing(history.place)
    if "://" not in history.place and not Path(history.table("lag")).exists():
        raise InputError(f"There is no history at {history.place}: it has no table of lag.")


def options(tick: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that say which past, given to the command as one :class:`Past`, its first argument."""
    asked = (
        click.option(
            "--since",
            "--from",
            "start",
            default="7d",
            show_default=True,
            metavar="TIME",
            help="Begin: 7d ago, 12h ago, or an ISO time (UTC).",
        ),
        click.option("--until", "--to", "end", default="now", show_default=True, metavar="TIME", help="End."),
        click.argument("group", required=False, shell_complete=completion.groups),
        click.option("--group", "also", hidden=True, help="The same as the argument GROUP."),
        click.option("--path", help="Folder or URL of the history."),
        click.option(
            "--dump", help="A raw dump of __consumer_offsets (Parquet or JSON lines) instead of a history."
        ),
        click.option("--ends", help="Log ends beside the dump: topic, partition, time, log_end."),
        click.option(
            "--tick",
            type=Span(least=1.0),
            default=tick,
            show_default=to_text(tick),
            help="Time between judgements.",
        ),
        click.option("--master", default="local[*]", show_default=True, help="Spark's master."),
    )

    def given(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        @click.pass_context
        def run(
            ctx: click.Context, /, start: str, end: str, tick: float, also: str | None, **more: Any
        ) -> None:
            settings = effective(ctx)
            name = cluster_name(settings, (ctx.find_root().obj or {}).get("cluster"))
            about = {field: more.pop(field) for field in ("group", "path", "dump", "ends", "master")}
            about["group"] = about["group"] or also
            if about["group"]:
                # Refused here if it is no pattern, not minutes later by Spark.
                group_pattern.check(about["group"])
            command(Past(settings, name, between(start, end, tick), **about), **more)

        made: Callable[..., None] = run
        # Decorators apply from the inside: reversed, help lists them in the order above.
        for option in reversed(asked):
            made = option(made)
        return made

    return given


def moment(text: str, now: int | None = None) -> int:
    """A time as ms since 1970: ``7d`` or ``90s`` (ago), ``now``, or an ISO date or time (UTC if it names no zone)."""
    now = int(time.time() * 1000) if now is None else now
    if text == "now":
        return now
    if re.fullmatch(r"\d+(s|m|min|h|d)", text):
        return now - round(to_seconds(text) * 1000)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no time: write 7d, 12h, now, 2026-01-31 or 2026-01-31T12:00{meant(text) or '.'}"
        ) from None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)


def between(start: str, end: str, tick: float) -> Range:
    """The range of these two moments. Raises InputError if it is empty."""
    first, last = moment(start), moment(end)
    if last <= first:
        raise InputError(f"The range is empty: {end} is not after {start}.")
    return Range(first, last, int(tick * 1000))


def policies(settings: Settings, files: Sequence[str]) -> dict[str, Policies]:
    """The policies to judge by, named by their files; without files those of the settings."""
    if not files:
        return {"settings": settings.policies()}
    own = own_groups.patterns(settings.topics.app)
    return {Path(file).stem: _policies(Path(file), own) for file in files}


def _policies(path: Path, own: Sequence[str]) -> Policies:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise InputError(f"The policy file {path} cannot be read ({error.strerror}).") from error
    except yaml.YAMLError as error:
        raise InputError(f"The policy file {path} is not YAML.") from error
    # A whole settings file is refused, rather than read in part without a word.
    if not isinstance(raw, dict) or set(raw) - {"policy", "groups", "ignore"}:
        raise InputError(
            f"The policy file {path} may hold policy, groups and ignore, as the settings file does."
        )
    from kagent.settings import GroupSettings

    try:
        groups: list[Any] = [GroupSettings(**entry) for entry in raw.get("groups", [])]
        return Policies(raw.get("policy", {}), groups, (*raw.get("ignore", []), *own))
    except (SettingsError, TypeError, ValueError) as error:
        raise InputError(f"The policy file {path}: {str(error).splitlines()[0]}") from error


def cluster_name(settings: Settings, asked: str | None) -> str:
    """The cluster whose past it is: a dump needs no configured one."""
    if asked:
        return asked
    return next(iter(settings.clusters), "main")
