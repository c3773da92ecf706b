"""The dashboard as its file says it: what only a Grafana would show is held by rules, as none runs in the tests."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "kagent.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]


def test_every_line_of_a_drawing_is_named_by_its_labels() -> None:
    for panel in PANELS:
        for target in panel["targets"] if panel["type"] in ("timeseries", "state-timeline") else []:
            by = re.search(r"by \(([^)]*)\)", target["expr"])
            labels = {name.strip() for name in by[1].split(",")} - {"le"} if by else set()
            legend = target.get("legendFormat", "")
            named = set(re.findall(r"\{\{(\w+)\}\}", legend))

            # Without a legend Grafana draws `{severity="page"}`.
            assert legend, panel["title"]
            assert named <= labels, panel["title"]
            # Under the name of one group, the cluster stands in the choice above.
            assert labels - named <= {"cluster"}, panel["title"]


def test_every_variable_that_is_used_is_declared() -> None:
    declared = {each["name"] for each in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(DASHBOARD)))

    assert used <= declared
    assert declared <= used


def test_a_link_of_a_table_names_columns_that_the_table_has() -> None:
    for panel in PANELS:
        for change in panel.get("transformations", []):
            columns = set(change["options"]["renameByName"].values())
            links = json.dumps(panel["fieldConfig"]["defaults"]["links"])

            assert set(re.findall(r"__data\.fields\.(\w+)", links)) <= columns


def test_no_panel_lies_on_another() -> None:
    for one, other in combinations([panel["gridPos"] for panel in PANELS], 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)
