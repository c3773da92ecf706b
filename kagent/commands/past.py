"""What the commands that look at the past share: the range of time, the policies, the rows."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kagent.advice.policy import Policies
from kagent.errors import InputError, SettingsError
from kagent.settings import GroupSettings, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kagent.pipeline.backtest import Range

UNITS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


def moment(said: str, now: int | None = None) -> int:
    """A time as ms since 1970: ``7d`` (so long ago), ``now``, or an ISO date or time (UTC if it names no zone)."""
    now = int(time.time() * 1000) if now is None else now
    ago = re.fullmatch(r"(\d+)([mhd])", said)
    if ago:
        return now - int(ago[1]) * UNITS[ago[2]]
    if said == "now":
        return now
    try:
        parsed = datetime.fromisoformat(said)
    except ValueError:
        raise InputError(
            f"{said!r} is no time: write 7d, 12h, now, 2026-01-31 or 2026-01-31T12:00."
        ) from None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)


def between(start: str, end: str, tick: float) -> Range:
    """The range of these two moments. Raises InputError if it is empty."""
    from kagent.pipeline.backtest import Range

    first, last = moment(start), moment(end)
    if last <= first:
        raise InputError(f"The range is empty: {end} is not after {start}.")
    return Range(first, last, int(tick * 1000))


def policies(settings: Settings, files: Sequence[str]) -> dict[str, Policies]:
    """The policies to judge by, named by their files; without files those of the settings."""
    if not files:
        groups: list[Any] = list(settings.groups)
        return {"settings": Policies(settings.policy, groups, settings.ignore)}
    return {Path(file).stem: _policies(Path(file)) for file in files}


def _policies(path: Path) -> Policies:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise InputError(f"The policy file {path} cannot be read ({error.strerror}).") from error
    except yaml.YAMLError as error:
        raise InputError(f"The policy file {path} is not YAML.") from error
    if not isinstance(raw, dict) or set(raw) - {"policy", "groups", "ignore"}:
        raise InputError(
            f"The policy file {path} may hold policy, groups and ignore, as the settings file does."
        )
    try:
        groups: list[Any] = [GroupSettings(**entry) for entry in raw.get("groups", [])]
        return Policies(raw.get("policy", {}), groups, raw.get("ignore", []))
    except (SettingsError, TypeError, ValueError) as error:
        raise InputError(f"The policy file {path}: {str(error).splitlines()[0]}") from error


def rows_of(
    spark: SparkSession,
    settings: Settings,
    cluster: str,
    path: str | None,
    dump: str | None,
    ends: str | None,
    within: Range,
) -> DataFrame:
    """The rows of a dump, or of the history. Raises InputError or SettingsError."""
    from kagent.pipeline.backtest import of_dump, of_history
    from kagent.pipeline.keeper import place_of

    if dump:
        return of_dump(spark, dump, ends, cluster)
    return of_history(spark, place_of(settings, path), cluster, within)


def cluster_name(settings: Settings, asked: str | None) -> str:
    """The cluster whose past it is: a dump needs no configured one."""
    if asked:
        return asked
    return next(iter(settings.clusters), "main")
