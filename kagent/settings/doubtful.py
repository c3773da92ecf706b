"""Notes about settings that are right and likely not what was meant: for those who ask, as each may be on purpose."""

from __future__ import annotations

from collections.abc import Iterator

from kagent.durations import to_text
from kagent.policy import make_policy
from kagent.settings.alert_destinations import is_local
from kagent.settings.all_settings import Settings
from kagent.settings.given_settings import GivenSettings
from kagent.settings.pipeline_settings import PipelineSettings
from kagent.settings.settings_file import Where
from kagent.settings.worker_settings import WorkerSettings

ANY_HOST = ("0.0.0.0", "::")


def doubtful(settings: Settings, given: GivenSettings) -> Iterator[str]:
    """A sentence for each."""
    for where, why in _doubts(settings):
        place, setting = given.place(where), ".".join(map(str, where))
        yield f"{f'{place}: ' if place else ''}{setting}: {why}."


def _doubts(settings: Settings) -> Iterator[tuple[Where, str]]:
    yield from _ports(settings.worker, settings.pipeline)
    if not settings.topics.prefix:
        yield (
            ("topics", "prefix"),
            f"is empty, so kagent owns topics named {settings.topics.mutes}; the default is kagent-",
        )
    for name in ("redact_salt", "redact_salt_file"):
        if getattr(settings, name) and not settings.redact:
            yield (name,), "has no effect without redact; write redact: [host, client_id]"
    # How late a member is comes from the log ends.
    sample, min_behind = settings.worker.sample, make_policy(settings.policy).min_behind
    if sample > min_behind > 0:
        old, late = to_text(sample), to_text(min_behind)
        why = f"log ends that are up to {old} old do not show who is {late} late, as policy.min_behind has it; the default is 5s"
        yield ("worker", "sample"), why


def _ports(worker: WorkerSettings, pipeline: PipelineSettings) -> Iterator[tuple[Where, str]]:
    host, port = worker.web_host, worker.web_port
    if worker.http.login == "none" and not is_local(host):
        why = f"{host} lets in all who reach port {port}, as worker.http.login is none; set login: token or login: proxy"
        yield ("worker", "web_host"), why
    # A note: where each has a machine or container of its own, both may have the same port.
    if pipeline.metrics_port == port and _overlap(pipeline.metrics_host, host):
        why = f"{port} is worker.web_port too; on one machine only one of them can have it"
        yield ("pipeline", "metrics_port"), why


def _overlap(one: str, other: str) -> bool:
    """Whether both addresses take connections to the same one."""
    return one == other or one in ANY_HOST or other in ANY_HOST
