"""``kagent check``: is anything the matter with this cluster's groups? With nothing but its address."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from kagent.commands import completion, output, unanswered
from kagent.commands.cluster_name import as_reported
from kagent.commands.common import admin_of, chosen
from kagent.commands.spans import SPAN
from kagent.contract.mute import MuteRecord, is_pattern
from kagent.errors import InputError, KafkaError
from kagent.kafka.names import run
from kagent.text import counted, few, shown, span

if TYPE_CHECKING:
    from kagent.check.judge_cluster import Checkup
    from kagent.contract.recommendation import Recommendation
    from kagent.settings import Settings

FOUND, NOT_JUDGED = 1, 2
MUTES_WITHIN_S = 5.0
"""Seconds for the cluster that has kagent's topics: the findings are the answer, which of them are muted is beside it."""


@click.command()
@click.argument("groups", nargs=-1, metavar="[GROUP]...", shell_complete=completion.groups)
@click.option("--group", "also", multiple=True, hidden=True, help="The same as the argument GROUP.")
@click.option("--for", "seconds", type=SPAN, default="3m", show_default=True, help="How long to look.")
@output.json_option("One line of JSON per finding, and one for the whole.")
@click.pass_context
def command(
    ctx: click.Context, groups: tuple[str, ...], also: tuple[str, ...], seconds: float, as_json: bool
) -> None:
    """Judge the groups of a cluster once, from outside; writes nothing.

    GROUP is a name, a glob or a /regex/; all groups without any. Exit code 0: every group that is meant was judged and is quiet;
    1: something was found; 2: kagent could not judge: it saw no such group, a broker does not answer, or a group is late and the
    look was too short to tell whether it stays so. All others are judged. Muted groups are judged too, and marked. A group
    without members in which records wait is listed; only where GROUP is its very name the exit code is 2, as such a job may
    just be at rest.
    """
    settings, name, cluster = chosen(ctx)
    announce_rounds(cluster.bootstrap, seconds, quiet=as_json)
    from kagent.check.judge_cluster import UNSEEN, Checkup, chooser, findings_of, judged_groups, unread_groups
    from kagent.check.short_look import unjudged

    checkup = Checkup(
        admin_of(cluster),
        name,
        settings.policies(),
        seconds,
        chooser((*groups, *also)),
        command_options=settings.command_options(name),
    )
    watch(checkup, quiet=as_json)
    found = findings_of(checkup)
    short = dict(unjudged(checkup))
    judged = [group for group in judged_groups(checkup) if group not in short]
    missing = [name for name in (*groups, *also) if not is_pattern(name) and name not in {*judged, *short}]
    # A group whose coordinator does not answer is in no list.
    silent = {**checkup.unanswered, **checkup.admin.described_each(missing).failed}
    every = not (groups or also)
    unlisted = checkup.admin.without_coordinator() if every else {}
    incomplete = unanswered.report(silent, unlisted, checkup.unlisting if every else {}, checkup.unread)
    missing = [name for name in missing if name not in silent]
    if missing or not (judged or short or incomplete):
        output.say(_not_judged(missing, cluster.bootstrap), indent=2, err=True)
    if short:
        output.say(too_short(short, seconds), indent=2, err=True)
    from kagent.contract.recommendation import Recommendation

    muted = _muted(settings, name, [group for group, _ in found])
    for group, message in found:
        _tell(Recommendation.model_validate(message), as_json, muted.get(group))
    unread = unread_groups(checkup)
    summary = {
        "type": "check",
        "cluster": name,
        "judged": len(judged),
        "found": len(found),
        "seconds": seconds,
        "rounds": checkup.rounds,
        "too_short_for": sorted(short),
        "needed_seconds": math.ceil(max(short.values())) if short else None,
        "without_members": unread,
        "muted": {group: mute.until for group, mute in muted.items()},
        "not_seen": UNSEEN,
    }
    if as_json:
        click.echo(output.json_line(summary))
    else:
        output.say(
            f"{counted(len(judged), 'group')} judged over {seconds:.0f} s, {len(found)} with a finding."
        )
        if unread:
            output.say(_unread(unread), indent=2)
        output.say(f"Only the service sees {UNSEEN}.", indent=2)
    # To a script, quiet means that what it asked about was judged: a name with a typo is not quiet.
    unread_asked = unread.keys() & {*groups, *also}
    unsure = missing or incomplete or short or unread_asked or not judged
    ctx.exit(FOUND if found else NOT_JUDGED if unsure else 0)


def _not_judged(missing: Sequence[str], bootstrap: str) -> str:
    """Which groups were not judged, and what that may come from."""
    why = f"{bootstrap} shows no such group with commits, there is no right to DESCRIBE it, or the settings ignore it"
    if not missing:
        return f"No group was judged: {why}."
    return f"Not judged: {few([shown(name) for name in missing])}. {why[0].upper()}{why[1:]}."


def too_short(short: Mapping[str, float], seconds: float) -> str:
    """Which groups are late and were not judged, and how long a look can tell."""
    names, enough = few([shown(name) for name in sorted(short)]), math.ceil(max(short.values()))
    return (
        f"Late, but not judged: {names}. A look of {span(seconds)} is too short to see whether a group stays late; "
        f"look for {enough} s or longer: --for {enough}s."
    )


def _unread(records: Mapping[str, int]) -> str:
    """In which groups records wait that no member reads."""
    names = few([f"{shown(group)} ({counted(waiting, 'record')})" for group, waiting in records.items()])
    return (
        f"Records wait, and the group has no members: {names}. The service reports that once it has lasted."
    )


def _muted(settings: Settings, cluster: str, groups: Sequence[str]) -> dict[str, MuteRecord]:
    """The mutes of these groups; none where there is no topic of mutes, or no right to read it."""
    if not groups:
        return {}
    from kagent.client.mutes_topic import current_mutes
    from kagent.kafka.admin import Admin

    home, topic, now_ms = settings.home_cluster(cluster), settings.topics.mutes, int(time.time() * 1000)
    try:
        if topic not in Admin(home, MUTES_WITHIN_S).topic_names():
            return {}
        mutes = run(current_mutes(home, topic))
        name = as_reported(settings, cluster)
    except (KafkaError, InputError):
        # Of several clusters it is not known which one this is.
        return {}
    found = ((group, mutes.of(name, group, now_ms)) for group in groups)
    return {group: mute for group, mute in found if mute}


def announce_rounds(bootstrap: str, seconds: float, quiet: bool) -> None:
    """Before the judgement is loaded, which takes as long as a person waits without a word."""
    if not quiet:
        output.announce(f"Looking at {bootstrap} for {span(seconds)}.")


def watch(checkup: Checkup, quiet: bool) -> None:
    """All rounds, with a bar on a terminal."""
    end = time.monotonic() + checkup.seconds
    with click.progressbar(
        length=max(1, int(checkup.seconds)),
        label="looking",
        file=click.get_text_stream("stderr"),
        hidden=quiet or not sys.stderr.isatty(),
    ) as bar:
        while True:
            began = time.monotonic()
            checkup.look()
            left = end - time.monotonic()
            bar.update(min(bar.length or 0, int(checkup.seconds - left)) - bar.pos)
            if left <= 0:
                return
            # What a round took is taken off, so that rounds keep their interval on a slow cluster.
            time.sleep(max(0.0, min(left, checkup.between - (time.monotonic() - began))))


def _tell(message: Recommendation, as_json: bool, mute: MuteRecord | None) -> None:
    if as_json:
        click.echo(output.escaped(message.model_dump_json(by_alias=True)))
        return
    from kagent.client.incident_text import clock
    from kagent.contract.words import VERDICTS

    words = VERDICTS[message.verdict].short
    note = f" (muted until {clock(mute.until)})" if mute else ""
    output.say(f"{message.severity.value.upper()} {shown(message.group)}: {words}{note}", indent=2)
    output.say(f"  {message.reason}", indent=2)
    for action in message.actions:
        # What cannot be done here is in --json; for people it would be noise between what can.
        if action.feasible != "no":
            output.say(f"  {'do' if action.feasible == 'yes' else 'perhaps'}: {action.how}", indent=4)
