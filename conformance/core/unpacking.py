"""What files that Spark compressed hold: gzip, zstd, lz4 frames, and the blocks of lz4-java."""

from __future__ import annotations

import codecs
import gzip
import io
import struct
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final, cast

from conformance.core.errors import WrongUsage

BUFFER: Final = 1 << 20
_MOST: Final = 64_000_000
"""Bytes of a block, unpacked."""
_HEAD: Final = struct.Struct("<8sBiiI")


def unpacked(file: io.BufferedReader[Any], path: PurePath) -> BinaryIO:
    """Return what a file holds, whatever it is compressed by, and UTF-16 as UTF-8.

    Raises WrongUsage if what unpacks it is not installed or not known.
    """
    begin = file.peek(8)[:8]
    if begin.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell redirects
        return cast(BinaryIO, codecs.EncodedFile(file, "utf-8", "utf-16"))
    codec = "zstd" if begin.startswith(b"\x28\xb5\x2f\xfd") else "lz4" if begin.startswith(b"\x04\x22\x4d\x18") else ""
    if path.suffix in (".lzf", ".snappy"):
        raise WrongUsage(
            f"{path}: {path.suffix[1:]} is not read; write the event log with spark.eventLog.compression.codec=zstd, or unpack it"
        )
    if not codec and begin != b"LZ4Block":
        return file
    try:
        import pyarrow
    except ImportError:
        raise WrongUsage(
            f"{path} is compressed; pip install 'watermark-conformance[parquet]', whose pyarrow reads it"
        ) from None
    if codec:
        packed = pyarrow.CompressedInputStream(pyarrow.PythonFile(file), codec)
        chunks: Iterator[bytes] = iter(lambda: packed.read(BUFFER), b"")
    else:
        chunks = _blocks(file, pyarrow.Codec("lz4_raw").decompress)
    return cast(BinaryIO, io.BufferedReader(_Stream(chunks), BUFFER))


def _blocks(file: BinaryIO, decompress: Callable[[bytes, int], object]) -> Iterator[bytes]:
    """Yield what the blocks of Spark's lz4 hold: `LZ4BlockOutputStream` of lz4-java, no lz4 frame."""
    while head := file.read(_HEAD.size):
        if len(head) < _HEAD.size:
            raise EOFError("a block is cut off")
        magic, method, packed, size, _ = _HEAD.unpack(head)
        block = file.read(packed)
        if magic != b"LZ4Block" or len(block) < packed or size > _MOST:
            raise EOFError("a block is cut off")
        # The low bits are the size of blocks; of the high ones, 0x10 is stored as it is, and 0x20 lz4.
        if size:
            yield block if method & 0xF0 == 0x10 else bytes(cast(bytes, decompress(block, size)))


class _Stream(io.RawIOBase):
    """A stream over chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)  # its slices copy nothing
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
