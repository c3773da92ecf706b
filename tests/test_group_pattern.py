"""One kind of pattern for groups' names, in Python and in Spark."""

from __future__ import annotations

from typing import Any

import pytest

from kagent.errors import SettingsError
from kagent.group_pattern import java_expression, matches

PATTERNS = (
    "a*",
    "*",
    "a?c",
    "a[bc]*",
    "a[!b]*",
    "*b*c*",
    "a.c",
    "a|b",
    "/a/",
    "/^a.c$/",
    "/a|b.*/",
    "/(?i)ABC/",
    "/a.*/",
    "a$",
    "/",
    "//",
)
NAMES = ("abc", "a", "b", "a.c", "ac", "acb", "a\nc", "xabc", "abc\n", "a|b", "ABC", "a$", "", "/", "bb")


def test_patterns_are_globs_or_whole_regular_expressions() -> None:
    assert matches("a*", "abc")
    assert not matches("/a/", "abc")
    assert matches("/^a.c$/", "abc")
    assert matches("/a.c/", "a\nc")
    assert not matches("abc", "abc\n")
    with pytest.raises(SettingsError, match="regular expression"):
        matches("/(/", "abc")


@pytest.mark.spark
@pytest.mark.slow
def test_spark_finds_the_names_that_python_finds(spark: Any) -> None:
    names = spark.createDataFrame([(name,) for name in NAMES], "name string")
    for pattern in PATTERNS:
        found = {row.name for row in names.where(names["name"].rlike(java_expression(pattern))).collect()}

        assert found == {name for name in NAMES if matches(pattern, name)}, pattern
