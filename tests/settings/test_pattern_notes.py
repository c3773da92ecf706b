"""A pattern that does nothing, or something else than it seems to do, has a note that says how to write it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from kagent.cli import root
from kagent.group_pattern import matches, whole_name
from kagent.pattern_meant import covers
from kagent.settings import loaded_from

NOTES = [
    ("groups: [{match: '/^nightly-/', ignore: true}]", "for names that begin so write '/nightly-.*/'"),
    ("ignore: ['/^(a|b)-/']", "for names that begin so write '/(a|b)-.*/'"),
    ("ignore: ['orders-*,billing-*']", "each group has an entry of its own: ['orders-*', 'billing-*']"),
    ("groups: [{match: 'a-*,b'}]", "an entry of its own: [{match: 'a-*', …}, {match: 'b', …}]"),
    ("groups: [{match: 'a-*|b'}]", "is one pattern, bar included; each group has an entry of its own: [{match: 'a-*', …}, {match: 'b', …}]"),
    ("groups: [{match: 'orders-.*'}]", "is a glob, not a regular expression; write '/orders-.*/'"),
    ("groups: [{match: '/orders-*/'}]", "in which * repeats the character before it; write 'orders-*'"),
    ("ignore: ['bar/']", "a regular expression begins with a slash too: '/bar/'"),
    ("ignore: ['(eu|us)-[0-9]+']", "write '/(eu|us)-[0-9]+/'"),
    ("groups: [{match: 'orders-* '}]", "begins or ends with a space, which a name would need too; write 'orders-*'"),
    ("groups: [{match: '*', owner: a}, {match: 'late-*', owner: b}]", "groups[1] has no effect: '*' at line 1 matches all that 'late-*' does"),
    ("groups: [{match: 'a-*'}, {match: 'a-b-*'}]", "groups[1] has no effect: 'a-*' at line 1 matches all that 'a-b-*' does"),
    ("groups: [{match: 'console-consumer-7', owner: a}]", "kagent leaves out 'console-consumer-*'; write ignore: false to have 'console-consumer-7' judged"),
    ("{groups: [{match: 'test-*', owner: a}], ignore: ['t*']}", "the list ignore leaves out 't*'"),
    ("alert: {destinations: {x: {type: alertmanager, url: 'https://x', only: {groups: ['a-*, b-*']}}}}", "['a-*', 'b-*']"),
]  # fmt: skip
QUIET = [
    "groups: [{match: '/^nightly-$/'}, {match: '/^a-.*/'}, {match: '/nightly-[0-9]+/'}]",
    "groups: [{match: 'a,b'}, {match: '/a{1,2}/'}, {match: 'a-?'}, {match: 'a-*'}]",
    "groups: [{match: 'late-*'}, {match: '*', ignore: true}]",
    "groups: [{match: 'console-consumer-7', ignore: false}]",
    "groups: [{match: '/^(?i)a.*/'}]",
    "groups: [{match: 'com.acme.*'}, {match: 'a+b'}, {match: 'a[12]-*'}]",
]


def notes(text: str, tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "kagent.yaml"
    file.write_text(text)
    return loaded_from(file).notes


@pytest.mark.parametrize(("text", "said"), NOTES)
def test_a_pattern_that_is_not_what_it_looks_like_has_one_note(text: str, said: str, tmp_path: Path) -> None:
    (note,) = notes(text, tmp_path)

    assert "kagent.yaml:1: " in note
    assert said in note


@pytest.mark.parametrize("text", QUIET)
def test_a_pattern_that_may_be_meant_as_it_is_has_none(text: str, tmp_path: Path) -> None:
    assert notes(text, tmp_path) == ()


@given(st.text("ab*?", max_size=5), st.text("ab*?[]", max_size=5), st.text("ab", max_size=6))
def test_a_pattern_that_covers_another_matches_all_that_it_does(one: str, other: str, name: str) -> None:
    assert not covers(one, other) or not matches(other, name) or matches(one, name)


def test_only_of_an_expression_it_is_said_that_it_must_match_the_whole_name() -> None:
    assert whole_name("/^orders-/").startswith("a regular expression must match the whole name")
    assert whole_name("orders-*") == ""


def test_notes_are_printed_beside_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "kagent.yaml"
    file.write_text(
        "policy: {treshold: 2, evaluations: 3}\ngroups: [5, {match: '^orders$'}, {match: '/(/'}]\n"
    )

    answer = CliRunner().invoke(root, ["--config", str(file), "settings", "--check"])

    assert answer.exit_code != 0
    assert "did you mean threshold?" in f"{answer.output}{answer.exception or ''}"
    assert "kagent.yaml:2: '^orders$' is a glob" in answer.output
    assert "the setting evaluations has no effect" in answer.output
