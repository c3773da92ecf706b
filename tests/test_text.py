"""Names from Kafka cannot act on the terminal, and groups are found where Kafka puts them."""

from __future__ import annotations

import pytest

from kagent.group_key import source_partition, split_key
from kagent.text import counted, rounded, shown


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("orders", "orders"),
        ("a\x1b[2J", "a\\x1b[2J"),
        ("日本", "日本"),
        ("\u202eevil", "\\u202eevil"),
        ("x" * 300, "x" * 254 + "…"),
    ],
)
def test_control_characters_are_shown_not_sent(name: str, printed: str) -> None:
    assert shown(name) == printed


@pytest.mark.parametrize(
    ("group", "partition"),
    [("console-consumer-1", 24), ("grüppe-日本", 16), ("a😀b", 44), ("polygenelubricants", 0)],
)
def test_a_group_is_in_the_partition_that_java_computes(group: str, partition: int) -> None:
    assert source_partition(group, 50) == partition


def test_a_group_may_have_slashes() -> None:
    assert split_key("main/a/b") == ("main", "a/b")


def test_numbers_have_the_digits_that_a_person_reads() -> None:
    assert [rounded(value) for value in (1690.08, 509.28, 33.33, 0.5)] == ["1,690", "509", "33.3", "0.5"]
    assert [counted(n, "record") for n in (1, 374_725)] == ["1 record", "374,725 records"]
