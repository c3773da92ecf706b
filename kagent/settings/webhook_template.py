"""Whether a webhook's template can be rendered: its syntax, and that all it names is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kagent.settings.unknown_names import suggestion

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.nodes import Template

FIELDS = (
    "event", "id", "cluster", "group", "status", "verdict", "severity", "confidence", "reason", "skew_now", "skew_after",
    "action", "how", "stale", "resolution", "owner", "runbook_url", "page_url", "labels", "opened_at", "as_of",
)  # fmt: skip
"""What a template may name: `kagent.alert.sending.facts` gives each a value."""


def checked_template(template: str) -> str:
    """The template itself. Raises ValueError for one that would fail once there is an incident to be sent."""
    # Here, not above: few destinations have a template, and every command reads the settings.
    from jinja2 import TemplateSyntaxError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment()
    try:
        parsed = environment.parse(template)
    except TemplateSyntaxError as error:
        raise ValueError(f"is no Jinja2 template: {error.message} (its line {error.lineno})") from error
    unknown = list(_unknown(parsed, environment))
    if unknown:
        raise ValueError("; ".join(_sentence(*each) for each in unknown))
    return template


def _unknown(parsed: Template, environment: Environment) -> Iterator[tuple[str, str, list[str]]]:
    """What the template names and there is not: its kind, its name, and what there is of that kind."""
    from jinja2 import meta, nodes

    kinds: tuple[tuple[str, type[nodes.Filter | nodes.Test], dict[str, Any]], ...] = (
        ("filter", nodes.Filter, environment.filters),
        ("test", nodes.Test, environment.tests),
    )
    for kind, node, known in kinds:
        for name in dict.fromkeys(each.name for each in parsed.find_all(node)):
            if name not in known:
                yield kind, name, sorted(known)
                known[name] = str  # or the search for fields would end here
    fields = {*FIELDS, *environment.globals}
    for name in sorted(meta.find_undeclared_variables(parsed) - fields - set(_guarded(parsed))):
        yield "field", name, list(FIELDS)


def _guarded(parsed: Template) -> Iterator[str]:
    """Names that may be missing: ``x is defined``, ``x | default('')``."""
    from jinja2 import nodes

    for each in parsed.find_all((nodes.Filter, nodes.Test)):
        if each.name in ("default", "d", "defined", "undefined") and isinstance(each.node, nodes.Name):
            yield each.node.name


def _sentence(kind: str, name: str, known: list[str]) -> str:
    near = suggestion(name, known)
    listed = (
        f"; there are: {', '.join(known)}"
        if kind == "field"
        else "; see the Jinja2 template designer's documentation"
    )
    return f"there is no {kind} {name}{f', did you mean {near}?' if near else listed}"
