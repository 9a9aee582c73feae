"""Results files that are compressed with xz, told by their suffix: ``results.jsonl.xz``.

Cells of one case resemble each other, so a compressed file has a thirtieth of the size. The same results always give the same bytes.
"""

import io
import lzma
from pathlib import Path
from typing import BinaryIO

from reports.results.errors import NotDecompressed

SUFFIX = ".xz"
MOST_DECOMPRESSED = 1024**3
"""The most bytes that a compressed file may hold: a few kilobytes can stand for any number of them."""
MOST_MEMORY = 128 * 1024**2
"""The most bytes of memory to decompress; a file says how much it needs, and the highest preset of xz needs half of this."""

_FILTERS = [
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 8 * 1024**2, "lc": 4, "lp": 0, "pb": 0}
]
"""For text these take a sixth less room than the default. The dictionary of the highest preset would take 700 MB of memory."""
_MAGIC = b"\xfd7zXZ\x00"
_AT_ONCE = 1 << 16
_LAST = 1 << 20
"""The number of bytes at the end of a file that hold its last line."""


def is_compressed(path: Path) -> bool:
    """Tell by the name: what is to be written has no content yet, and a pipe can be read only once."""
    return path.suffix == SUFFIX


def open_results(path: Path) -> BinaryIO:
    """Open the plain content of a results file, to be read from its beginning.

    Raises OSError: it cannot be opened. So does reading, which also raises NotDecompressed if the file is damaged or too big.
    """
    file = path.open("rb")
    return io.BufferedReader(_Decompressed(path, file), _AT_ONCE) if is_compressed(path) else file


def compressed(plain: BinaryIO) -> bytes:
    packer = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=_FILTERS)
    parts = [packer.compress(part) for part in iter(lambda: plain.read(_AT_ONCE), b"")]
    return b"".join([*parts, packer.flush()])


def plain_start(start: bytes) -> bytes:
    """Return how the plain content of a file begins, if the file begins like this."""
    if not start.startswith(_MAGIC):
        return start
    try:
        return _decompressor().decompress(start, _AT_ONCE)
    except lzma.LZMAError:
        return b""


def plain_end(path: Path) -> bytes:
    """Return the end of the plain content of a file, with its whole last line.

    Raises OSError, NotDecompressed: it cannot be read.
    """
    with open_results(path) as file:
        if file.seekable():
            file.seek(max(0, path.stat().st_size - _LAST))
            return file.read()
        end = b""
        for part in iter(lambda: file.read(_LAST), b""):
            end = (end + part)[-_LAST:]
        return end


def _decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)


class _Decompressed(io.RawIOBase):
    """The plain content of an ``.xz`` file; `lzma.LZMAFile` has no limit of memory."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._decompressor = _decompressor()
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill as much of the buffer as there is content for; 0 at the end.

        Raises NotDecompressed: the file is damaged, or its content is too long.
        """
        content = b""
        while not content:
            if self._decompressor.eof:
                # A file may consist of several streams: `cat a.xz b.xz`.
                left = self._decompressor.unused_data or self._file.read(_AT_ONCE)
                if not left:
                    return 0
                self._decompressor = _decompressor()
            else:
                left = self._file.read(_AT_ONCE) if self._decompressor.needs_input else b""
                if not left and self._decompressor.needs_input:
                    raise NotDecompressed(self._path, "it ends too early")
            try:
                content = self._decompressor.decompress(left, len(buffer))
            except lzma.LZMAError as error:
                raise NotDecompressed(self._path, str(error)) from None
        self._given += len(content)
        if self._given > MOST_DECOMPRESSED:
            raise NotDecompressed(self._path, f"it holds more than {MOST_DECOMPRESSED:,} bytes")
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()
