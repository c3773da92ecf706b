"""What was given as settings: the file, and the variables that are settings and not something else's."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kagent.settings.settings_file import MISSING, SettingsFile, Where

PREFIX = "KAGENT_"
DELIMITER = "__"
OTHER_VARIABLES = (
    "KAGENT_BOOTSTRAP", "KAGENT_CACHE", "KAGENT_CLUSTER", "KAGENT_CONFIG", "KAGENT_FOLLOW", "KAGENT_MAVEN",
)  # fmt: skip
"""Variables that are no settings."""
SERVICE_LINK = re.compile(
    r"KAGENT_(?:.*_)?(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_.*)?)?)"
)
"""Kubernetes sets these for every Service of the namespace, so for one named kagent too:
https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables"""


WHOLE_ADDRESS = re.compile(r"KAGENT_(?:.*_)?(?<!_SERVICE_)(?<!_TCP_)(?<!_UDP_)(?<!_SCTP_)PORT")
"""Of these the value is an address such as tcp://10.0.0.1:80; of the others that end in PORT it is a number."""


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """What was given: the file, and the variables by the way to their value."""

    file: SettingsFile
    variables: Mapping[Where, str]

    @classmethod
    def of(cls, file: SettingsFile, environment: Mapping[str, str]) -> GivenSettings:
        """The file and the variables of this environment that are settings."""
        # Also of names in lower case: pydantic-settings reads variables in any case.
        return cls(file, {way(name): name for name, value in environment.items() if _is_setting(name, value)})

    def without(self, variables: Collection[str]) -> GivenSettings:
        """The same without these variables, which are not read."""
        return GivenSettings(self.file, {way: n for way, n in self.variables.items() if n not in variables})

    def with_file(self, file: SettingsFile) -> GivenSettings:
        """The same with another file."""
        return GivenSettings(file, self.variables)

    def place(self, where: Where) -> str:
        """Where this value was given; empty if it was not."""
        wanted = folded(where)
        for variable, name in self.variables.items():
            # Either may be the longer one: a variable can give a whole section as JSON, or one value in it.
            short = min(len(wanted), len(variable))
            if wanted[:short] == folded(variable[:short]):
                return name
        return self._made_by(wanted, where) or (self.file.place(where) if self.file.path else "")

    def _made_by(self, wanted: Where, where: Where) -> str | None:
        """The variable that made the entry in which this is missing; None where the file has that entry, or it has none."""
        # At least two steps: a whole section is there without a variable.
        for end in range(len(where) - 1, 1, -1):
            if where[:end] in self.file.lines:
                return None
            for variable, name in self.variables.items():
                if folded(variable[:end]) == wanted[:end]:
                    return name
        return None

    def place_named(self, where: Where, problem: str) -> str:
        """Where the first setting of this section that ``problem`` names was given, else the section."""
        section = self.file.written(where)
        names = section if isinstance(section, Mapping) else ()
        named = next((word for word in re.findall(r"\w+", problem) if word in names), None)
        return self.place(where if named is None else (*where, named))

    def written(self, where: Where) -> Any:
        """The value as the file has it; MISSING where a variable gives it or it stands nowhere."""
        return self.file.written(where) if self.place(where) == self.file.place(where) else MISSING

    def named(self, where: Where) -> str | None:
        """The variable or line that gave exactly this value, or something around it as a whole; None for a default."""
        wanted = folded(where)
        for variable, name in self.variables.items():
            if wanted[: len(variable)] == folded(variable):
                return name
        return self.file.place(where) if where in self.file.lines else None


def way(variable: str) -> Where:
    """``KAGENT_PIPELINE__TRIGGER`` → ``("pipeline", "trigger")``."""
    return tuple(variable[len(PREFIX) :].lower().split(DELIMITER))


def folded(where: Where) -> Where:
    """As a variable can write it: a shell takes no dash or dot in a name, and capitals are no other letters."""
    return tuple(re.sub(r"[-.]", "_", str(step).lower()) for step in where)


def as_in_file(where: Where, values: Any) -> Where:
    """With the names that the file has: ``EU_WEST`` of a variable is its cluster ``eu-west``.

    >>> as_in_file(("clusters", "eu_west", "bootstrap"), {"clusters": {"eu-west": {}}})
    ('clusters', 'eu-west', 'bootstrap')
    """
    if not where:
        return ()
    known = values if isinstance(values, Mapping) else {}
    same = [name for name in known if folded((name,)) == folded(where[:1])]
    step = same[0] if len(same) == 1 and where[0] not in known else where[0]
    return (step, *as_in_file(where[1:], known.get(step)))


def _is_setting(variable: str, value: str) -> bool:
    # `KAGENT_WORKER__WEB_PORT` looks like a Service's, but for the two underscores; `KAGENT_WEB_PORT=8080` does, but for the value.
    is_link = DELIMITER not in variable and SERVICE_LINK.fullmatch(variable) is not None
    if WHOLE_ADDRESS.fullmatch(variable):
        is_link = is_link and "://" in value
    known = variable in OTHER_VARIABLES or is_link
    return variable.upper().startswith(PREFIX) and not known
