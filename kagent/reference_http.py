"""The page docs/http.md, made from the routes and the models of the worker's HTTP API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kagent.text_table import markdown_row
from kagent.worker.http.api import ROUTES
from kagent.worker.http.openapi import Parameter, Route, document

HTTP_HEAD = """\
# HTTP API

<!-- Made from the code by `make docs`; routes and models stand in kagent/worker/http/api.py and models.py. -->

Every worker answers for all workers on its web port (6066 unless `worker.web_port` is set), and the same as OpenAPI under
`/api/v1/openapi.json`. Answers to GET have an ETag: send it back as `If-None-Match` and get 304 while nothing changed. Times
end in `_ms` (since 1970) or `_s`; names from Kafka have control characters as `\\x..`. A login, if `worker.http` has one, is a
bearer token, or the header that a login proxy sets.

```sh
curl -s http://127.0.0.1:6066/api/v1/status
curl -s 'http://127.0.0.1:6066/api/v1/groups?condition=open&limit=10'
curl -s 'http://127.0.0.1:6066/api/v1/group?group=orders'
```

Other addresses: `/metrics` ([metrics](metrics.md)), `/healthz` (200 while the worker works: it has its rights and goes through its groups every few seconds, even if
it is [blind](operations.md#does-it-work) to them), `/readyz` (200 once it has restored its tables), `/` (the page; programs get `OK`, or that a cluster is blind and why), and as long as older scripts use them `/api/groups`, `/api/groups/NAME` and `/api/recommendations`.

Errors: 400 a parameter is wrong or not known, 401 a login is needed, 404 no such group, 503 not known now, 504 it took too long; the
body is `{"error": "what is wrong"}`.
"""


def http_page() -> str:
    """docs/http.md."""
    made = document(ROUTES, "")
    parts = [HTTP_HEAD, "## Addresses\n"]
    for route in ROUTES:
        parts += _route(route)
    parts.append("## Models\n")
    for name, model in sorted(made["components"]["schemas"].items()):
        parts += _model(name, model)
    return "\n".join(parts)


def _values(parameter: Parameter) -> str:
    return f" One of {', '.join(f'`{value}`' for value in parameter.values)}." if parameter.values else ""


def _route(route: Route[Any]) -> Iterator[str]:
    about = " ".join((route.handler.__doc__ or "").split())
    yield f"### `{route.method} {route.path}`\n\n{about}\n"
    if route.parameters:
        rows = [
            markdown_row(f"`{p.name}`", p.kind, ("Required. " if p.required else "") + p.about + _values(p))
            for p in route.parameters
        ]
        yield "\n".join(["| parameter | type | |", "|---|---|---|", *rows]) + "\n"
    if route.body is not None:
        yield f"Body: [{route.body.__name__}](#{route.body.__name__.lower()}).\n"
    if route.answer is not None:
        yield f"Answer: [{route.answer.__name__}](#{route.answer.__name__.lower()}).\n"


def _model(name: str, model: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}\n\n{' '.join(str(model.get('description', '')).split())}\n"
    rows = [
        markdown_row(f"`{field}`", _http_type(about)) for field, about in model.get("properties", {}).items()
    ]
    yield "\n".join(["| field | type |", "|---|---|", *rows]) + "\n"


def _http_type(about: Mapping[str, Any]) -> str:
    """A JSON type in words; another model is linked."""
    if "$ref" in about:
        name = about["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in about:
        return " or ".join(_http_type(part) for part in about["anyOf"])
    if "enum" in about:
        return ", ".join(f"`{word}`" for word in about["enum"])
    if about.get("type") == "array":
        return f"list of {_http_type(about.get('items', {}))}"
    return str(about.get("type", "any"))
