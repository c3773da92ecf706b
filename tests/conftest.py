"""Shared by all tests: nothing of the caller's environment reaches them."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the person who runs the tests are not seen by them."""
    for name in list(os.environ):
        if name.startswith("KAGENT_") and name != "KAGENT_CACHE":
            monkeypatch.delenv(name)
