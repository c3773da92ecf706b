"""Whatever a settings file or an address says: it is taken, or refused with the declared error."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kagent.errors import InputError, SettingsError
from kagent.settings import Settings, load
from kagent.worker.http.group_list import MOST_ROWS, GroupQuery

CORPUS = sorted((Path(__file__).parents[1] / "fixtures" / "fuzz" / "settings").glob("*.yaml"))
"""Files that once broke the reading, or are known to break others: kept, so that they are tried for ever."""
NAMES = st.sampled_from(
    [*Settings.model_fields, "main", "security", "http", "partitions", "tick", "destinations", "0"]
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["60s", "1d", "-1s", "1e400s", "host:9092", "SASL_SSL", "/", "\x00", "{}", "*", "["]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def taken_or_refused(path: Path) -> None:
    with suppress(SettingsError):
        load(path)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
@settings(max_examples=150)
@pytest.mark.slow
def test_any_values_are_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(yaml.safe_dump(values))

    taken_or_refused(path)


@given(st.binary(max_size=60) | st.text(alphabet="&*!{}[]:,-#|>'\"%@`ab1 \n\t", max_size=60).map(str.encode))
@settings(max_examples=300)
@pytest.mark.slow
def test_any_bytes_are_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(data)

    taken_or_refused(path)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
@pytest.mark.slow
def test_files_that_are_known_to_be_hard_are_taken_or_refused(path: Path) -> None:
    taken_or_refused(path)


@given(st.dictionaries(st.sampled_from(["offset", "limit", "search", "status"]), st.text(max_size=25)))
@example({"limit": "000000001999999"})
@example({"offset": "٣"})
@example({"limit": "9" * 5000})
def test_any_parameters_of_an_address_are_bounded_or_refused(params: dict[str, str]) -> None:
    with suppress(InputError):
        query = GroupQuery.from_params(params)
        assert 1 <= query.limit <= MOST_ROWS
        assert 0 <= query.offset <= 10_000_000
