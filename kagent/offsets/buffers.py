"""An Arrow binary column as the bytes under it: numbers gathered at any byte, strings cut out without a copy.

Gathering reads one item of a numpy dtype (packed, big-endian, several fields if need be) at each of many byte positions
in one C loop; the view has a stride of one byte. Cutting builds Arrow's offsets by hand: the parts that are wanted and
the parts between them, by turns, make a valid binary array over the same buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


class BinaryColumn:
    """A binary or large_binary array of n items, sliced or not.

    ``start`` and ``end``: where each item stands in ``data``, shape (n,). ``null``: which are null, shape (n,).
    """

    __slots__ = ("buffer", "data", "end", "large", "null", "size", "start")

    def __init__(self, array: pa.Array) -> None:
        self.large = pa.types.is_large_binary(array.type)
        if not self.large and not pa.types.is_binary(array.type):
            raise TypeError(f"a column of bytes has to be binary or large_binary, not {array.type}")
        n = len(array)
        # https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-layout
        _, offsets, self.buffer = array.buffers()
        width = np.int64 if self.large else np.int32
        # A sliced array keeps its parent's buffers: its offset says where its own items begin.
        whole = np.frombuffer(offsets, width) if offsets is not None and n else np.zeros(n + 1, width)
        bounds = whole[array.offset : array.offset + n + 1].astype(np.int64)
        self.data = np.frombuffer(self.buffer or b"", np.uint8)
        self.start: Ints = bounds[:-1]
        self.end: Ints = bounds[1:]
        self.size: Ints = self.end - self.start
        valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        self.null: Mask = np.zeros(n, np.bool_) if valid is None else ~valid

    def __len__(self) -> int:
        return len(self.start)

    def load(self, where: Ints, kind: npt.DTypeLike) -> Any:
        """The items of dtype ``kind`` that begin at these bytes; the caller has seen to it that they are there."""
        width = np.dtype(kind)
        count = len(self.data) - width.itemsize + 1
        if count <= 0:
            return np.zeros(len(where), width)
        # As opaque bytes: numpy copies those several times faster than it does structured items.
        opaque = np.dtype((np.void, width.itemsize))
        return np.ndarray((count,), opaque, self.data, strides=(1,))[where].view(width)

    def numbers(self, where: Ints, kind: str, mask: Mask) -> Ints:
        """The big-endian numbers (``>i4`` …) at these bytes, as int64; 0 where the mask is false. Shape (n,)."""
        # The usual case: without a mask numpy neither copies the positions nor scatters the result.
        if mask.all():
            whole: Ints = self.load(where, kind).astype(np.int64)
            return whole
        found = np.zeros(len(where), np.int64)
        found[mask] = self.load(where[mask], kind)
        return found

    def parts(self, begin: Ints, stop: Ints) -> pa.Array:
        """The byte ranges [begin, stop), ascending and apart, at the even places of a binary array without a copy.

        The odd places hold what lies between. All are null but the even ones.
        """
        n = len(begin)
        offsets = np.empty(2 * n + 1, np.int64 if self.large else np.int32)
        offsets[0:-1:2], offsets[1::2], offsets[-1] = begin, stop, stop[-1] if n else 0
        # Validity bits, lowest first: 0b01010101 makes the even places valid and the odd ones null.
        even = np.full((2 * n + 7) // 8, 0b01010101, np.uint8)
        buffers = [pa.py_buffer(even), pa.py_buffer(offsets), self.buffer or pa.py_buffer(b"")]
        return pa.Array.from_buffers(pa.large_binary() if self.large else pa.binary(), 2 * n, buffers, n)

    def cut(self, begin: Ints, stop: Ints) -> pa.Array:
        """The byte ranges [begin, stop), ascending and apart, as a binary array of their own. Shape (n,)."""
        if not len(begin):
            return pa.array([], pa.large_binary() if self.large else pa.binary())
        return self.parts(begin, stop).take(pa.array(np.arange(0, 2 * len(begin), 2)))


def not_utf8(strings: pa.Array) -> Mask:
    """Which items of a binary array are not UTF-8; finds k of n in about k log n checks of runs, not of items."""
    bad = np.zeros(len(strings), np.bool_)
    runs = [(0, len(strings))] if len(strings) else []
    while runs:
        low, high = runs.pop()
        if is_utf8(strings[low:high]):
            continue
        if high - low == 1:
            bad[low] = True
            continue
        # Arrow says only that some item is not UTF-8, not which one: halve until each is found.
        middle = (low + high) // 2
        runs += [(low, middle), (middle, high)]
    return bad


def is_utf8(strings: pa.Array) -> bool:
    """Whether every item that is not null is UTF-8."""
    try:
        strings.cast(pa.large_string() if pa.types.is_large_binary(strings.type) else pa.string())
    except pa.ArrowInvalid:
        return False
    return True
