"""docs/apply.md has every reason and every setting of the Java assignors."""

from __future__ import annotations

import re
from pathlib import Path

from kagent.follow import Reason

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "apply.md").read_text(encoding="utf-8")
SOURCES = ROOT / "java" / "src" / "main" / "java" / "io" / "kagent" / "assignor"


def java_reasons() -> set[str]:
    names = re.findall(r"^    ([A-Z_]+)[,;]", (SOURCES / "Reason.java").read_text(), re.MULTILINE)
    return {name.lower() for name in names}


def test_every_reason_has_its_row() -> None:
    table = PAGE.split("## What it refuses")[1].split("## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", "".join(rows))) == java_reasons()


def test_reasons_that_mean_the_same_have_the_names_of_kagent_follow() -> None:
    of_brokers = {"no_topic_ids", "ambiguous"}
    assert java_reasons() - of_brokers == {str(reason) for reason in Reason} - {"foreign_member"}


def test_every_setting_has_its_row() -> None:
    settings = set(re.findall(r'"(kagent\.[a-z.]+[a-z])"', (SOURCES / "Settings.java").read_text()))
    rows = set(re.findall(r"^\| `(kagent\.[a-z.]+[a-z])", PAGE, re.MULTILINE))
    assert settings <= rows
