"""``kagent status``: does kagent itself work? Five lines, and an exit code for scripts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from kagent.client.incident_text import age, counted_groups, in_first_hour, is_old
from kagent.commands import output
from kagent.commands.cluster_name import clusters_of, reported_name
from kagent.commands.common import chosen
from kagent.contract.recommendation import SEVERITY_RANK, Recommendation, State, Status
from kagent.contract.state_advice import what_to_do
from kagent.contract.words import VERDICTS
from kagent.kafka.names import run
from kagent.text import few, shown

WELL, FINDINGS, TROUBLE = 0, 1, 2
NO_STATE = "no worker has ever reported: run `kagent up`, or `kagent pipeline` and `kagent worker`"


@click.command()
@output.json_option("One line of JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Say in five lines whether kagent itself works, and what to do if not.

    Exit code 0: kagent works and no incident is open; 1: it works and incidents are open; 2: kagent or the cluster is in
    trouble, so that the groups are not known.
    """
    settings, name, _ = chosen(ctx)
    from kagent.client.client import current
    from kagent.kafka.reach import refuse_absent

    home = settings.home_cluster(name)
    refuse_absent(home.bootstrap)
    with output.waiting_for(home.bootstrap):
        found = run(current(home, settings.topics.recommendations))
    name = reported_name(settings, name, clusters_of(found))
    state = found.get(name)
    standing = [
        message
        for message in found.values()
        if isinstance(message, Recommendation)
        and message.cluster == name
        and message.status is not Status.RESOLVED
    ]
    answer = facts(name, state if isinstance(state, State) else None, standing, int(time.time() * 1000))
    if as_json:
        click.echo(output.json_line(answer))
    else:
        for title, words in answer["lines"].items():
            output.say(f"{title:<10} {words}", indent=11)
    ctx.exit(answer["exit_code"])


def facts(
    cluster: str, state: State | None, standing: Sequence[Recommendation], now_ms: int
) -> dict[str, Any]:
    """What is printed, and the exit code. ``now_ms``: ms since the epoch."""
    if state is None:
        lines = {"kagent": f"does not run: {NO_STATE}"}
        return {"cluster": cluster, "status": "absent", "exit_code": TROUBLE, "lines": lines}
    # The last state message stays on the compacted topic when all workers are gone: its age counts.
    silent = is_old(state, now_ms)
    well = state.status == "watching" and not silent
    # Trouble outweighs incidents: while groups are not known, those are of the past.
    code = TROUBLE if not well else FINDINGS if standing else WELL
    lines = {
        "kagent": _works(state, silent, now_ms),
        "pipeline": _delay(state),
        "workers": f"{state.workers}, version {state.version}, last report {age(now_ms - state.time)} ago",
        "groups": counted_groups(state),
        "incidents": _open(standing),
    }
    values = state.model_dump(mode="json", exclude={"schema_version"})
    return {**values, "silent": silent, "exit_code": code, "open": len(standing), "lines": lines}


def _works(state: State, silent: bool, now_ms: int) -> str:
    if silent:
        return f"does not run: no worker has reported for {age(now_ms - state.time)}; start `kagent worker` or `kagent up`"
    if state.status == "watching":
        later = f". {in_first_hour(state.learning, state.learning_until)}" if state.learning else ""
        return f"works: {shown(state.cluster)} is watched{later}"
    words = "is catching up" if state.status == "catching_up" else "is blind"
    advice = what_to_do(state.status, state.reason)
    return ". ".join(filter(None, [f"{words}: {state.reason}" if state.reason else words, advice]))


def _delay(state: State) -> str:
    if state.oldest_progress is None:
        return "no progress has been seen; is `kagent pipeline` running?"
    if state.status != "watching":
        # Progress is sent beside Spark: fresh progress of a pipeline that reads nothing would look like a pipeline that keeps up.
        return f"last heard of {age(state.time - state.oldest_progress)} before the workers' last report"
    # At the report: until now it would grow by the report's age, up to 30 s, while the pipeline keeps up.
    return f"{age(state.time - state.oldest_progress)} behind the cluster at the last report"


def _open(standing: Sequence[Recommendation]) -> str:
    if not standing:
        return "none open"
    worst = sorted(standing, key=lambda r: (SEVERITY_RANK[r.severity], r.opened_at))
    names = [f"{shown(r.group, 64)} ({VERDICTS[r.verdict].short})" for r in worst]
    return f"{len(worst)} open: {few(names, 3)}; `kagent watch` shows them"
