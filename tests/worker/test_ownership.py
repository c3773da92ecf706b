"""What a worker does with the groups that it has just loaded."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from kagent.worker.ownership import spare_from_collections


class Node:
    """Something in a cycle with itself: only a collection frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.slow
def test_collections_pass_over_what_lives_when_groups_were_loaded() -> None:
    node = Node()
    spare_from_collections()
    alive = weakref.ref(node)
    del node
    gc.collect()

    assert alive() is not None


@pytest.mark.slow
def test_what_was_spared_and_is_garbage_by_the_next_load_is_freed() -> None:
    node = Node()
    spare_from_collections()
    alive = weakref.ref(node)
    del node
    spare_from_collections()

    assert alive() is None
