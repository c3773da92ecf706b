"""``kagent explain GROUP``: the story of one group, from the worker that owns it or from the live cluster."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import click

from kagent.commands import completion, output, unanswered
from kagent.commands.check import announce_rounds, too_short, watch
from kagent.commands.common import admin_of, chosen
from kagent.commands.spans import SPAN
from kagent.errors import InputError, KafkaError
from kagent.text import did_you_mean, shown

if TYPE_CHECKING:
    from kagent.kafka.descriptions import Key
    from kagent.settings import Cluster, HttpSettings, Settings

PATIENCE = 25.0
"""Seconds for a worker that was named: it asks the others, and waits for them."""
KNOCK = 3.0
"""Seconds for a worker that may not run at all."""


@click.command()
@click.argument("group", shell_complete=completion.groups)
@click.option(
    "--worker",
    "--from",
    "source",
    metavar="URL",
    help="A worker's address; by default the settings' own, if one answers there.",
)
@click.option("--live", is_flag=True, help="Look at the cluster itself, whatever a worker knows.")
@click.option(
    "--for", "seconds", type=SPAN, default="60s", show_default=True, help="How long to look, if live."
)
@output.json_option("One line of JSON.")
@click.pass_context
def command(
    ctx: click.Context, group: str, source: str | None, live: bool, seconds: float, as_json: bool
) -> None:
    """Explain GROUP: who is behind, since when, by what evidence, what to do, what every strategy would give.

    A running worker knows its past; without one, kagent observes the cluster for a while. Exit code 2: the log ends of some of its
    partitions are not known, as their leader does not answer, or it is late and the look was too short to tell whether it stays so.
    """
    if source and live:
        raise InputError(
            "--worker and --live exclude each other: a worker knows the past, a live look does not."
        )
    settings, name, cluster = chosen(ctx)
    url = source or worker_url(settings)
    story = (
        None
        if live
        else worker_story(
            url,
            AskedGroup.of(settings, name, group),
            PATIENCE if source else KNOCK,
            bool(source),
            settings.worker.http,
        )
    )
    seen = f"As the worker at {url} judged it{_at(story)}."
    unread: dict[Key, str] = {}
    short: dict[str, float] = {}
    if story is None:
        story, unread, short = _look(settings, name, cluster, group, seconds, as_json)
        from kagent.check.judge_cluster import UNSEEN

        seen = f"Seen from outside for {seconds:.0f} s. Only the service sees {UNSEEN}."
    if as_json:
        click.echo(output.json_line(story))
    else:
        _print_story(story, seen)
    if short:
        output.say(too_short(short, seconds), indent=2, err=True)
    if unanswered.report({}, {}, unread=unread) or short:
        ctx.exit(2)


def _print_story(story: dict[str, Any], seen: str) -> None:
    from kagent.incident.explanation_text import lines

    for line in lines(story):
        _print_line(shown(line, 2000))
    output.say(seen, indent=2)


def _print_line(line: str) -> None:
    output.say(line, indent=len(line) - len(line.lstrip()) + 2)


def _at(story: dict[str, Any] | None) -> str:
    """When it was judged: numbers of two moments differ."""
    as_of = (story or {}).get("as_of")
    return f" at {time.strftime('%H:%M:%S UTC', time.gmtime(as_of / 1000))}" if as_of else ""


def _look(
    settings: Settings, name: str, cluster: Cluster, group: str, seconds: float, quiet: bool
) -> tuple[dict[str, Any], dict[Key, str], dict[str, float]]:
    """The story, the partitions whose log ends are not known, with why, and, if the look was too short for the group, how long one
    must be, s."""
    announce_rounds(cluster.bootstrap, seconds, quiet)
    from kagent.check.judge_cluster import Checkup
    from kagent.check.short_look import unjudged
    from kagent.incident.explanation import explain

    admin = admin_of(cluster)
    # Asked first: a minute of looking for a name with a typo would end with the same sentence.
    known = admin.groups()
    if group not in known:
        # A coordinator that does not answer lists none of its groups; this raises a sentence that says so.
        admin.described([group])
        raise InputError(
            f"There is no group {shown(group)} on this cluster (or no right to see it){did_you_mean(group, known)}"
        )
    checkup = Checkup(
        admin,
        name,
        settings.policies(),
        seconds,
        lambda known: known == group,
        command_options=settings.command_options(name),
    )
    watch(checkup, quiet=quiet)
    if group not in checkup.groups:
        raise InputError(f"The group {shown(group)} is left out by the settings, or may not be described.")
    return explain(*checkup.explained(group)), checkup.unread, dict(unjudged(checkup))


def worker_url(settings: Settings) -> str:
    """Where the settings' worker listens, as seen from here."""
    worker = settings.worker
    host = worker.advertised_host or (
        # 0.0.0.0 and :: are addresses to listen on, not to connect to.
        "127.0.0.1" if worker.web_host in ("", "0.0.0.0", "::") else worker.web_host
    )
    scheme = "https" if worker.http.cert_file else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host.strip('[]') and not host.startswith('[') else host}:{worker.web_port}"


def _no_login() -> HttpSettings:
    from kagent.settings import HttpSettings

    return HttpSettings()


@dataclass(frozen=True, slots=True)
class AskedGroup:
    """Which group is meant. ``cluster``: None where only an address was given; ``address``: None where no address was given."""

    group: str
    cluster: str | None
    address: str | None = None

    @classmethod
    def of(cls, settings: Settings, cluster: str, group: str) -> Self:
        """The group of the cluster that the command was given."""
        address = settings.clusters[cluster].bootstrap if settings.is_addressed else None
        return cls(group, None if settings.name_is_guess else cluster, address)

    def is_in(self, answer: Mapping[str, Any]) -> bool:
        """Whether a worker's answer is about it: groups of one name can exist on several clusters."""
        if self.cluster is not None and answer.get("cluster") != self.cluster:
            return False
        # A worker of an earlier release does not say where its cluster is.
        known = re.split(r"[\s,']+", answer["story"].get("tool_options") or self.address or "")
        return self.address is None or any(each in known for each in self.address.split(","))


def worker_story(
    url: str, meant: AskedGroup, patience: float, wanted: bool, login: HttpSettings | None = None
) -> dict[str, Any] | None:
    """The worker's story of a group, None if it has none. Raises InputError or KafkaError if that worker was ``wanted``."""
    group = meant.group
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{shown(url)} is not a worker's address: http://HOST:PORT is expected.")
    login = login or _no_login()
    # The older API: a worker of an earlier release answers it too.
    address = f"{url.rstrip('/')}/api/groups/{quote(group, safe='')}"
    request = urllib.request.Request(address, headers=login.login_headers())
    try:
        with urllib.request.urlopen(request, timeout=patience, context=login.client_tls()) as answer:
            groups = json.load(answer)["groups"]
    except urllib.error.HTTPError as error:
        # The worker speaks for all workers: a 404 is about the group, and looking elsewhere would mislead.
        if wanted and error.code == 404:
            raise InputError(f"The worker at {url} does not know the group {shown(group)}.") from error
        problem = f"answers with HTTP {error.code}"
    # URLError is an OSError; HTTPException is raised by what speaks no HTTP.
    except (OSError, http.client.HTTPException):
        problem = "cannot be reached"
    except (ValueError, KeyError, TypeError):
        problem = "gives an answer that cannot be read: it is no kagent worker"
    else:
        stories: list[dict[str, Any]] = [g["story"] for g in groups if g.get("story") and meant.is_in(g)]
        if stories or not wanted:
            return stories[0] if stories else None
        where = meant.cluster or meant.address or ""
        problem = f"has no answer about {shown(group)} on the cluster {shown(where)}"
    if wanted:
        raise KafkaError(f"The worker at {url} {problem}.")
    return None
