"""Kafka's primitive encodings, read from one bytes object with every bound checked.

Big-endian throughout. ``flexible`` versions use the compact forms:

    int8 int16 int32 int64 uint16   two's complement, fixed size
    uuid                            16 bytes, RFC 4122 order
    string / compact                int16 n, n bytes (n < 0: null)   /  uvarint n+1, n bytes (0: null)
    bytes  / compact                int32 n, n bytes (n < 0: null)   /  uvarint n+1, n bytes (0: null)
    array  / compact                int32 n, n elements (n < 0: null) / uvarint n+1, n elements (0: null)
    uvarint                         LEB128, low seven bits first, at most five bytes
    tags                            uvarint count, then count × (uvarint tag, uvarint size, size bytes)

Source: ``org.apache.kafka.common.protocol.ByteBufferAccessor`` and the generated message classes.
"""

from __future__ import annotations

import struct
import uuid

MAX_STRING = 0x7FFF


class DecodeError(ValueError):
    """Bytes that are not what they should be: where (offset in the field's bytes) and why."""

    def __init__(self, reason: str, where: str = "", at: int | None = None) -> None:
        place = (
            f"{where} at byte {at}"
            if at is not None and where
            else where or (f"byte {at}" if at is not None else "")
        )
        super().__init__(f"{place}: {reason}" if place else reason)
        self.reason, self.where, self.at = reason, where, at


class UnknownRecordType(DecodeError):
    """A record type this decoder does not know (a newer broker, or a left-over): skip and count it."""

    def __init__(self, key_type: int) -> None:
        super().__init__(f"record type {key_type} is not known")
        self.key_type = key_type


class UnknownValueVersion(DecodeError):
    """A value version this decoder does not know: keep the old state and mark the group stale."""

    def __init__(self, name: str, version: int, group: str | None) -> None:
        super().__init__(f"value version {version} is not known", name)
        self.version, self.group = version, group


class Reader:
    """A cursor over ``data[at:end]``; every read past the end is a DecodeError that names ``where``."""

    __slots__ = ("at", "data", "end", "where")

    def __init__(self, data: bytes, where: str, at: int = 0, end: int | None = None) -> None:
        self.data, self.where, self.at, self.end = data, where, at, len(data) if end is None else end

    @property
    def left(self) -> int:
        return self.end - self.at

    def fail(self, reason: str) -> DecodeError:
        return DecodeError(reason, self.where, self.at)

    def take(self, size: int) -> bytes:
        if size > self.end - self.at:
            raise self.fail(f"{size} bytes expected, {self.left} left")
        begin = self.at
        self.at = begin + size
        return self.data[begin : self.at]

    def number(self, code: str, size: int) -> int:
        if size > self.end - self.at:
            raise self.fail(f"{size} bytes expected, {self.left} left")
        value: int = struct.unpack_from(code, self.data, self.at)[0]
        self.at += size
        return value

    def int8(self) -> int:
        return self.number(">b", 1)

    def int16(self) -> int:
        return self.number(">h", 2)

    def uint16(self) -> int:
        return self.number(">H", 2)

    def int32(self) -> int:
        return self.number(">i", 4)

    def int64(self) -> int:
        return self.number(">q", 8)

    def uuid(self) -> str:
        return str(uuid.UUID(bytes=self.take(16)))

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            if self.at >= self.end:
                raise self.fail("a variable-length number is cut off")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
        raise self.fail("a variable-length number is longer than five bytes")

    def length(self, flexible: bool, short: bool = False) -> int | None:
        """A length before a string (``short``), bytes or an array; None is null."""
        size = self.uvarint() - 1 if flexible else self.int16() if short else self.int32()
        return None if size < 0 else size

    def string(self, flexible: bool) -> str | None:
        size = self.length(flexible, short=True)
        if size is None:
            return None
        if size > MAX_STRING:
            raise self.fail(f"a string of {size} bytes")
        begin = self.at
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise DecodeError("a string is not UTF-8", self.where, begin + error.start) from error

    def bytes(self, flexible: bool) -> bytes | None:
        size = self.length(flexible)
        return None if size is None else self.take(size)

    def inside(self, size: int) -> Reader:
        """A reader of the next ``size`` bytes alone; this one goes on behind them."""
        if size > self.left:
            raise self.fail(f"{size} bytes expected, {self.left} left")
        inner = Reader(self.data, self.where, self.at, self.at + size)
        self.at += size
        return inner

    def done(self) -> None:
        """Raises DecodeError if bytes are left over: a layout that is not the one we read it by."""
        if self.at != self.end:
            raise self.fail(f"{self.left} bytes left over")
