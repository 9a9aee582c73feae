"""Cells of a results file without their observations, which are read again when they are asked for.

Observations are the bulk of a results file. What a matrix, a gate or a comparison reads of most cells is their status and the digest
of their behaviour; only where two digests differ does it read what was observed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypeAlias

from reports.results.compression import is_compressed, open_results
from reports.results.errors import ChangedResults, NotReadable
from reports.results.record_lines import RecordLine
from reports.results.records import RECORD, Cell, UpgradeCell

AnyCell: TypeAlias = Cell | UpgradeCell
_Identity: TypeAlias = tuple[int, int, int, int]

_READ_AGAIN = ("observation", "runs")
_SHARED = (
    "case",
    "expansion",
    "variant",
    "family",
    "case_digest",
    "target",
    "behaviour",
    "differs",
    "origin",
    "to",
    "entry",
)
"""What is the same in many cells: they share one value."""
_KEPT = 64
"""Whole cells that stay in memory: a page of the report looks several times at those of one case."""


class ResultsFile:
    """A results file that was read once, of which lines are read again."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            NotReadable: it cannot be read.
        """
        self.path = path
        # A pipe can be read only once.
        self._lines: dict[int, bytes] | None = None if path.is_file() else {}
        self._plain: IO[bytes] | None = None
        """A copy of a compressed file, where a line has a place of its own."""
        self._values: dict[Any, Any] = {}
        self._names: set[str] = set()
        self.compared: dict[Any, Any] = {}
        """What comparisons of its cells have found, for those who compare them again."""
        try:
            self._identity = _identity(path.stat())
        except OSError as error:
            raise NotReadable(path, error.strerror or str(error)) from None

    def stored(self, line: RecordLine, cell: AnyCell, *, as_written: bool) -> AnyCell:
        """The cell of this line, without its observations; ``as_written``: the line says of it what is to be written again."""
        if self._lines is not None:
            self._lines[line.offset] = line.content
        values = cell.__dict__.copy()
        for name in _READ_AGAIN:
            if values.get(name):
                del values[name]
        for name in _SHARED:
            if value := values.get(name):
                values[name] = self._values.setdefault(value, value)
        values["_place"] = self, line.offset, len(line.content)
        values["_as_written"] = as_written
        kind: type[StoredCell | StoredUpgradeCell] = StoredCell if isinstance(cell, Cell) else StoredUpgradeCell
        made = kind.__new__(kind)
        # As BaseModel.__copy__ does; but with one set of names for all cells, which takes more memory than their values.
        object.__setattr__(made, "__dict__", values)
        object.__setattr__(made, "__pydantic_fields_set__", self._names)
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made

    def read_again(self, offset: int, length: int) -> AnyCell:
        """The whole cell of a line.

        Raises:
            ChangedResults: the file is not the one that was read before.
            NotReadable, NotDecompressed: it cannot be read.
        """
        record = RECORD.validate_json(self.text(offset, length))
        assert isinstance(record, AnyCell)
        return record

    def text(self, offset: int, length: int) -> str:
        """The line there.

        Raises:
            ChangedResults, NotReadable, NotDecompressed: as ``read_again``.
        """
        content = self._content(offset, length) if self._lines is None else self._lines[offset]
        return content.decode("utf-8", "replace").strip()

    def _content(self, offset: int, length: int) -> bytes:
        try:
            if is_compressed(self.path):
                # No position is used, because processes that this one starts share it.
                return os.pread(self._decompressed().fileno(), length, offset)
            with self.path.open("rb", buffering=0) as file:
                if _identity(os.fstat(file.fileno())) != self._identity:
                    raise ChangedResults(self.path)
                file.seek(offset)
                return file.read(length)
        except OSError as error:
            raise NotReadable(self.path, error.strerror or str(error)) from None

    def _decompressed(self) -> IO[bytes]:
        if self._plain is None:
            copy = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            weakref.finalize(self, copy.close)
            with open_results(self.path) as file:
                shutil.copyfileobj(file, copy, 1 << 20)
            if _identity(self.path.stat()) != self._identity:
                raise ChangedResults(self.path)
            self._plain = copy
        return self._plain


class _Stored:
    """What cells of both matrices share whose observations stay in their file."""

    _place: tuple[ResultsFile, int, int]
    _as_written: bool

    def __getattr__(self, name: str) -> Any:
        if name in _READ_AGAIN and "_place" in self.__dict__:
            return getattr(_read_again(*self._place), name)
        return super().__getattr__(name)  # type: ignore[misc]

    @property
    def file_of_results(self) -> ResultsFile:
        return self._place[0]

    def whole(self) -> Any:
        """The same with its observations, as a record."""
        known = {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
        return _read_again(*self._place).model_copy(update=known)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
        return self.whole().model_copy(update=update, deep=deep)

    def __eq__(self, other: object) -> bool:
        return bool(self.whole() == (other.whole() if isinstance(other, _Stored) else other))

    def __hash__(self) -> int:
        return hash(self.whole())

    def model_dump_json(self, **options: Any) -> str:
        file, offset, length = self._place
        if self._as_written and not options:
            return file.text(offset, length)
        return str(self.whole().model_dump_json(**options))


class StoredCell(_Stored, Cell):
    """A cell whose observations stay in its file."""


class StoredUpgradeCell(_Stored, UpgradeCell):
    """A cell of the upgrade matrix whose observation stays in its file."""


@lru_cache(maxsize=_KEPT)
def _read_again(file: ResultsFile, offset: int, length: int) -> AnyCell:
    return file.read_again(offset, length)


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
