"""Results files as they are read: only when complete and in themselves consistent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conformance.core.redaction import redact
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
    NoCells,
    NoResultsFile,
    NotARecord,
    NotJson,
    NotReadable,
    TruncatedResults,
    UnknownCell,
)
from reports.results.evidence import check, with_own_behaviour
from reports.results.migrations import in_current_format
from reports.results.records import FORMAT, RECORD, AnyRecord, Cell, Footer, Header, Introduction, Target, UpgradeCell
from reports.results.writing import ResultsWriter

MOST_BYTES = 4 * 1024**3
"""Of a results file."""
LONGEST_LINE = 32 * 1024**2
"""In bytes, of one record."""


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
        records = list(_records(path))
        header = records[0][1]
        assert isinstance(header, Header)
        cells: dict[CellKey, Cell | UpgradeCell] = {}
        lines: dict[CellKey, int] = {}
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
                    cells[record.key], lines[record.key] = record, line
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
            current = in_current_format(cell, header.format, targets)
            check(path, lines[key], current)
            cells[key] = with_own_behaviour(current)
        # A file may come from another tool, or from an earlier release of this one, which kept secrets.
        command = header.command and redact(header.command)
        met = header.model_copy(update={"targets": tuple(targets.values()), "format": FORMAT, "command": command})
        return _complete(met, cells, footer.finished, (path,))

    def write(self, path: Path) -> None:
        """Write them as one file, as a single run would have.

        Raises:
            CannotWriteFile, OtherContent, BeingWritten: see `conformance.core.output_file.OutputFile`.
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
        NoCells: there is none.
    """
    if not results:
        raise ValueError("no results to put together")
    _check_shards(results)
    if not any(one.cells or one.upgrades for one in results):
        raise NoCells(next((path for one in results for path in one.paths), None))
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
    header: Header | None = None
    cells = 0
    for number, line in _lines(path):
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
                if line.endswith("\n") or header is None:
                    raise
                # The run was interrupted while it wrote this line.
                raise TruncatedResults(path, cells, len(header.expected_cells())) from None
            raise NotARecord(path, number, _first(problem)) from None
        header = header or (record if isinstance(record, Header) else None)
        cells += isinstance(record, Cell | UpgradeCell)
        yield number, record
    if header is None:
        raise EmptyResults(path)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines with their ends, as far as they are not too long to be records.

    Raises:
        NoResultsFile: there is none.
        NotReadable: it cannot be read, or is too big.
        NotJson: a line is too long.
    """
    if not path.exists():
        raise NoResultsFile(path)
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise NotReadable(path, f"it has {size:,} bytes; at most {MOST_BYTES:,} are read")
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                if len(line) > LONGEST_LINE:
                    raise NotJson(path, number, f"it has more than {LONGEST_LINE:,} bytes")
                yield number, line.decode("utf-8", "replace")
    except OSError as error:
        raise NotReadable(path, error.strerror or str(error)) from None


def _check_first(path: Path, number: int, line: str) -> None:
    """It is a header, in a format this code reads; a newer format cannot be checked."""
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
    except RecursionError:
        raise NotJson(path, number, "nested too deeply") from None
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
