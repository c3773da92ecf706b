"""Ranges and policies of the commands that look at the past."""

from __future__ import annotations

from pathlib import Path

import pytest

from kagent.commands import past
from kagent.errors import InputError
from kagent.settings import Settings

NOW = 1_760_000_000_000


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("now", NOW),
        ("30m", NOW - 1_800_000),
        ("12h", NOW - 43_200_000),
        ("7d", NOW - 604_800_000),
        ("2025-10-09", 1_759_968_000_000),
        ("2025-10-09T02:00", 1_759_975_200_000),
        ("2025-10-09T02:00+02:00", 1_759_968_000_000),
    ],
)
def test_a_moment_is_so_long_ago_or_an_iso_time_in_utc(said: str, meant: int) -> None:
    assert past.moment(said, NOW) == meant


@pytest.mark.parametrize("said", ["yesterday", "7", "2025-13-01", ""])
def test_what_is_no_time_is_one_sentence(said: str) -> None:
    with pytest.raises(InputError, match="is no time"):
        past.moment(said)


def test_a_time_in_another_form_is_answered_with_the_right_one() -> None:
    with pytest.raises(InputError, match=r"did you mean 14d\?$"):
        past.moment("2 weeks")


def test_an_empty_range_is_one_sentence() -> None:
    with pytest.raises(InputError, match="The range is empty"):
        past.between("1d", "2d", 10)


def test_policy_files_stand_side_by_side_under_their_names(tmp_path: Path) -> None:
    (tmp_path / "bold.yaml").write_text("policy: {threshold: 1.2, lower_threshold: 1.1}\n")
    (tmp_path / "calm.yaml").write_text("groups: [{match: 'orders*', threshold: 3}]\n")

    found = past.policies(Settings(), [str(tmp_path / "bold.yaml"), str(tmp_path / "calm.yaml")])

    assert {name: of("orders-1").threshold for name, of in found.items()} == {"bold": 1.2, "calm": 3.0}
    assert past.policies(Settings(policy={"threshold": 2}), ())["settings"]("g").threshold == 2


@pytest.mark.parametrize(
    "content", ["policy: {treshold: 2}", "polices: {}", "- 1", "{", "groups: [{threshold: 2}]"]
)
def test_a_policy_file_that_is_wrong_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "p.yaml").write_text(content)

    with pytest.raises(InputError, match=r"p\.yaml"):
        past.policies(Settings(), [str(tmp_path / "p.yaml")])
