"""The rows of a sample: in memory, or in a temporary file with sixteen bytes of memory for each, if they are too many for a case."""

from __future__ import annotations

import pickle
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias, overload

from conformance.core.data import Json

Row: TypeAlias = tuple[Json, ...]

MOST_IN_A_CASE = 5_000
"""With more rows, over all streams, a case names files in place of them, and engines answer with digests of what they emit."""


def kept(rows: Iterable[Row]) -> Sequence[Row]:
    """The rows, in a temporary file if they are more than a case may have."""
    left = iter(rows)
    first = tuple(islice(left, MOST_IN_A_CASE + 1))
    return first if len(first) <= MOST_IN_A_CASE else _Stored(chain(first, left))


class _Rows(Sequence[Row]):
    """Rows that are read one at a time."""

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return tuple(self.row(each) for each in range(*place.indices(len(self))))
        return self.row(range(len(self))[place])

    def row(self, place: int) -> Row:
        raise NotImplementedError


class _Stored(_Rows):
    """Rows in a file that ends with the process."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._file = tempfile.TemporaryFile(prefix="conformance-")  # noqa: SIM115 - it lives as long as the rows
        self._starts = array("q")
        at = 0
        for row in rows:
            self._starts.append(at)
            at += self._file.write(pickle.dumps(row))
        self._file.flush()

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Row]:
        return (self.row(place) for place in range(len(self)))

    def row(self, place: int) -> Row:
        self._file.seek(self._starts[place])
        row: Row = pickle.load(self._file)
        return row


class Some(_Rows):
    """The rows at these places of others."""

    def __init__(self, rows: Sequence[Row], places: Sequence[int]) -> None:
        self._rows, self._places = rows, places

    def __len__(self) -> int:
        return len(self._places)

    def row(self, place: int) -> Row:
        return self._rows[self._places[place]]
