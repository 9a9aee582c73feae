"""``hash``: the 32-bit Murmur3 of Spark, which treats the last bytes of a text one by one (`Murmur3_x86_32.hashUnsafeBytes`)."""

from __future__ import annotations

import struct

from conformance.model.columns import Value
from conformance.model.errors import Unpredictable

SEED = 42
_BITS = 0xFFFFFFFF


def spark_hash(*values: Value) -> int:
    """The hash of whole numbers of 32 bits and of texts; each is the seed of the next, and NULL changes nothing.

    Raises:
        Unpredictable: a value of another type.
    """
    seed = SEED
    for value in values:
        if isinstance(value, str):
            seed = _of_bytes(value.encode(), seed)
        elif isinstance(value, int) and not isinstance(value, bool):
            seed = _mixed(_with_word(seed, value & _BITS), 4)
        elif value is not None:
            raise Unpredictable("hash of other than whole numbers and texts")
    return seed - (1 << 32) if seed >> 31 else seed


def _of_bytes(data: bytes, seed: int) -> int:
    whole = len(data) - len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _with_word(seed, word)
    for byte in data[whole:]:
        seed = _with_word(seed, byte - 256 & _BITS if byte > 127 else byte)
    return _mixed(seed, len(data))


def _with_word(seed: int, word: int) -> int:
    word = _rotated(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
    return (_rotated(seed ^ word, 13) * 5 + 0xE6546B64) & _BITS


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _BITS


def _mixed(seed: int, length: int) -> int:
    """The last step of Murmur3."""
    seed ^= length
    seed = (seed ^ seed >> 16) * 0x85EBCA6B & _BITS
    seed = (seed ^ seed >> 13) * 0xC2B2AE35 & _BITS
    return seed ^ seed >> 16
