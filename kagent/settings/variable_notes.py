"""Notes about variables that are right, or none of kagent's, and likely not what was meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kagent.settings.given_settings import DELIMITER, PREFIX, GivenSettings, as_in_file, folded, way
from kagent.settings.schema_ways import schema_at


def doubtful_variables(given: GivenSettings, schema: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each."""
    yield from _without_underscore(schema)
    clusters = given.file.values.get("clusters")
    known = clusters if isinstance(clusters, Mapping) else {}
    for steps, variable in given.variables.items():
        if (
            steps[0] == "clusters"
            and len(steps) > 1
            and (name := _near(str(as_in_file(steps, given.file.values)[1]), known))
        ):
            written = PREFIX + DELIMITER.join(map(str, folded(("clusters", name)))).upper()
            yield f"{variable} adds a cluster {steps[1]}; variables of {name} begin with {written}{DELIMITER}."


def _near(name: str, known: Mapping[str, Any]) -> str | None:
    """The cluster that this is but for dashes, dots and underscores; None if it is one itself."""
    same = [each for each in known if _letters(each) == _letters(name)]
    return same[0] if same and name not in known else None


def _letters(name: str) -> str:
    return re.sub(r"[-._]", "", name.lower())


def _without_underscore(schema: Mapping[str, Any]) -> Iterator[str]:
    """``KAGENTPOLICY__THRESHOLD`` is no variable of kagent's, and so not found wrong."""
    start = PREFIX.rstrip("_")
    for name in os.environ:
        meant = PREFIX + name.removeprefix(start)
        if name.startswith(start) and not name.startswith(PREFIX) and schema_at(schema, way(meant), {}):
            yield f"{name} is not read; did you mean {meant}?"
