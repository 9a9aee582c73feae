"""Results files as they are read: only when complete and in themselves consistent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from conformance.core.redaction import redact
from reports.results.errors import (
    CellKey,
    ContradictoryCell,
    CountsDoNotMatch,
    DuplicateCell,
    MissingCells,
    MissingShards,
    MixedSuites,
    MixedTargets,
    NoCells,
    NotARecord,
    TruncatedResults,
    UnknownCell,
)
from reports.results.evidence import answers_policies, contradiction_in, with_own_behaviour
from reports.results.record_lines import records
from reports.results.records import Cell, Footer, Header, Introduction, Target, UpgradeCell
from reports.results.stored import ResultsFile
from reports.results.writing import ResultsWriter


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
    def read(cls, path: Path, *, condensed: bool = False) -> Results:
        """Read one file.

        Args:
            path: the file.
            condensed: whether upgrades may have only the digest of what was observed, as the published ones, to be small.

        Raises:
            UnusableResults: one of its kinds, for what is wrong with the file.
        """
        read = records(path)
        header = next(read)[1]
        assert isinstance(header, Header)
        cells: dict[CellKey, Cell | UpgradeCell] = {}
        announced = header.expected_cells()
        targets = {target.name: target for target in header.targets}
        of_policies = {target.name for target in header.targets if answers_policies(target)}
        file = ResultsFile(path)
        counted: Counter[tuple[str, str]] = Counter()
        contradiction: ContradictoryCell | None = None
        footer: Footer | None = None
        for line, record in read:
            if footer is not None:
                raise NotARecord(path, line.number, "the footer is the last line")
            match record:
                case Cell() | UpgradeCell():
                    key = record.key
                    if key in cells:
                        raise DuplicateCell(path, *key, line=line.number)
                    if key not in announced:
                        raise UnknownCell(path, line.number, *key)
                    counted[record.record, record.status] += 1
                    # A file that is cut off or incomplete is that first of all.
                    contradiction = contradiction or contradiction_in(
                        path, line.number, record, condensed=condensed, of_policies=of_policies
                    )
                    own = with_own_behaviour(record)
                    cells[key] = file.stored(line, own, as_written=own is record)
                case Header():
                    raise NotARecord(path, line.number, "a second header")
                case Introduction(target=target):
                    if target.name not in targets:
                        raise NotARecord(path, line.number, f"{target.name} is not a target of the header")
                    targets[target.name] = target
                case Footer():
                    footer = record
        if footer is None:
            raise TruncatedResults(path, len(cells), len(announced))
        if absent := announced - cells.keys():
            raise MissingCells(path, absent)
        _check_counts(path, footer.counts, counted, "cell")
        _check_counts(path, footer.upgrades, counted, "upgrade")
        if contradiction is not None:
            raise contradiction
        # A file may come from another tool, or from an earlier release of this one, which kept secrets.
        command = header.command and redact(header.command)
        met = header.model_copy(update={"targets": tuple(targets.values()), "command": command})
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
    # Not isinstance, which takes pydantic longer than all the rest of this.
    cells = tuple([cell for cell in found.values() if cell.record == "cell"])
    upgrades = tuple([cell for cell in found.values() if cell.record == "upgrade"])
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


def _check_counts(
    path: Path, told: Mapping[Any, int], counted: Mapping[tuple[str, str], int], kind: Literal["cell", "upgrade"]
) -> None:
    expected = Counter(told)
    found = Counter({status: count for (record, status), count in counted.items() if record == kind})
    if expected != found:
        raise CountsDoNotMatch(path, expected, found)
