"""``kagent check``: is anything the matter with this cluster's groups? With nothing but its address."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kagent.commands import completion, output, unanswered
from kagent.commands.common import chosen
from kagent.commands.spans import SPAN
from kagent.contract.mute import is_pattern
from kagent.text import counted, few, shown, span

if TYPE_CHECKING:
    from kagent.check.judge_cluster import Checkup
    from kagent.contract.recommendation import Recommendation

FOUND, NOT_JUDGED = 1, 2


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
    1: something was found; 2: kagent could not judge: it saw no such group, or a broker does not answer. All others are judged.
    """
    settings, name, cluster = chosen(ctx)
    announce_rounds(cluster.bootstrap, seconds, quiet=as_json)
    from kagent.check.judge_cluster import UNSEEN, Checkup, chooser, findings_of, judged_groups
    from kagent.kafka.admin import Admin

    checkup = Checkup(
        Admin(cluster),
        name,
        settings.policies(),
        seconds,
        chooser((*groups, *also)),
        command_options=settings.command_options(name),
    )
    watch(checkup, quiet=as_json)
    found = findings_of(checkup)
    judged = judged_groups(checkup)
    missing = [name for name in (*groups, *also) if not is_pattern(name) and name not in judged]
    # A group whose coordinator does not answer is in no list.
    silent = {**checkup.unanswered, **checkup.admin.described_each(missing).failed}
    every = not (groups or also)
    unlisted = checkup.admin.without_coordinator() if every else {}
    incomplete = unanswered.report(silent, unlisted, checkup.unlisting if every else {}, checkup.unread)
    missing = [name for name in missing if name not in silent]
    if missing or not (judged or incomplete):
        output.say(_not_judged(missing, cluster.bootstrap), indent=2, err=True)
    from kagent.contract.recommendation import Recommendation

    for _, message in found:
        _tell(Recommendation.model_validate(message), as_json)
    summary = {
        "type": "check",
        "cluster": name,
        "judged": len(judged),
        "found": len(found),
        "seconds": seconds,
        "rounds": checkup.rounds,
        "not_seen": UNSEEN,
    }
    if as_json:
        click.echo(output.json_line(summary))
    else:
        output.say(
            f"{counted(len(judged), 'group')} judged over {seconds:.0f} s, {len(found)} with a finding."
        )
        output.say(f"Only the service sees {UNSEEN}.", indent=2)
    # To a script, quiet means that what it asked about was judged: a name with a typo is not quiet.
    ctx.exit(FOUND if found else NOT_JUDGED if missing or incomplete or not judged else 0)


def _not_judged(missing: Sequence[str], bootstrap: str) -> str:
    """Which groups were not judged, and what that may come from."""
    why = f"{bootstrap} shows no such group with commits, there is no right to DESCRIBE it, or the settings ignore it"
    if not missing:
        return f"No group was judged: {why}."
    return f"Not judged: {few([shown(name) for name in missing])}. {why[0].upper()}{why[1:]}."


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


def _tell(message: Recommendation, as_json: bool) -> None:
    if as_json:
        click.echo(output.escaped(message.model_dump_json(by_alias=True)))
        return
    from kagent.contract.words import VERDICTS

    words = VERDICTS[message.verdict].short
    output.say(f"{message.severity.value.upper()} {shown(message.group)}: {words}", indent=2)
    output.say(f"  {message.reason}", indent=2)
    for action in message.actions:
        # What cannot be done here is in --json; for people it would be noise between what can.
        if action.feasible != "no":
            output.say(f"  {'do' if action.feasible == 'yes' else 'perhaps'}: {action.how}", indent=4)
