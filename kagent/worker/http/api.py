"""``/api/v1``: what all workers know, as one answer. Read-only: a what-if only computes.

Every answer to a GET has an ETag that changes when any worker's part does; a client that sends it back gets an empty 304.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from kagent import __version__
from kagent.contract.redaction import Redaction
from kagent.contract.state_advice import what_to_do
from kagent.contract.words import Verdict
from kagent.errors import InputError, KafkaError
from kagent.kafka.admin import Admin
from kagent.kafka.live_scenario import scenario_line
from kagent.strategies import STRATEGIES
from kagent.worker.engine import in_thread
from kagent.worker.http import group_list, models, what_if
from kagent.worker.http.group_list import GroupQuery
from kagent.worker.http.openapi import Parameter, Route, document
from kagent.worker.http.workers import Answers, Workers
from kagent.worker.status import Summary, state_message

PACKED_FROM = 1400
"""Bytes; a smaller answer fits one packet as it is."""
# Shorter than limits.ANSWER_WITHIN_S, so that the answer is a sentence and not a cut connection.
WHAT_IF_LIMIT_S = 60.0


@dataclass(slots=True)
class Api:
    """The handlers. ``admins``: by the name of a cluster."""

    workers: Workers
    admins: Callable[[str], Admin | None]
    clusters: Iterable[str]
    partitions: int
    tick_s: float
    redaction: Redaction
    _one: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """One what-if at a time: it takes a whole core."""

    async def status(self, request: web.Request) -> web.Response:
        """How kagent itself is, and every open incident."""
        answers = await self.workers.ask("status", {})
        return reply(request, answers.tag, lambda: self._status(answers))

    def _status(self, answers: Answers) -> models.ServiceStatus:
        parts = answers.parts
        rows = [_plain(row) for part in parts for row in part["open"]]
        return models.ServiceStatus(
            time_ms=_oldest(parts),
            tick_s=self.tick_s,
            version=__version__,
            workers=sorted(part["worker"] for part in parts),
            clusters=[self._cluster(name, parts) for name in self.clusters],
            # A bound for the page; every worker sends its 50 most urgent ones.
            open=group_list.page(rows, 0, 200),  # type: ignore[arg-type]
            **self._whole(answers),
        )

    def _cluster(self, name: str, parts: list[dict[str, Any]]) -> models.ClusterStatus:
        summaries = [Summary.from_json(raw) for part in parts for raw in part["summaries"]]
        # As of the newest summary, not of now: the answer depends on its parts alone, as the ETag does.
        newest = max((s.time for s in summaries if s.cluster == name), default=0)
        state = state_message(name, summaries, self.partitions, newest, self.tick_s)
        return models.ClusterStatus(
            cluster=name,
            status=state.status,
            reason=state.reason,
            advice=what_to_do(state.status, state.reason),
            progress_ms=state.oldest_progress,
            judged=state.judged,
            blind=state.blind,
            ignored=state.ignored,
            open=state.open,
            learning=state.learning,
            learning_until_ms=state.learning_until,
            blind_reason=state.blind_reason,
            muted=state.muted,
            muted_until_ms=state.muted_until,
            set_aside=state.set_aside,
            no_members=state.no_members,
        )

    def _whole(self, answers: Answers) -> dict[str, Any]:
        held = {p for part in answers.parts for p in part["partitions"]}
        missing = sorted(set(range(self.partitions)) - held)
        silent = [models.Silence(url, why) for url, why in sorted(answers.silent.items())]
        return {"complete": not missing, "missing_partitions": missing, "unanswered": silent}

    async def groups(self, request: web.Request) -> web.Response:
        """One page of the groups that match, the most urgent first."""
        query = GroupQuery.from_params(request.query)
        answers = await self.workers.ask("groups", query.to_params())

        def made() -> models.GroupList:
            rows = (_plain(row) for part in answers.parts for row in part["rows"])
            return models.GroupList(
                time_ms=_oldest(answers.parts),
                total=sum(part["total"] for part in answers.parts),
                offset=query.offset,
                groups=group_list.page(rows, query.offset, query.limit),  # type: ignore[arg-type]
                facets=group_list.added(part["facets"] for part in answers.parts),
                **self._whole(answers),
            )

        return reply(request, f"{answers.tag} {query}", made)

    async def group(self, request: web.Request) -> web.Response:
        """One group in full."""
        answers, found = await self._asked(request, "group", "details")
        return reply(request, answers.tag, lambda: found[0]) if found else self._none(answers)

    async def series(self, request: web.Request) -> web.Response:
        """The last hour of one group and its members."""
        answers, found = await self._asked(request, "series", "series")
        return reply(request, answers.tag, lambda: found[0]) if found else self._none(answers)

    async def _asked(self, request: web.Request, question: str, field: str) -> tuple[Answers, list[Any]]:
        answers = await self.workers.ask(question, _names(request.query))
        return answers, [found for part in answers.parts for found in part[field]]

    def _none(self, answers: Answers) -> web.Response:
        if self._whole(answers)["complete"]:
            return problem(404, "There is no such group, or it is left out by the settings.")
        return problem(503, "No worker that answers knows this group, and not all workers answer.")

    async def scenario(self, request: web.Request) -> web.Response:
        """The group as it runs now, as the line that a what-if begins with."""
        names = _names(request.query)
        answers, found = await self._asked(request, "group", "names")
        admin = self.admins(names.get("cluster") or next(iter(self.clusters)))
        if not found or admin is None:
            return self._none(answers)
        # The group's name as the broker knows it: the one in the address may be the escaped one.
        line = await in_thread(scenario_line, admin, found[0], STRATEGIES)
        return reply(request, "", lambda: models.ScenarioLine(what_if.redacted(line, self.redaction)))

    async def what_if(self, request: web.Request) -> web.Response:
        """The plan with other members, fewer moves or another strategy. Nothing is changed anywhere."""
        question = what_if.question_of(_json(await request.read()))
        async with self._one:
            found = await in_thread(what_if.answer, question, limit=WHAT_IF_LIMIT_S)
        return reply(request, "", lambda: found)

    async def openapi(self, request: web.Request) -> web.Response:
        """This document."""
        return reply(request, __version__, lambda: document(ROUTES, __version__))


ONE_GROUP = (
    Parameter("group", "The group, as it is named or as it is shown.", required=True),
    Parameter("cluster", "Its cluster; may be left out if there is one."),
)
FILTER = (
    Parameter("search", "Part of the name, in any case."),
    Parameter("verdict", "Only this verdict.", values=tuple(v.value for v in Verdict)),
    Parameter("condition", "Only groups in this condition.", values=tuple(group_list.CONDITION)),
    Parameter("owner", "Only this owner's."),
    Parameter("state", "Only groups that the coordinator has in this state, such as stable or empty."),
    Parameter("cluster", "Only this cluster's."),
    Parameter("offset", "How many to pass over.", kind="integer"),
    Parameter("limit", f"How many at most, up to {group_list.MOST_ROWS}; 100 by default.", kind="integer"),
)
ApiRoute = Route[Api]
ROUTES: tuple[ApiRoute, ...] = (
    Route("GET", "/api/v1/status", Api.status, models.ServiceStatus),
    Route("GET", "/api/v1/groups", Api.groups, models.GroupList, FILTER),
    Route("GET", "/api/v1/group", Api.group, models.GroupDetail, ONE_GROUP),
    Route("GET", "/api/v1/group/series", Api.series, models.Recent, ONE_GROUP),
    Route("GET", "/api/v1/group/scenario", Api.scenario, models.ScenarioLine, ONE_GROUP),
    Route("POST", "/api/v1/what-if", Api.what_if, models.WhatIf, body=models.WhatIfQuestion),
    Route("GET", "/api/v1/openapi.json", Api.openapi, None),
)


async def answered(api: Api, route: ApiRoute, request: web.Request) -> web.Response:
    """The route's answer, or what is wrong as a sentence."""
    try:
        route.refuse_unknown(request.query)
    except InputError as error:
        return problem(400, str(error))
    try:
        return await route.handler(api, request)
    except InputError as error:
        return problem(404 if route.path.endswith("scenario") else 400, str(error))
    except KafkaError as error:
        return problem(503, str(error))
    except TimeoutError:
        return problem(504, "It took too long; try again, or ask `kagent plan GROUP`.")


def reply(request: web.Request, tag: str, make: Callable[[], Any]) -> web.Response:
    """The JSON of what ``make`` gives, or 304 if the asker has it already; without a ``tag`` it is always new."""
    headers = {"Cache-Control": "no-cache"}
    if tag:
        headers["ETag"] = f'"{_short(tag)}"'
        # Contained, not equal: a proxy that compresses makes the tag weak (W/"..."), and a client may send several.
        # https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
        if headers["ETag"] in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
    # Made only now: an open page that has it already costs a hash.
    body = orjson.dumps(make(), option=orjson.OPT_NON_STR_KEYS)
    answer = web.Response(body=body, content_type="application/json", charset="utf-8", headers=headers)
    if len(body) > PACKED_FROM:
        answer.enable_compression()
    return answer


def _short(tag: str) -> str:
    return hashlib.sha256(tag.encode()).hexdigest()[:20]


def problem(status: int, sentence: str) -> web.Response:
    """What is wrong, as the body of ``models.Problem``."""
    body = orjson.dumps(models.Problem(sentence))
    return web.Response(body=body, status=status, content_type="application/json", charset="utf-8")


def _oldest(parts: Iterable[Mapping[str, Any]]) -> int:
    return min((part["time_ms"] for part in parts), default=0)


def _names(query: Mapping[str, str]) -> dict[str, str]:
    if not query.get("group"):
        raise InputError("group: the name of a group is expected")
    return {name: query[name] for name in ("cluster", "group") if query.get(name)}


def _plain(row: Any) -> dict[str, Any]:
    """A row of this worker, or of another's JSON, as a mapping."""
    return row if isinstance(row, dict) else orjson.loads(orjson.dumps(row))


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InputError(f"the body is not JSON: {error}") from None
