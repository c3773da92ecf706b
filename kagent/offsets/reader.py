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

# The generated classes refuse a longer string also in the compact form, whose length could be greater.
# https://github.com/apache/kafka/blob/4.3.0/generator/src/main/java/org/apache/kafka/message/MessageDataGenerator.java
MAX_STRING = 0x7FFF
# Compiled once: no format string is parsed for each field.
INT8, INT16, UINT16, INT32, INT64 = (struct.Struct(code) for code in (">b", ">h", ">H", ">i", ">q"))


class DecodeError(ValueError):
    """Bytes that are not what they should be.

    ``where``: of what record, key or value; ``path``: of which field (``members[2].clientId``); ``at``: at which byte of
    the key or value; ``reason``: why.
    """

    def __init__(self, reason: str, where: str = "", at: int | None = None) -> None:
        super().__init__(reason, where, at)
        self.reason, self.where, self.at = reason, where, at
        self.path = ""

    def within(self, name: str) -> DecodeError:
        """This error, with ``name`` before the path of its field."""
        joint = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{name}{joint}{self.path}"
        return self

    def __str__(self) -> str:
        byte = "" if self.at is None else f"byte {self.at}"
        place = ", ".join(part for part in (self.where, self.path, byte) if part)
        return f"{place}: {self.reason}" if place else self.reason


class ByteReader:
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

    def number(self, form: struct.Struct) -> int:
        at = self.at
        if form.size > self.end - at:
            raise self.fail(f"{form.size} bytes expected, {self.left} left")
        self.at = at + form.size
        value: int = form.unpack_from(self.data, at)[0]
        return value

    def int8(self) -> int:
        return self.number(INT8)

    def int16(self) -> int:
        return self.number(INT16)

    def uint16(self) -> int:
        return self.number(UINT16)

    def int32(self) -> int:
        return self.number(INT32)

    def int64(self) -> int:
        return self.number(INT64)

    def numbers(self, code: str, size: int, count: int) -> list[int]:
        """``count`` numbers of ``size`` bytes at once; ``code`` is struct's."""
        return list(struct.unpack(f">{count}{code}", self.take(count * size)))

    def uuid(self) -> str:
        return str(uuid.UUID(bytes=self.take(16)))

    def uvarint(self) -> int:
        value = 0
        # Five bytes of seven bits hold the 32 bits that Kafka allows (ByteUtils.readUnsignedVarint).
        # https://github.com/apache/kafka/blob/4.3.0/clients/src/main/java/org/apache/kafka/common/utils/ByteUtils.java
        for shift in range(0, 35, 7):
            if self.at >= self.end:
                raise self.fail("a variable-length number is cut off")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    raise self.fail("a variable-length number is over 32 bits")
                return value
        raise self.fail("a variable-length number is longer than five bytes")

    def length16(self) -> int:
        """The length before a string; negative is null."""
        return self.int16()

    def length32(self) -> int:
        """The length before bytes or an array; negative is null."""
        return self.int32()

    def compact(self) -> int:
        """The length before anything in a flexible version; negative is null."""
        return self.uvarint() - 1

    def string(self, size: int) -> str:
        if size > MAX_STRING:
            raise self.fail(f"a string of {size} bytes")
        begin = self.at
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            # A broker in Java cannot have written this: the bytes are damaged.
            raise DecodeError("a string is not UTF-8", self.where, begin + error.start) from None

    # Bytes travel as hex: records are passed on as JSON.
    def hex(self, size: int) -> str:
        return self.take(size).hex()

    def inside(self, size: int) -> ByteReader:
        """A reader of the next ``size`` bytes alone; this one goes on behind them."""
        if size > self.left:
            raise self.fail(f"{size} bytes expected, {self.left} left")
        inner = ByteReader(self.data, self.where, self.at, self.at + size)
        self.at += size
        return inner

    def done(self) -> None:
        """Raises DecodeError if bytes are left over: a layout that is not the one we read it by."""
        if self.at != self.end:
            raise self.fail(f"{self.left} bytes left over")
