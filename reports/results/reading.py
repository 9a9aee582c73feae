"""Results files as they are read: only when complete and in themselves consistent.

Cells are kept without their observations, which are the bulk of a file and are read again when they are asked for. What a matrix, a
gate or a comparison reads of most cells is their status and the digest of their behaviour; only where two digests differ does it
read what was observed.
"""

import json
import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from conformance.core.case import Case
from conformance.core.wording import redact
from reports.results import errors
from reports.results.compression import is_compressed, open_results
from reports.results.evidence import contradiction_in, contradiction_with, denied
from reports.results.records import (
    FORMAT,
    RECORD,
    AllColumns,
    Cell,
    Footer,
    Header,
    Introduction,
    TargetRecord,
    cells_digest,
)
from reports.results.writing import ResultsWriter

_Identity: TypeAlias = tuple[int, int, int, int]

_READ_AGAIN = ("observation", "runs")
_SHARED = ("case", "expansion", "variant", "family", "case_digest", "target", "behaviour", "differs", "origin")
"""The values that are the same in many cells, which share them."""
_NUMBERS = count()
"""Those of the answers of all files."""
_KEPT = 64
"""The number of whole cells that stay in memory: a page of the report looks several times at those of one case."""


class ResultsFile:
    """A results file that was read once, of which lines are read again."""

    def __init__(self, path: Path) -> None:
        """Raises UnusableResults: it cannot be read."""
        self.path = path
        # A pipe can be read only once.
        self._lines: dict[int, bytes] | None = None if path.is_file() else {}
        self._plain: IO[bytes] | None = None
        """A copy of a compressed file, where a line has a place of its own."""
        self._values: dict[Any, Any] = {}
        self._answers: dict[tuple[str, str | None, int], int] = {}
        """A case, the digest of what was observed and the place of the columns in memory → the number of the answer."""
        self.compared: dict[Any, Any] = {}
        """What comparisons of its cells have found, for those who compare them again."""
        try:
            self._identity = _identity(path.stat())
        except OSError as error:
            raise errors.not_readable(path, error.strerror or str(error)) from None

    def keep(self, line: "RecordLine", cell: "StoredCell") -> None:
        """Take the observations of a cell of this file from memory."""
        if self._lines is not None:
            self._lines[line.offset] = line.content
        values = vars(cell)
        columns = cell.columns
        for name in _READ_AGAIN:
            if values.get(name):
                del values[name]
        for name in _SHARED:
            if value := values.get(name):
                values[name] = self._values.setdefault(value, value)
        # One name for all: with one more, the dict of a cell would take twice the memory.
        columns = self._values.setdefault(columns, columns)
        answer = self._answers.setdefault((cell.case, cell.behaviour, id(columns)), next(_NUMBERS))
        values["_place"] = self, line.offset, len(line.content), line.number, columns, answer
        # Nobody asks which fields a record names, and the sets take more memory than the values.
        cell.model_fields_set.clear()

    def text(self, offset: int, length: int) -> str:
        """Read the line there again. Raises UnusableResults: the file is not the one that was read before, or cannot be read."""
        content = self._content(offset, length) if self._lines is None else self._lines[offset]
        return content.decode("utf-8", "replace").strip()

    def _content(self, offset: int, length: int) -> bytes:
        try:
            if is_compressed(self.path):
                # No position is used, because processes that this one starts share it.
                return os.pread(self._decompressed().fileno(), length, offset)
            with self.path.open("rb", buffering=0) as file:
                if _identity(os.fstat(file.fileno())) != self._identity:
                    raise errors.changed_while_read(self.path)
                file.seek(offset)
                return file.read(length)
        except OSError as error:
            raise errors.not_readable(self.path, error.strerror or str(error)) from None

    def _decompressed(self) -> IO[bytes]:
        if self._plain is None:
            with open_results(self.path) as file:
                try:
                    copy = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
                    weakref.finalize(self, copy.close)
                    for part in iter(lambda: file.read(1 << 20), b""):
                        while part:  # where little room is left, the system writes a part of it
                            part = part[copy.write(part) :]
                except OSError as error:
                    raise errors.not_copied(self.path, error.strerror or str(error)) from None
            if _identity(self.path.stat()) != self._identity:
                raise errors.changed_while_read(self.path)
            self._plain = copy
        return self._plain


class _Stored:
    """What makes a cell one whose observations stay in its file: apart from it, as pydantic keeps private fields elsewhere."""

    _place: tuple[ResultsFile, int, int, int, AllColumns, int]
    """The file, the position of its line there, the length and the number of the line, the output columns, the number of the answer."""

    def __getattr__(self, name: str) -> Any:
        if name in _READ_AGAIN and "_place" in self.__dict__:
            return getattr(_read_again(*self._place[:3]), name)
        return super().__getattr__(name)  # type: ignore[misc]

    @property
    def file_of_results(self) -> ResultsFile:
        return self._place[0]

    @property
    def line(self) -> int:
        """Its line in the file, from 1."""
        return self._place[3]

    @property
    def answer(self) -> int:
        """A number that only cells of the same file with the same answer to the same case share.

        Those with one digest and the same columns have one answer, as both come from what was observed.
        """
        return self._place[5]

    def whole(self) -> Any:
        if "_place" not in vars(self):
            return self
        known = {name: value for name, value in self.__dict__.items() if not name.startswith("_")}
        return _read_again(*self._place[:3]).model_copy(update=known)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
        whole = self.whole()
        if whole is not self:
            return whole.model_copy(update=update, deep=deep)
        return super().model_copy(update=update, deep=deep)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return bool(self.whole() == (other.whole() if isinstance(other, _Stored) else other))

    def __hash__(self) -> int:
        return hash(self.whole())

    def model_dump_json(self, **options: Any) -> str:
        file, offset, length, *_ = self._place
        if not options:
            return file.text(offset, length)
        return str(self.whole().model_dump_json(**options))


class StoredCell(_Stored, Cell):
    """A cell whose observations stay in its file."""

    @property
    def columns(self) -> AllColumns:
        return self._place[4] if "_place" in vars(self) else super().columns


ReadRecord: TypeAlias = Header | Introduction | StoredCell | Footer
_READ: TypeAdapter[ReadRecord] = TypeAdapter(
    Annotated[ReadRecord, Field(discriminator="record")], config=ConfigDict(defer_build=True)
)


@lru_cache(maxsize=_KEPT)
def _read_again(file: ResultsFile, offset: int, length: int) -> Cell:
    record = RECORD.validate_json(file.text(offset, length))
    assert isinstance(record, Cell)
    return record


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


MOST_BYTES = 4 * 1024**3
"""The size of the biggest results file that is read, as it lies on the disk."""
LONGEST_LINE = 32 * 1024**2
"""The most bytes of a record."""
MOST_BLANK = 10_000
"""The number of empty lines that are skipped: a small compressed file can hold a thousand million of them."""


class RecordLine(NamedTuple):
    number: int
    offset: int
    """The position of its first byte in the file."""
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


def records(path: Path) -> Generator[tuple[RecordLine, ReadRecord]]:
    """Yield every record of a file with its line: first the header, in the format this code reads.

    Raises UnusableResults: a line is no record, or the file cannot be read.
    """
    header: Header | None = None
    cells = blank = 0
    for line in _lines(path):
        text = line.text
        if not text or text.isspace():
            blank += 1
            if blank > MOST_BLANK:
                raise errors.NotJson(path, line.number, f"more than {MOST_BLANK:,} lines are empty")
            continue
        if header is None:
            _check_first(path, line.number, text)
        try:
            record = _READ.validate_json(text)
        except ValidationError as problem:
            try:
                _object(path, line.number, text)
            except errors.NotJson:
                if text.endswith("\n") or header is None:
                    raise
                # The run was interrupted while it wrote this line.
                raise errors.interrupted(path, cells, len(header.expected_cells())) from None
            raise errors.NotARecord(path, line.number, _first(problem)) from None
        header = header or (record if isinstance(record, Header) else None)
        cells += isinstance(record, StoredCell)
        yield line, record
    if header is None:
        remedy = "the run never started writing: check its log and run it again"
        raise errors.UnusableResults(path, "the file is empty", remedy)


def header_of(path: Path) -> Header:
    """Read what a file announces, from its first line alone. Raises UnusableResults: as ``records``."""
    reading = records(path)
    try:
        header = next(reading)[1]
    finally:
        reading.close()
    assert isinstance(header, Header)
    return header


def _lines(path: Path) -> Iterator[RecordLine]:
    if not path.exists():
        part = path.with_name(f"{path.name}.part")
        unfinished = f", but {part.name} of a run that has not finished" if part.is_file() else ""
        raise errors.UnusableResults(path, f"there is no such file{unfinished}", errors.RESULTS_WANTED, exit_code=2)
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise errors.not_readable(path, f"it has {size:,} bytes; at most {MOST_BYTES:,} are read")
        offset = 0
        with open_results(path) as file:
            for number, content in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                if len(content) > LONGEST_LINE:
                    raise errors.NotJson(path, number, f"it has more than {LONGEST_LINE:,} bytes")
                yield RecordLine(number, offset, content)
                offset += len(content)
    except OSError as error:
        raise errors.not_readable(path, error.strerror or str(error)) from None


def _check_first(path: Path, number: int, line: str) -> None:
    """Check that it is a header, in the format this code reads: what is in another format nobody here can know."""
    try:
        content = _object(path, number, line)
    except errors.NotJson as error:
        raise errors.not_results(path, f"is not JSON ({error.reason})") from None
    except errors.NotARecord as error:
        raise errors.not_results(path, f"is {error.reason}") from None
    if content.get("record") != "header":
        raise errors.not_results(path, "is not a header")
    written = content.get("format")
    if type(written) is int and written != FORMAT:
        problem = f"the file has format {written}, but this program reads format {FORMAT}"
        later = "upgrade watermark-conformance"
        raise errors.UnusableResults(
            path, problem, later if written > FORMAT else "it is of an earlier release: run again"
        )


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError as problem:
        raise errors.NotJson(path, number, str(problem)) from None
    except RecursionError:
        raise errors.NotJson(path, number, "nested too deeply") from None
    if not isinstance(content, dict):
        raise errors.NotARecord(path, number, "not a JSON object")
    return content


def _first(problem: ValidationError) -> str:
    error = problem.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    return f"{where}: {error['msg']}" if where else error["msg"]


@dataclass(frozen=True)
class Results:
    """A complete run: every cell that its header announces."""

    header: Header
    cells: tuple[Cell, ...]
    footer: Footer
    paths: tuple[Path, ...] = ()
    upgrades: tuple[Cell, ...] = ()

    @classmethod
    def read(cls, path: Path, *, condensed: bool = False) -> "Results":
        """Read a file. Raises UnusableResults: it is damaged, incomplete or contradicts itself.

        ``condensed``: whether upgrades may have only the digest of what was observed, as the published ones, to be small.
        """
        read = records(path)
        header = next(read)[1]
        assert isinstance(header, Header)
        cells: dict[errors.CellKey, StoredCell] = {}
        announced = header.expected_cells()
        targets = {target.name: target for target in header.targets}
        file = ResultsFile(path)
        counts: Counter[str] = Counter()
        contradiction: errors.UnusableResults | None = None
        footer: Footer | None = None
        for line, record in read:
            if footer is not None:
                raise errors.NotARecord(path, line.number, "the footer is the last line")
            match record:
                case StoredCell():
                    key = record.key
                    if key in cells:
                        raise errors.duplicate_cell(path, *key, line=line.number)
                    if key not in announced:
                        problem = f"line {line.number} is about {key[0]} on {key[1]}, which is not in the header"
                        raise errors.UnusableResults(path, problem, "the file was assembled by hand; run again")
                    counts[record.status] += 1
                    # A file that is cut off or incomplete is that first of all.
                    contradiction = contradiction or contradiction_in(
                        path, line.number, record, targets, condensed=condensed
                    )
                    cells[key] = record
                    file.keep(line, record)
                case Header():
                    raise errors.NotARecord(path, line.number, "a second header")
                case Introduction(target=target):
                    if target.name not in targets:
                        raise errors.NotARecord(path, line.number, f"{target.name} is not a target of the header")
                    targets[target.name] = target
                case Footer():
                    footer = record
        if footer is None:
            raise errors.interrupted(path, len(cells), len(announced))
        if absent := announced - cells.keys():
            raise errors.missing_cells(path, absent)
        if (expected := Counter[str](footer.counts)) != counts:
            raise errors.counts_do_not_match(path, expected, counts)
        if contradiction is not None:
            raise contradiction
        if footer.digest not in (None, cells_digest(cells.values())):
            problem = "the cells are not those that the digest of the footer is about"
            raise errors.UnusableResults(
                path, problem, "lines were changed, added or lost after they were written; run again"
            )
        # A file may come from another tool, or from an earlier release of this one, which kept secrets.
        command = header.command and redact(header.command)
        met = header.model_copy(update={"targets": tuple(targets.values()), "command": command})
        return _complete(met, cells, footer.finished, (path,))

    def write(self, path: Path) -> None:
        """Write them as one file, as a single run would have. Raises as `conformance.core.output_file.OutputFile`."""
        with ResultsWriter(path, self.header) as writer:
            try:
                for cell in self.all_cells():
                    writer.write(cell)
                writer.finish(self.footer.finished)
            except BaseException:
                writer.discard()
                raise

    def all_cells(self) -> Iterator[Cell]:
        yield from self.cells
        yield from self.upgrades

    def check_with(self, cases: Iterable[Case]) -> None:
        """Check the cells against the cases at hand, as far as they ran as they are.

        Raises UnusableResults: a cell has or lacks an answer on a version, unlike what its case says of it.
        """
        versions = {target.name: target.version for target in self.header.targets}
        by_id = {case.id: case for case in cases}
        for cell in self.cells:
            case, version = by_id.get(cell.case), versions[cell.target]
            if case is None or version is None or case.digest != cell.case_digest:
                continue
            if (why := contradiction_with(case, version, cell)) is not None:
                path, line = (cell.file_of_results.path, cell.line) if isinstance(cell, StoredCell) else (None, None)
                raise denied(path, line, cell, why)

    @classmethod
    def read_all(cls, paths: Sequence[Path]) -> "Results":
        """Read several files and put them together. Raises UnusableResults: as ``read`` and ``together``."""
        return together([cls.read(path) for path in paths])


def together(results: Sequence[Results]) -> Results:
    """Put the results of several runs of one suite together, each of which ran other targets or other cases.

    Raises UnusableResults: they are of different suites, a target name stands for different engines, a part of a divided run is not
    here, two of them have the same cell, they leave cells of the matrix open, or they have no cell.
    """
    if not results:
        raise ValueError("no results to put together")
    _check_shards(results)
    if not any(part.cells or part.upgrades for part in results):
        path = next((path for part in results for path in part.paths), None)
        raise errors.UnusableResults(
            path, "there is no cell in these results", "run again with cases and versions that apply"
        )
    if len(results) == 1:
        return results[0]
    if len({part.header.suite for part in results}) > 1:
        names = [", ".join(map(str, part.paths)) or f"file {number}" for number, part in enumerate(results, 1)]
        suites = (f"{name} has {part.header.suite[:12]}" for name, part in zip(names, results, strict=True))
        problem = f"the results are of different suites: {', '.join(dict.fromkeys(suites))}"
        raise errors.UnusableResults(None, problem, "run all targets with the same cases")
    targets: dict[str, tuple[TargetRecord, Results]] = {}
    cells: dict[errors.CellKey, Cell] = {}
    for part in results:
        for target in part.header.targets:
            known, where = targets.setdefault(target.name, (target, part))
            if target.met and not known.met:
                # One part of a run may have had no cell that needed its engine.
                targets[target.name] = target, part
            elif target.met and known != target:
                files = " and ".join(map(str, (*where.paths, *part.paths)))
                problem = f"{target.name} is not the same engine in {files}"
                raise errors.UnusableResults(None, problem, "give one of them another name")
        for cell in part.all_cells():
            if cell.key in cells:
                raise errors.duplicate_cell(next(iter(part.paths), None), *cell.key)
            cells[cell.key] = cell
    header = Header(
        suite=results[0].header.suite,
        cases=tuple(dict.fromkeys(case for part in results for case in part.header.cases)),
        targets=tuple(target for target, _ in targets.values()),
        started=min(part.header.started for part in results),
        command=" ; ".join(dict.fromkeys(part.header.command for part in results if part.header.command)) or None,
        pairs=tuple(dict.fromkeys(pair for part in results for pair in part.header.pairs)),
        cuts={case: cuts for part in results for case, cuts in part.header.cuts.items()},
    )
    if absent := header.expected_cells() - cells.keys():
        raise errors.missing_cells(None, absent)
    paths = tuple(path for part in results for path in part.paths)
    return _complete(header, cells, max(part.footer.finished for part in results), paths)


def _complete(
    header: Header, cells: Mapping[errors.CellKey, Cell], finished: datetime, paths: tuple[Path, ...]
) -> Results:
    runs = tuple([cell for cell in cells.values() if cell.origin is None])
    upgrades = tuple([cell for cell in cells.values() if cell.origin is not None])
    counts = Counter(cell.status for cell in cells.values())
    return Results(header, runs, Footer(counts=counts, finished=finished), paths, upgrades)


def _check_shards(results: Sequence[Results]) -> None:
    """Check that every target that was run in parts was run in all of them: what a missing part holds, no other file announces."""
    parts: dict[tuple[str, int], set[int]] = {}
    for part in results:
        if part.header.shard is not None:
            number, total = part.header.shard
            for target in part.header.targets:
                parts.setdefault((target.name, total), set()).add(number)
    for (name, total), there in parts.items():
        if absent := set(range(1, total + 1)) - there:
            raise errors.missing_shards(name, total, sorted(absent))
