"""One answer for all workers: the worker that is asked asks the others, and says who did not answer.

Faust's assignor tells every worker at which address each partition's owner listens. An answer is whole only if every
partition of the events topic is in it; what is missing is named, never passed over.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from kagent.settings import WorkerSettings

PATIENCE = 20.0
"""Seconds for one worker's answer; one that owns 20,000 groups needs a few."""
OWN = "/api/own"


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """One worker's reply: the groups of each partition that it has loaded."""

    worker: str
    partitions: Mapping[int, list[dict[str, Any]]]

    def to_json(self) -> dict[str, Any]:
        """The body of ``/api/own``."""
        return {
            "worker": self.worker,
            "partitions": {str(p): groups for p, groups in self.partitions.items()},
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> WorkerReply:
        """What :meth:`to_json` wrote. Raises ValueError, TypeError, KeyError or AttributeError for anything else."""
        return cls(str(raw["worker"]), {int(p): list(groups) for p, groups in raw["partitions"].items()})


@dataclass(frozen=True, slots=True)
class Whole:
    """All workers' groups. ``unanswered``: addresses that did not answer, and why; ``missing``: partitions that no worker answered for."""

    workers: list[str]
    groups: list[dict[str, Any]]
    missing: list[int] = field(default_factory=list)
    unanswered: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether it covers all groups."""
        return not self.missing

    def to_json(self) -> dict[str, Any]:
        """The body of ``/api/groups``."""
        return {
            "complete": self.complete,
            "workers": self.workers,
            "unanswered": [{"worker": url, "why": why} for url, why in sorted(self.unanswered.items())],
            "missing_partitions": self.missing,
            "groups": self.groups,
        }


def merge(
    parts: Iterable[WorkerReply], partitions: int, unanswered: Mapping[str, str] | None = None
) -> Whole:
    """The replies as one. If two hold the same partition, as they may during a rebalance, the first one counts."""
    answered: dict[int, list[dict[str, Any]]] = {}
    workers = []
    for part in parts:
        workers.append(part.worker)
        for partition, groups in part.partitions.items():
            answered.setdefault(partition, groups)
    groups = [group for partition in sorted(answered) for group in answered[partition]]
    missing = sorted(set(range(partitions)) - set(answered))
    return Whole(sorted(workers), groups, missing, dict(unanswered or {}))


async def ask(
    session: aiohttp.ClientSession,
    urls: Iterable[str],
    params: Mapping[str, str],
    login: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> tuple[list[WorkerReply], dict[str, str]]:
    """The replies of the workers at these addresses, and why some have none."""
    asked = list(urls)
    answers = await asyncio.gather(*(_one(session, url, params, login, tls) for url in asked))
    parts = [answer for answer in answers if isinstance(answer, WorkerReply)]
    return parts, {u: a for u, a in zip(asked, answers, strict=True) if isinstance(a, str)}


async def _one(
    session: aiohttp.ClientSession,
    url: str,
    params: Mapping[str, str],
    login: Mapping[str, str] | None,
    tls: ssl.SSLContext | None,
) -> WorkerReply | str:
    # A host that is gone does not refuse a connection: without sock_connect it would take all of PATIENCE.
    timeout = aiohttp.ClientTimeout(total=PATIENCE, sock_connect=5)
    try:
        address = url.rstrip("/") + OWN
        async with session.get(
            address, params=params, timeout=timeout, headers=login, ssl=tls or True
        ) as answer:
            if answer.status != 200:
                return f"HTTP {answer.status}"
            # Any content type: a proxy's page with status 200 is then an answer that cannot be read.
            return WorkerReply.from_json(await answer.json(content_type=None))
    except TimeoutError:
        return "no answer in time"
    except aiohttp.ClientError as error:
        return f"cannot be reached ({type(error).__name__})"
    except (ValueError, TypeError, KeyError, AttributeError):
        return "its answer cannot be read"


def reached_at(worker: WorkerSettings, bootstrap: str) -> str:
    """The host at which other workers reach this one: as set, else the address from which it reaches the cluster."""
    if worker.advertised_host:
        return worker.advertised_host
    # Bound to one address: only there does it listen.
    if worker.web_host not in ("", "0.0.0.0", "::"):
        return _bracketed(worker.web_host)
    # Of several interfaces, the one that leads to the brokers is most likely to lead to the other workers.
    host, _, port = bootstrap.split(",")[0].strip().rpartition(":")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[
            0
        ]
        with socket.socket(family, kind) as probe:
            probe.connect(address)  # of a datagram socket: nothing is sent
            return _bracketed(str(probe.getsockname()[0]))
    except (OSError, ValueError):
        return socket.gethostname()


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
