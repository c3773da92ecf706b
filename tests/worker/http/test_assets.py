"""The files of the page: small, whole, as their sources are, and from nowhere else."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from kagent.worker.http import assets

ROOT = Path(__file__).parents[3]
UI = ROOT / "kagent" / "worker" / "http" / "ui"
LIMIT = 300_000
OWN = [name for name in assets.assets() if not name.startswith("vendor/")]


def test_everything_is_smaller_than_a_photograph() -> None:
    packed = {name: len(asset.packed) for name, asset in assets.assets().items()}

    assert sum(packed.values()) <= LIMIT, packed
    assert {"index.html", "app.js", "style.css", "vendor/uPlot.js"} <= set(packed)


def test_the_libraries_are_those_of_the_lock_file() -> None:
    listed = json.loads((UI / "vendor" / "vendored.json").read_text())
    locked = json.loads((ROOT / "frontend" / "package-lock.json").read_text())["packages"]
    served = {name.removeprefix("vendor/") for name in assets.assets() if name.startswith("vendor/")}

    assert served - {"LICENSES.txt"} == set(listed), "write them again: make ui"
    for name, entry in listed.items():
        digest = hashlib.sha256((UI / "vendor" / name).read_bytes()).hexdigest()
        assert digest == entry["sha256"], f"{name} is not what npm has: make ui"
        assert entry["version"] == locked[f"node_modules/{entry['package']}"]["version"], "make ui"


@pytest.mark.parametrize("name", OWN)
def test_nothing_names_another_host_or_runs_inline(name: str) -> None:
    text = assets.assets()[name].body.decode()

    hosts = {host for host in re.findall(r"https?://([\w.-]+)", text) if host != "www.w3.org"}
    assert hosts == set()
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(", text)
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=\"|\sstyle=\"", text)


def test_every_import_is_there() -> None:
    for name in OWN:
        text = assets.assets()[name].body.decode()
        for wanted in re.findall(r'from "\./([^"]+)"', text):
            assert wanted in assets.assets(), f"{name} imports {wanted}"
