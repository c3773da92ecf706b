"""Keep pandas out of memory: the stream computes on Arrow alone, but pyarrow and PySpark import pandas on the way.

It is a third of what a Python process of the pipeline holds, and most of a second of its start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.metadata import version
from types import ModuleType

import pyarrow as pa


class _NotInstalled(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@contextmanager
def hidden() -> Iterator[None]:
    """Within the block pandas cannot be imported, if it is not yet: PySpark's and pyarrow's optional uses of it are left out."""
    finder = _NotInstalled()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def arrow_alone() -> None:
    """Let pyarrow do without pandas in this process: it looks for pandas once, at its first array, and remembers the answer."""
    with hidden():
        pa.array([None])


@contextmanager
def version_alone() -> Iterator[None]:
    """Within the block pandas has a version and nothing else, which is all that ``DataFrame.mapInArrow`` asks of it."""
    if "pandas" in sys.modules:
        yield
        return
    sys.modules["pandas"] = stand_in = ModuleType("pandas")
    stand_in.__dict__["__version__"] = version("pandas")
    try:
        yield
    finally:
        del sys.modules["pandas"]
