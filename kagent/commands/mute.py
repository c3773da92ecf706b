"""``kagent mute GROUP``: silence a group, or all that match a pattern, for a while."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from kagent.active_mutes import covering, covers
from kagent.commands import completion, output
from kagent.commands.cluster_name import as_reported
from kagent.commands.common import admin_of, chosen, user
from kagent.commands.spans import SPAN
from kagent.contract.mute import MuteRecord, is_pattern
from kagent.errors import InputError, KafkaError
from kagent.group_key import group_key, split_key
from kagent.group_pattern import checked_pattern, is_expression, matches, whole_name
from kagent.kafka.names import run
from kagent.pattern_cost import affordable
from kagent.text import few, shown

if TYPE_CHECKING:
    from kagent.settings import Cluster

DEADLINE_S = 15.0
LISTED = 10


@click.command()
@click.argument("group", shell_complete=completion.groups)
@click.option("--for", "seconds", type=SPAN, default="2h", show_default=True, help="For how long.")
@click.option("--why", default="", help="The reason, for your colleagues.")
@click.option("--off", is_flag=True, help="Lift the mute.")
@click.option("--anyway", is_flag=True, help="Mute a group or pattern even if no group has that name yet.")
@click.pass_context
def command(ctx: click.Context, group: str, seconds: float, why: str, off: bool, anyway: bool) -> None:
    """Silence GROUP: nothing opens for it, and followers leave it alone.

    Of an incident that is open nothing new is published until the mute ends, but its end.

    GROUP is a name, a glob ("orders-*") or a /regex/. `kagent mutes` lists the mutes.
    """
    settings, name, cluster = chosen(ctx)
    if not group:
        raise InputError("Name the group that is to be muted.")
    home, topic = settings.home_cluster(name), settings.topics.mutes
    ctx.with_resource(output.waiting_for(home.bootstrap))
    name = as_reported(settings, name)
    if off:
        _lift(home, topic, name, group)
        return

    policies = settings.policies()
    existing = [g for g in admin_of(cluster).groups() if not policies(g).ignore]
    found = muted_groups(group, existing)
    if not found and not anyway:
        what = "matches the pattern" if is_pattern(group) else "is named"
        raise InputError(
            f"No group of {name} {what} {shown(group)}, or you have no right to see it, so nothing is muted; "
            f"{whole_name(group)}`kagent lag` lists the groups, --anyway mutes groups that come later."
        )
    until = int((time.time() + seconds) * 1000)
    # A group may be called like a pattern: then its name is meant.
    pattern = group if is_pattern(group) and group not in existing else None
    record = MuteRecord(until=until, why=why, by=user(), pattern=pattern).to_bytes()
    # A record for each group that matches now, found by a look-up of the group, and the pattern's own,
    # by which workers mute groups that come later.
    write(home, topic, {group_key(name, each): record for each in (*found, group)})
    listed = _list(name, [group_key(name, g) for g in found], group)
    output.say(f"{shown(group)} is muted until {_stamp(until)}{listed}.", indent=2)


def muted_groups(group: str, existing: Iterable[str]) -> list[str]:
    """The groups that a name or a pattern means: the one of that very name, else all that match."""
    names = sorted(existing)
    if group in names:
        return [group]
    if is_expression(group):
        _refuse_unusable(group)
    return [name for name in names if matches(group, name)] if is_pattern(group) else []


def _refuse_unusable(expression: str) -> None:
    """Raise InputError for an expression between slashes that is none, in the words of the settings, or that workers ignore."""
    try:
        checked_pattern(expression)
    except ValueError as error:
        raise InputError(f"{error}.") from error
    if not affordable(expression[1:-1]):
        raise InputError(
            f"{shown(expression)} may take long on some names, so workers ignore it. "
            "Write no repetition within another, and no more than three without a bound."
        )


def _lift(home: Cluster, topic: str, cluster: str, group: str) -> None:
    """End the mute, and say which of its groups another mute keeps silent."""
    from kagent.client.mutes_topic import current_mutes

    now_ms, mutes = int(time.time() * 1000), run(current_mutes(home, topic))
    # The topic keeps mutes that have ended.
    standing = {key: record for key, record in mutes.records.items() if record.until > now_ms}
    lifted = lifted_keys(standing, cluster, group)
    rest = {key: record for key, record in standing.items() if key not in lifted}
    still = still_muted(rest, cluster, group, lifted, now_ms)
    if not lifted:
        if still:
            raise InputError(_still(group, *still[group]))
        output.say(f"{shown(group)} is not muted; `kagent mutes` lists what is.")
        return
    write(home, topic, dict.fromkeys(lifted))
    if group not in still:
        output.say(f"{shown(group)} is no longer muted{_list(cluster, lifted, group)}.", indent=2)
    for name, (by, record) in [*still.items()][:LISTED]:
        output.say(_still(name, by, record), indent=2)
    if len(still) > LISTED:
        output.say(f"{len(still) - LISTED} more groups are still muted; `kagent mutes` lists the mutes.")


def lifted_keys(records: Mapping[str, MuteRecord], cluster: str, group: str) -> list[str]:
    """The keys whose mute ends: the group's or the pattern's own, and those that the pattern set."""
    own = group_key(cluster, group)
    by = records[own].pattern if own in records else None
    # Lifted for one group alone, the pattern would mute it all the same.
    if by is not None and by != group:
        raise InputError(_still(group, by, records[own]))
    return sorted(key for key, record in records.items() if _ends(key, record, cluster, group))


def _ends(key: str, record: MuteRecord, cluster: str, group: str) -> bool:
    # A pattern of the same name on another cluster is another mute.
    return key == group_key(cluster, group) or (record.pattern == group and split_key(key)[0] == cluster)


def still_muted(
    rest: Mapping[str, MuteRecord], cluster: str, group: str, lifted: Sequence[str], now_ms: int
) -> dict[str, tuple[str, MuteRecord]]:
    """Which group is muted by ``rest``, the mutes that stay: this one, or those that the pattern matches; by what, and that mute."""
    known = [name for of, name in map(split_key, (*rest, *lifted)) if of == cluster]
    meant = {group, *(name for name in known if is_pattern(group) and covers(group, name))}
    found = {}
    for name in sorted(name for name in meant if not is_pattern(name)):
        own = rest.get(group_key(cluster, name))
        mute = (own.pattern or name, own) if own else covering(rest, cluster, name, now_ms)
        if mute:
            found[name] = mute
    return found


def _still(group: str, by: str, record: MuteRecord) -> str:
    what = "by name" if by == group else f"by {shown(by)}"
    command = f"kagent mute {shlex.quote(shown(by))} --off"
    return f"{shown(group)} is still muted {what} until {_stamp(record.until)}; lift that with `{command}`."


def _stamp(until_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(until_ms / 1000))


def _list(cluster: str, keys: Iterable[str], group: str) -> str:
    names = [shown(key.removeprefix(f"{cluster}/"), 60) for key in keys if key != group_key(cluster, group)]
    if not names:
        return ""
    return f" ({len(names)} group{'' if len(names) == 1 else 's'}: {few(names, LISTED)})"


def write(cluster: Cluster, topic: str, records: dict[str, bytes | None]) -> None:
    """Write these records; None is a tombstone. Raises KafkaError if one was not taken."""
    from confluent_kafka import KafkaException, Producer

    from kagent.kafka.clients import confluent

    failed: list[str] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failed.append(str(error))

    # Else a broker with auto.create.topics.enable would make it, with its defaults and not compacted.
    if topic not in admin_of(cluster).topic_names():
        raise KafkaError(f"The topic {topic} does not exist: run `kagent topics` first.")
    # acks=all: a mute that is lost with its leader would page somebody after all.
    config = confluent(cluster, acks="all", log_level=0, **{"message.timeout.ms": int(DEADLINE_S * 1000)})
    try:
        producer = Producer(config)
        for key, value in records.items():
            producer.produce(topic, value, key.encode(), on_delivery=delivered)
        # Longer than message.timeout.ms, so that the reason comes by on_delivery first.
        left = producer.flush(DEADLINE_S + 5)
    except KafkaException as error:
        raise KafkaError(f"The mute cannot be written to {topic}: {error}.") from error
    if failed or left:
        why = failed[0] if failed else "no answer in time"
        raise KafkaError(f"The mute cannot be written to {topic} ({why}): check the right to write it.")
