"""Notes about settings that are right and likely not what was meant: for those who ask, as each may be on purpose."""

from __future__ import annotations

from collections.abc import Iterator

from kagent.durations import to_text
from kagent.policy import make_policy
from kagent.settings.alert_destinations import is_local
from kagent.settings.all_settings import Settings
from kagent.settings.given_settings import GivenSettings
from kagent.settings.settings_file import Where

ANY_HOST = ("0.0.0.0", "::")


def doubtful(settings: Settings, given: GivenSettings) -> Iterator[str]:
    """A sentence for each."""
    for where, why in _doubts(settings):
        place, setting = given.place(where), ".".join(map(str, where))
        yield f"{f'{place}: ' if place else ''}{setting}: {why}."


def _doubts(settings: Settings) -> Iterator[tuple[Where, str]]:
    worker, pipeline, policy = settings.worker, settings.pipeline, make_policy(settings.policy)
    if worker.http.login == "none" and not is_local(worker.web_host):
        yield (
            ("worker", "web_host"),
            f"{worker.web_host} lets in all who reach port {worker.web_port}, as worker.http.login is none; set login: token or login: proxy",
        )
    # A note: where each has a machine or container of its own, both may have the same port.
    if pipeline.metrics_port == worker.web_port and _overlap(pipeline.metrics_host, worker.web_host):
        yield (
            ("pipeline", "metrics_port"),
            f"{worker.web_port} is worker.web_port too; on one machine only one of them can have it",
        )
    if settings.redact_salt and not settings.redact:
        yield ("redact_salt",), "has no effect without redact; write redact: [host, client_id]"
    if settings.redact_salt_file and not settings.redact:
        yield ("redact_salt_file",), "has no effect without redact; write redact: [host, client_id]"
    # How late a member is comes from the log ends.
    if worker.sample > policy.min_behind > 0:
        behind = to_text(policy.min_behind)
        yield (
            ("worker", "sample"),
            f"log ends that are up to {to_text(worker.sample)} old do not show who is {behind} late, as policy.min_behind has it; the default is 5s",
        )


def _overlap(one: str, other: str) -> bool:
    """Whether both addresses take connections to the same one."""
    return one == other or one in ANY_HOST or other in ANY_HOST
