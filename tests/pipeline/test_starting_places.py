"""Where a query begins that reads other partitions than the one before it."""

from __future__ import annotations

from kagent.pipeline.checkpoint import CoveredOffsets
from kagent.pipeline.starting_places import EARLIEST, StartingPlaces, covered


def test_what_was_left_out_goes_on_from_where_it_was() -> None:
    places = StartingPlaces()

    without = places.of(range(3), frozenset({1}), CoveredOffsets({0: 5}, {0: 10, 1: 20, 2: 30}))
    whole = places.of(range(3), frozenset(), CoveredOffsets({}, {0: 15, 2: 35}))

    assert without == {0: 10, 2: 30}
    assert whole == {0: 15, 1: 20, 2: 35}


def test_a_log_that_lost_its_end_is_read_again_from_there() -> None:
    places = StartingPlaces()
    reached = CoveredOffsets({}, {0: 10, 1: 20})

    assert places.of(range(2), frozenset(), reached, lost={1: 15}) == {0: 10, 1: 15}
    assert places.known(CoveredOffsets()).offset == {0: 10, 1: 15}


def test_what_this_process_has_not_read_is_read_from_its_beginning() -> None:
    places = StartingPlaces(left_out=frozenset({1}))

    assert places.of(range(2), frozenset(), CoveredOffsets({}, {0: 10})) == {0: 10, 1: EARLIEST}


def test_what_is_covered_begins_where_the_checkpoint_began_so_that_no_unsent_progress_is_a_gap() -> None:
    places = StartingPlaces()
    reached = CoveredOffsets({0: 5}, {0: 10, 1: 20})

    began = places.of(range(3), frozenset(), reached)
    told = covered(places.known(CoveredOffsets()), began)

    assert (told.start, told.offset) == ({0: 5, 1: 0}, {0: 10, 1: 20})
