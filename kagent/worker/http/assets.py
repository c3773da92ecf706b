"""The files of the page, out of the wheel. Nothing is loaded from anywhere else, and nothing is built at run time."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "txt": "text/plain",
}
PAGES = frozenset({"", "cluster", "groups", "group"})
"""Addresses under ``/ui/`` that show the page; what it shows there, it decides itself."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file. ``packed``: with gzip; ``tag``: changes with it."""

    body: bytes
    packed: bytes
    kind: str
    tag: str


@lru_cache(maxsize=1)
def assets() -> dict[str, Asset]:
    """Every file by its path under ``/ui/``."""
    found: dict[str, Asset] = {}
    _collect(files(__package__) / "ui", "", found)
    return found


def _collect(folder: Traversable, prefix: str, found: dict[str, Asset]) -> None:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            _collect(entry, f"{name}/", found)
        elif name.rpartition(".")[2] in TYPES:
            found[name] = _asset(name, entry.read_bytes())


def _asset(name: str, body: bytes) -> Asset:
    tag = hashlib.sha256(body).hexdigest()[:16]
    # mtime=0: gzip stamps the time into its header, and workers behind one address must send the same bytes.
    return Asset(body, gzip.compress(body, 9, mtime=0), TYPES[name.rpartition(".")[2]], f'"{tag}"')


@lru_cache(maxsize=4)
def page(depth: int) -> Asset:
    """The page at an address ``depth`` steps below the root: its links are relative, so any path prefix may stand before."""
    html = assets()["index.html"].body.decode()
    return _asset("index.html", html.replace('href="./"', f'href="{"../" * depth or "./"}"', 1).encode())


def found(path: str) -> Asset | None:
    """What lies under ``/ui/`` at this path."""
    if path in PAGES:
        return page(1)
    return None if path == "index.html" else assets().get(path)
