"""Tables fit: what is important stays, what is not goes first, and nothing is wider than asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kagent.text_table import TableColumn, fitted, folded, lines, shortened

COLUMNS = (
    TableColumn("group", "GROUP", least=10),
    TableColumn("lag", "LAG", right=True),
    TableColumn("owner", "OWNER", rank=2, least=6),
    TableColumn("note", "NOTE", rank=1, least=8, keep="start"),
)
ROW = {"group": "g" * 60, "lag": "1,234", "owner": "team-payments", "note": "muted until 21:40"}


@pytest.mark.parametrize(
    ("width", "kept"),
    [(None, ["group", "lag", "owner", "note"]), (40, ["group", "lag", "owner", "note"]), (30, ["group", "lag", "note"]), (18, ["group", "lag"])],
)  # fmt: skip
def test_the_least_important_column_goes_first(width: int | None, kept: list[str]) -> None:
    assert [column.key for column, _ in fitted(COLUMNS, [ROW], width)] == kept


def test_a_column_without_content_is_left_out_unless_it_always_stays() -> None:
    assert [c.key for c, _ in fitted(COLUMNS, [{"group": "a", "owner": ""}], None)] == ["group", "lag"]


def test_a_name_is_shortened_in_its_middle_and_a_sentence_at_its_end() -> None:
    assert shortened("orders-processor-eu-west-1", 12) == "orders-…st-1"
    assert shortened("Restart the consumer", 12, "start") == "Restart the…"
    assert shortened("short", 12) == "short"


@given(
    st.lists(st.text(st.characters(exclude_categories=("Cc", "Cs", "Cf", "Mn", "Me", "Zl", "Zp")), max_size=80), min_size=4, max_size=4),
    st.integers(12, 200),
)  # fmt: skip
def test_no_line_is_wider_than_asked(texts: list[str], width: int) -> None:
    row = dict(zip(("group", "lag", "owner", "note"), texts, strict=True))

    assert all(cell_len(line) <= width for line in lines(COLUMNS, [row], width))


@pytest.mark.parametrize("width", [24, 40, 80, None])
def test_a_folded_column_keeps_every_word_and_the_width(width: int | None) -> None:
    why = "it would have opened nine times, six of them for lateness that ended by itself"
    columns = (TableColumn("group", "GROUP", least=8), TableColumn("why", "WHY", least=12, keep="all"))

    found = list(lines(columns, [{"group": "orders", "why": why}, {"group": "b", "why": "c"}], width))

    begins = found[0].index("WHY")
    assert " ".join(line[begins:] for line in found[1:-1]).split() == why.split()
    assert [line[:begins].strip() for line in found[1:]] == ["orders", *[""] * (len(found) - 3), "b"]
    assert max(map(cell_len, found)) <= (width or cell_len(why) + begins)


def test_numbers_stand_at_the_right() -> None:
    rows = [{"group": "a", "lag": "5"}, {"group": "b", "lag": "1000"}]

    assert list(lines(COLUMNS[:2], rows)) == ["GROUP   LAG", "a         5", "b      1000"]


@pytest.mark.parametrize("width", [20, 26, 33, 50])
def test_names_that_differ_in_their_middle_alone_are_told_apart(width: int) -> None:
    names = [
        f"payments-settlement-reconciliation-{what}-eu-central-1-v2"
        for what in ("processor", "reporting", "auditing")
    ]

    printed = list(lines(COLUMNS[:1], [{"group": name} for name in names], width))[1:]

    assert len(set(printed)) == 3
    assert max(map(cell_len, printed)) <= width


@given(st.text(max_size=300), st.integers(5, 120), st.integers(1, 5))
def test_a_folded_text_has_no_more_lines_and_cells_than_asked(text: str, width: int, most: int) -> None:
    found = folded(text, width, most)

    assert len(found) <= most
    assert all(cell_len(line) <= width for line in found)


@given(st.text("ab,.=", min_size=1, max_size=300), st.integers(5, 120))
def test_of_a_word_wider_than_the_line_nothing_is_left_out(word: str, width: int) -> None:
    assert "".join(folded(f"Set {word}", width, 100)).replace(" ", "") == f"Set{word}"


def test_a_text_is_folded_between_words() -> None:
    assert folded("Restart the consumer that is late", 20, 2) == ["Restart the consumer", "that is late"]
    assert folded("Restart the consumer that is late", 20, 1) == ["Restart the…"]


def test_a_setting_wider_than_the_line_is_broken_behind_its_sign() -> None:
    setting = "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor"

    assert folded(f"Set {setting} in every consumer.", 60, 5) == [
        "Set partition.assignment.strategy=",
        "org.apache.kafka.clients.consumer.RangeAssignor in every",
        "consumer.",
    ]


def test_of_a_command_that_has_no_room_no_half_is_shown() -> None:
    text = "Let it follow. Run `kagent apply orders --config /etc/kagent/kagent.yaml` now."

    assert folded(text, 40, 1) == ["Let it follow. Run…"]
    assert "`kagent apply orders --config /etc/kagent/kagent.yaml`" in " ".join(folded(text, 60, 3))
