"""The bytes of ``__consumer_offsets`` as typed records: every type and version, and never a guess.

>>> from kagent.offsets import decode
>>> decode(bytes.fromhex("0001000167000174" + "00000003"), None).key
{'group': 'g', 'topic': 't', 'partition': 3}
"""

from kagent.offsets.reader import DecodeError
from kagent.offsets.record import Record, UnknownRecordType, UnknownValueVersion, decode, decode_value

OFFSETS_TOPIC = "__consumer_offsets"

__all__ = [
    "OFFSETS_TOPIC",
    "DecodeError",
    "Record",
    "UnknownRecordType",
    "UnknownValueVersion",
    "decode",
    "decode_value",
]
