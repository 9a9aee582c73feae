"""Results files: written line by line as cells come in, read back only when complete and in themselves consistent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, TextIO

from pydantic import ValidationError

from conformance.judging.handoff_verdict import UpgradeStatus
from conformance.judging.verdict import Status
from reports.results.errors import (
    CellKey,
    CountsDoNotMatch,
    DuplicateCell,
    EmptyResults,
    MissingCells,
    MissingShards,
    MixedSuites,
    MixedTargets,
    NewerFormat,
    NoResultsFile,
    NotARecord,
    NotJson,
    TruncatedResults,
    UnknownCell,
)
from reports.results.migrations import of_today, upgrade_of_today
from reports.results.records import FORMAT, RECORD, AnyRecord, Cell, Footer, Header, Introduction, Target, UpgradeCell


class ResultsWriter:
    """Appends cells to a results file, each flushed when ``write`` returns. Threads may share one.

    A context manager: leaving it writes the footer; leaving it by an exception does not, which tells readers that the run was
    interrupted.
    """

    def __init__(self, path: Path, header: Header) -> None:
        """Begin the file, replacing an existing one.

        Raises:
            OSError: it cannot be written.
        """
        self._missing = set(header.expected_cells())
        self._written: set[CellKey] = set()
        self._targets = {target.name for target in header.targets}
        self._counts: Counter[Status] = Counter()
        self._upgrades: Counter[UpgradeStatus] = Counter()
        self._lock = Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._append(header)

    def introduce(self, target: Target) -> None:
        """Record what a target of the header turned out to be, once its engine has introduced itself.

        Raises:
            ValueError: the header has no target of that name.
        """
        if target.name not in self._targets:
            raise ValueError(f"{target.name} is not a target of this run")
        with self._lock:
            self._append(Introduction(target=target))

    def write(self, cell: Cell | UpgradeCell) -> None:
        """Append one cell.

        Raises:
            ValueError: the header does not announce it, or it is already there.
        """
        with self._lock:
            case, where = cell.key
            if cell.key in self._written:
                raise ValueError(f"{case} on {where} already has its result")
            if cell.key not in self._missing:
                raise ValueError(f"{case} on {where} is not a cell of this run")
            self._append(cell)
            self._missing.discard(cell.key)
            self._written.add(cell.key)
            if isinstance(cell, Cell):
                self._counts[cell.status] += 1
            else:
                self._upgrades[cell.status] += 1

    def missing(self) -> frozenset[CellKey]:
        """The cells that have no result yet."""
        with self._lock:
            return frozenset(self._missing)

    def finish(self, finished: datetime | None = None) -> None:
        """Write the footer and close the file."""
        with self._lock:
            counts, upgrades = dict(self._counts), dict(self._upgrades)
            self._append(Footer(counts=counts, upgrades=upgrades, finished=finished or datetime.now(UTC)))
            self._file.close()

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file.closed:
            return
        if kind is None:
            self.finish()
        else:
            self._file.close()

    def _append(self, record: AnyRecord) -> None:
        self._file.write(record.model_dump_json() + "\n")
        self._file.flush()


@dataclass(frozen=True)
class Results:
    """A complete run: every cell that its header announces."""

    header: Header
    """With the targets as they introduced themselves."""
    cells: tuple[Cell, ...]
    footer: Footer
    paths: tuple[Path, ...] = ()
    upgrades: tuple[UpgradeCell, ...] = ()
    """The cells of the upgrade matrix."""

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read one file.

        Raises:
            UnusableResults: one of its kinds, for what is wrong with the file.
        """
        if not path.is_file():
            raise NoResultsFile(path)
        records = list(_records(path))
        header = records[0][1]
        assert isinstance(header, Header)
        cells: dict[CellKey, Cell | UpgradeCell] = {}
        footer: Footer | None = None
        announced = header.expected_cells()
        targets = {target.name: target for target in header.targets}
        for line, record in records[1:]:
            if footer is not None:
                raise NotARecord(path, line, "the footer is the last line")
            match record:
                case Header():
                    raise NotARecord(path, line, "a second header")
                case Introduction(target=target):
                    if target.name not in targets:
                        raise NotARecord(path, line, f"{target.name} is not a target of the header")
                    targets[target.name] = target
                case Cell() | UpgradeCell():
                    if record.key in cells:
                        raise DuplicateCell(path, *record.key, line=line)
                    if record.key not in announced:
                        raise UnknownCell(path, line, *record.key)
                    cells[record.key] = record
                case Footer():
                    footer = record
        if footer is None:
            raise TruncatedResults(path, len(cells), len(announced))
        if absent := announced - cells.keys():
            raise MissingCells(path, absent)
        _check_counts(path, footer.counts.items(), (one.status for one in cells.values() if isinstance(one, Cell)))
        _check_counts(
            path, footer.upgrades.items(), (one.status for one in cells.values() if isinstance(one, UpgradeCell))
        )
        for key, cell in cells.items():
            cells[key] = (
                of_today(cell, header.format, targets)
                if isinstance(cell, Cell)
                else upgrade_of_today(cell, header.format)
            )
        met = header.model_copy(update={"targets": tuple(targets.values()), "format": FORMAT})
        return _complete(met, cells, footer.finished, (path,))

    def write(self, path: Path) -> None:
        """Write them as one file, as a single run would have.

        Raises:
            OSError: it cannot be written.
        """
        with ResultsWriter(path, self.header) as writer:
            for cell in self.all_cells():
                writer.write(cell)
            writer.finish(self.footer.finished)

    def all_cells(self) -> Iterator[Cell | UpgradeCell]:
        """The cells of both matrices."""
        yield from self.cells
        yield from self.upgrades

    @classmethod
    def read_all(cls, paths: Sequence[Path]) -> Results:
        """Read several files and put them together.

        Raises:
            UnusableResults: as ``read`` and ``together``.
        """
        return together([cls.read(path) for path in paths])


def together(results: Sequence[Results]) -> Results:
    """One set of results from several runs of one suite, each of which ran other targets or other cases.

    Raises:
        ValueError: there are none.
        MixedSuites: they are of different suites.
        MixedTargets: one target name stands for different engines.
        MissingShards: a run was divided, and a part is not here.
        DuplicateCell: two of them have the same cell.
        MissingCells: together they leave cells of the matrix open.
    """
    if not results:
        raise ValueError("no results to put together")
    _check_shards(results)
    if len(results) == 1:
        return results[0]
    digests = {
        ", ".join(map(str, one.paths)) or f"file {number}": one.header.suite for number, one in enumerate(results, 1)
    }
    if len(set(digests.values())) > 1:
        raise MixedSuites(digests)
    targets: dict[str, tuple[Target, Results]] = {}
    cells: dict[CellKey, Cell | UpgradeCell] = {}
    for one in results:
        for target in one.header.targets:
            known, where = targets.setdefault(target.name, (target, one))
            if target.met and not known.met:
                # One part of a run may have had no cell that needed its engine.
                targets[target.name] = target, one
            elif target.met and known != target:
                raise MixedTargets(target.name, (*where.paths, *one.paths))
        for cell in one.all_cells():
            if cell.key in cells:
                raise DuplicateCell(next(iter(one.paths), None), *cell.key)
            cells[cell.key] = cell
    header = Header(
        suite=results[0].header.suite,
        cases=tuple(dict.fromkeys(case for one in results for case in one.header.cases)),
        targets=tuple(target for target, _ in targets.values()),
        started=min(one.header.started for one in results),
        command=" ; ".join(dict.fromkeys(one.header.command for one in results if one.header.command)) or None,
        pairs=tuple(dict.fromkeys(pair for one in results for pair in one.header.pairs)),
        cuts={case: cuts for one in results for case, cuts in one.header.cuts.items()},
    )
    if absent := header.expected_cells() - cells.keys():
        raise MissingCells(None, absent)
    paths = tuple(path for one in results for path in one.paths)
    return _complete(header, cells, max(one.footer.finished for one in results), paths)


def _complete(
    header: Header, found: Mapping[CellKey, Cell | UpgradeCell], finished: datetime, paths: tuple[Path, ...]
) -> Results:
    """Results with all their cells, counted."""
    cells = tuple(cell for cell in found.values() if isinstance(cell, Cell))
    upgrades = tuple(cell for cell in found.values() if isinstance(cell, UpgradeCell))
    footer = Footer(
        counts=Counter(cell.status for cell in cells),
        upgrades=Counter(cell.status for cell in upgrades),
        finished=finished,
    )
    return Results(header, cells, footer, paths, upgrades)


def _check_shards(results: Sequence[Results]) -> None:
    """Every target that was run in parts was run in all of them: what a missing part holds, no other file announces."""
    parts: dict[tuple[str, int], set[int]] = {}
    for one in results:
        if one.header.shard is not None:
            number, of = one.header.shard
            for target in one.header.targets:
                parts.setdefault((target.name, of), set()).add(number)
    for (name, of), there in parts.items():
        if absent := set(range(1, of + 1)) - there:
            raise MissingShards(name, of, sorted(absent))


def _records(path: Path) -> Iterator[tuple[int, AnyRecord]]:
    """Line numbers, from 1, and records. The first is the header, in a format this code reads."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if not text.strip():
        raise EmptyResults(path)
    lines = text.split("\n")
    unfinished = len(lines) if lines[-1].strip() else None
    header: Header | None = None
    cells = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if header is None:
            _check_first(path, number, line)
        try:
            record = RECORD.validate_json(line)
        except ValidationError as problem:
            try:
                _object(path, number, line)
            except NotJson:
                if number != unfinished or header is None:
                    raise
                # The run was interrupted while it wrote this line.
                raise TruncatedResults(path, cells, len(header.expected_cells())) from None
            raise NotARecord(path, number, _first(problem)) from None
        header = header or (record if isinstance(record, Header) else None)
        cells += isinstance(record, Cell | UpgradeCell)
        yield number, record


def _check_first(path: Path, number: int, line: str) -> None:
    """It is a header, in a format this code reads: what is in a newer one nobody here can know."""
    content = _object(path, number, line)
    if content.get("record") != "header":
        raise NotARecord(path, number, "the first line is the header")
    written = content.get("format")
    if isinstance(written, int) and written > FORMAT:
        raise NewerFormat(path, written, FORMAT)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError as problem:
        raise NotJson(path, number, str(problem)) from None
    if not isinstance(content, dict):
        raise NotARecord(path, number, "not a JSON object")
    return content


def _first(problem: ValidationError) -> str:
    error = problem.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    return f"{where}: {error['msg']}" if where else error["msg"]


def _check_counts(path: Path, counted: Iterable[tuple[str, int]], statuses: Iterable[str]) -> None:
    expected, found = Counter(dict(counted)), Counter(statuses)
    if expected != found:
        raise CountsDoNotMatch(path, expected, found)
