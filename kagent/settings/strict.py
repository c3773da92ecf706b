"""What every section of the settings is made from: a model that takes no other names than its own, and the name of a host."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationInfo,
    field_validator,
)

from kagent.policy import refuse_truth


def _host(host: str) -> str:
    """A name or an address by itself: with a scheme or a port it is found wrong only when nothing answers there."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if not re.fullmatch(r"[\w.-]*", host):
            plain = re.fullmatch(r"(?:\w+://)?([\w.-]+)(?::\d+)?/?", host)
            hint = f"; did you mean {plain[1]}?" if plain else ""
            raise ValueError(
                f"must be a host name or an address, without a scheme or port, not {host!r}{hint}"
            ) from None
    return host


def _as_text(value: Any) -> Any:
    """Numbers and truth as they are written, where a name of the person's own choice has a text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Text = Annotated[str, BeforeValidator(_as_text)]
HostName = Annotated[str, AfterValidator(_host)]


def in_home(value: Any) -> Any:
    """A path that begins with ``~`` as the shell has it: no shell reads the file, and opening one does not either."""
    return Path(os.path.expanduser(value)) if isinstance(value, Path) else value


class Strict(BaseModel):
    """A part of the settings: a name that does not exist is an error, not ignored."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any, info: ValidationInfo) -> Any:
        return refuse_truth(value, cls.model_fields[str(info.field_name)].annotation)

    @field_validator("*")
    @classmethod
    def _home(cls, value: Any) -> Any:
        return in_home(value)
