"""One value of the settings that was refused, with all that a sentence about it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kagent.settings.given_settings import GivenSettings
from kagent.settings.schema_ways import inside, length_unit, resolved, walk
from kagent.settings.settings_file import Where


@dataclass(frozen=True, slots=True)
class WrongValue:
    """``error``: what pydantic says; ``where``: the way to the value; ``around``: the schema of its section; ``schema``: the whole one."""

    error: Mapping[str, Any]
    where: Where
    around: Mapping[str, Any]
    schema: Mapping[str, Any]
    given: GivenSettings

    @classmethod
    def of(
        cls, error: Mapping[str, Any], schema: Mapping[str, Any], given: GivenSettings, above: Where = ()
    ) -> Self:
        """``above``: the way to what pydantic checked, where that was not the whole."""
        where, around = walk(schema, (*above, *error["loc"]))
        return cls(error, where, around, schema, given)

    @property
    def kind(self) -> str:
        """pydantic's type of error."""
        return str(self.error["type"])

    @property
    def value(self) -> Any:
        """What stands there."""
        return self.error["input"]

    @property
    def context(self) -> Mapping[str, Any]:
        """The limits and words that belong to the error."""
        found: Mapping[str, Any] = self.error.get("ctx", {})
        return found

    @property
    def is_name(self) -> bool:
        """Whether the name is wrong, not what it holds."""
        return "[key]" in self.error["loc"]

    @property
    def name(self) -> str | int | None:
        """The last step of the way; None of the whole."""
        return self.where[-1] if self.where else None

    @property
    def about(self) -> Mapping[str, Any]:
        """The schema of the setting, if its section names it."""
        found: Mapping[str, Any] = self.around.get("properties", {}).get(self.name, {})
        return found

    @property
    def section(self) -> Mapping[str, Any]:
        """The schema of what the setting holds, followed through references."""
        return self.resolved(inside(self.around, self.name) if self.name is not None else {})

    @property
    def unit(self) -> str:
        """`` s`` or `` h`` behind the limit of a duration."""
        unit = length_unit(self.about)
        return f" {unit}" if unit else ""

    @property
    def is_secret(self) -> bool:
        """Whether the value must not be repeated; pydantic marks a SecretStr so."""
        return any(each.get("writeOnly") for each in (self.about, *self.about.get("anyOf", ())))

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """This part of the schema itself, where it only refers to another."""
        return resolved(schema, self.schema.get("$defs", {}))
