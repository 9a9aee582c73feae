"""Results files as they are written: line by line, as cells come in."""

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from conformance.core.output_file import FileKind, OutputFile
from conformance.judging.verdict import Status
from reports.results.compression import compressed, is_compressed, plain_end, plain_start
from reports.results.errors import CellKey, NotDecompressed
from reports.results.records import AnyRecord, Cell, Footer, Header, Introduction, TargetRecord, answer_hash, digest_of


def _is_results(start: bytes) -> bool:
    return re.match(rb'\s*\{\s*"record"\s*:\s*"header"', plain_start(start)) is not None


RESULTS_FILE = FileKind("a results file", _is_results)
COMPRESSED_RESULTS_FILE = FileKind("a results file", _is_results, compressed)
"""The file is compressed when it is complete: a run that is killed leaves a plain one."""


class ResultsWriter:
    """Appends cells to a results file, each flushed when ``write`` returns. Threads may share one.

    A context manager: leaving it writes the footer, and only then the file takes the place of an earlier one. Leaving it by an
    exception writes no footer, which tells readers that the run was interrupted.
    """

    def __init__(self, path: Path, header: Header) -> None:
        """Begin the file, beside an existing one until it is complete. Raises as `conformance.core.output_file.OutputFile`."""
        self._missing = set(header.expected_cells())
        self._written: set[CellKey] = set()
        self._hashes = 0
        self._targets = {target.name for target in header.targets}
        self._counts: Counter[Status] = Counter()
        self._lock = Lock()
        self._path = path
        self._file = OutputFile(path, COMPRESSED_RESULTS_FILE if is_compressed(path) else RESULTS_FILE)
        try:
            self._append(header)
        except BaseException:
            self.discard()
            raise

    def introduce(self, target: TargetRecord) -> None:
        """Record what a target is, as its engine introduced itself. Raises ValueError: the header has no such target."""
        if target.name not in self._targets:
            raise ValueError(f"{target.name} is not a target of this run")
        with self._lock:
            self._append(Introduction(target=target))

    def write(self, cell: Cell) -> None:
        """Append a cell. Raises ValueError: the header does not announce it, or it is already there."""
        with self._lock:
            case, where = cell.key
            if cell.key in self._written:
                raise ValueError(f"{case} on {where} already has its result")
            if cell.key not in self._missing:
                raise ValueError(f"{case} on {where} is not a cell of this run")
            self._append(cell)
            self._missing.discard(cell.key)
            self._written.add(cell.key)
            self._hashes += answer_hash(cell)
            self._counts[cell.status] += 1

    def missing(self) -> frozenset[CellKey]:
        with self._lock:
            return frozenset(self._missing)

    def finish(self, finished: datetime | None = None) -> None:
        with self._lock:
            counts, digest = dict(self._counts), digest_of(self._hashes)
            self._append(Footer(counts=counts, finished=finished or datetime.now(UTC), digest=digest))
            self._file.complete()

    def discard(self) -> None:
        """Remove what was written: results that can be had again."""
        self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file.closed:
            return
        if kind is None:
            self.finish()
        elif self.left_at == self._path:
            self._file.complete()
        else:
            self._file.close()

    @property
    def left_at(self) -> Path:
        """Where an interrupted run leaves its cells: a complete file of an earlier run is not replaced."""
        return self._path.with_name(self._file.part.name) if is_complete(self._path) else self._path

    def _append(self, record: AnyRecord) -> None:
        self._file.write(record.model_dump_json() + "\n")


def is_complete(path: Path) -> bool:
    """Tell whether there is a results file with its last line."""
    try:
        lines = plain_end(path).split(b"\n")
    except (OSError, NotDecompressed):
        return False
    return len(lines) > 1 and lines[-1] == b"" and re.match(rb'\{\s*"record"\s*:\s*"footer"', lines[-2]) is not None
