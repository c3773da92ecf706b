"""What a route of ``/api/v1`` is, and the OpenAPI document made from the routes and the models that answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from aiohttp import web
from pydantic import TypeAdapter

from kagent.errors import InputError
from kagent.text import shown
from kagent.worker.http import models

Handlers = TypeVar("Handlers")

REF = "#/components/schemas/{model}"
ABOUT = (
    "What kagent's workers know of consumer groups. Any worker answers for all. Names from Kafka are shown with control "
    "characters as \\x.., cut at 255 characters. Answers to GET have an ETag; send it back as If-None-Match."
)
PROBLEMS = {
    400: "A parameter is wrong",
    401: "A login is needed",
    404: "No such group",
    503: "Not known now",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an address. ``values``: all that it may have, if they are known beforehand."""

    name: str
    about: str
    required: bool = False
    kind: Literal["string", "integer"] = "string"
    values: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {"type": self.kind} | ({"enum": list(self.values)} if self.values else {})


@dataclass(frozen=True, slots=True)
class Route(Generic[Handlers]):
    """One address, and the method of ``Handlers`` that answers it. ``answer`` and ``body``: the models; None: any JSON object."""

    method: Literal["GET", "POST"]
    path: str
    handler: Callable[[Handlers, web.Request], Awaitable[web.Response]]
    answer: type[Any] | None
    parameters: tuple[Parameter, ...] = ()
    body: type[Any] | None = None

    def refuse_unknown(self, query: Mapping[str, str]) -> None:
        """Raises InputError for a parameter, or a value of one, that there is not: it would filter nothing, or everything.

        An empty value asks for nothing.
        """
        for name, value in query.items():
            about = next((p for p in self.parameters if p.name == name), None)
            if about is None:
                known = ", ".join(p.name for p in self.parameters) or "none"
                raise InputError(f"{shown(name)}: there is no such parameter; there are: {known}")
            if value and about.values and value not in about.values:
                raise InputError(f"{name}: there is no {shown(value)}; there are: {', '.join(about.values)}")


def document(routes: Iterable[Route[Any]], version: str) -> dict[str, Any]:
    """The document, for these routes."""
    known = list(routes)
    named = {m for route in known for m in (route.answer, route.body) if m is not None} | {models.Problem}
    inputs = [(m.__name__, "validation", TypeAdapter(m)) for m in sorted(named, key=lambda m: m.__name__)]
    # All in one call: a model that several answers use is then defined once.
    _, schemas = TypeAdapter.json_schemas(inputs, ref_template=REF)  # type: ignore[arg-type]
    paths: dict[str, Any] = {}
    for route in known:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "kagent worker", "version": version, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # Either: without a login (the default, or a proxy has it), or with the token.
        "security": [{}, {"token": []}],
    }


def _operation(route: Route[Any]) -> dict[str, Any]:
    about = (route.handler.__doc__ or "").strip()
    made: dict[str, Any] = {
        "summary": about.splitlines()[0],
        "operationId": route.handler.__name__,
        "responses": {"200": _content("The answer", route.answer), **_problems()},
    }
    if route.method == "GET":
        made["responses"]["304"] = {"description": "Nothing changed since the ETag that was sent"}
    if route.parameters:
        made["parameters"] = [
            {
                "name": p.name,
                "in": "query",
                "required": p.required,
                "description": p.about,
                "schema": p.schema(),
            }
            for p in route.parameters
        ]
    if route.body is not None:
        made["requestBody"] = {"required": True, **_content("The question", route.body)}
    return made


def _problems() -> dict[str, Any]:
    return {str(status): _content(about, models.Problem) for status, about in PROBLEMS.items()}


def _content(about: str, model: type[Any] | None) -> dict[str, Any]:
    schema = {"$ref": REF.format(model=model.__name__)} if model is not None else {"type": "object"}
    return {"description": about, "content": {"application/json": {"schema": schema}}}
