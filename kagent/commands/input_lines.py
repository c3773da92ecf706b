"""Lines of JSON as they come from files and pipes: with blank lines, CRLF, a byte order mark, or not JSON at all."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kagent.errors import InputError


def lines(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every line that is not blank, without what surrounds its text."""
    for number, raw in enumerate(file, 1):
        # Editors on Windows write a byte order mark, which JSON must not have (RFC 8259, section 8.1).
        text = raw.removeprefix(codecs.BOM_UTF8).strip() if number == 1 else raw.strip()
        if text:
            yield number, text


def objects(file: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any] | InputError]]:
    """Where each line is, and its JSON object, or the error if it has none."""
    for number, text in lines(file):
        try:
            yield f"line {number}", parsed(text)
        except InputError as error:
            yield f"line {number}", error


def parsed(text: bytes) -> dict[str, Any]:
    """The JSON object on a line. Raises InputError with the reason if there is none."""
    try:
        found = json.loads(text.decode())
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON at column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"not JSON: byte {error.start} is not UTF-8") from None
    # json.loads recurses per bracket; a line of a hundred thousand of them must not end the others.
    except RecursionError:
        raise InputError("not JSON to be read: nested too deeply") from None
    # Python converts at most 4,300 digits:
    # https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation
    except ValueError:
        raise InputError("not JSON to be read: a number has too many digits") from None
    if not isinstance(found, dict):
        raise InputError("a JSON object is expected")
    return found


def ident(line: Mapping[str, Any] | InputError) -> str | int | float | None:
    """The line's ``id``, which goes into its answer; None if JSON cannot hold it."""
    found = None if isinstance(line, InputError) else line.get("id")
    # json.loads reads NaN and Infinity, which are not JSON: they must not come back in an answer.
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return found if isinstance(found, str | int | float) else None


def refuse_ident(line: Mapping[str, Any]) -> None:
    """Raises InputError where the line has an ``id`` that cannot be given back."""
    if line.get("id") is not None and ident(line) is None:
        raise InputError("id: a text or a number is expected")
