"""The sticky user data is what Java writes, and nothing that arrives can make reading it fail."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from kagent.strategies.plugins.userdata import decode, encode

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
PAIRS = st.lists(st.tuples(NAMES, st.integers(0, 2**31 - 1)), unique=True, max_size=20)


@given(owned=PAIRS, generation=st.integers(-1, 2**31 - 1))
def test_what_is_written_is_read_back_grouped_by_topic(owned: list[tuple[str, int]], generation: int) -> None:
    read, since = decode(encode(owned, generation))
    assert sorted(read) == sorted(owned)
    assert since == generation


def test_the_bytes_are_those_of_java() -> None:
    expected = b"\0\0\0\1" + b"\0\2t0" + b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\3" + b"\0\0\0\7"
    assert encode([("t0", 0), ("t0", 3)], 7) == expected


def test_the_first_version_has_no_generation() -> None:
    assert decode(encode([("t", 1)], 5)[:-4]) == ([("t", 1)], None)
    assert decode(None) == decode(b"") == ([], None)


@given(st.binary(max_size=60))
def test_bytes_of_others_never_fail(data: bytes) -> None:
    owned, generation = decode(data)
    assert isinstance(owned, list)
    assert generation is None or isinstance(generation, int)


def test_counts_that_cannot_be_are_no_user_data() -> None:
    assert decode(struct.pack(">ih2si", 1, 2, b"t0", 2**30)) == ([], -1)
