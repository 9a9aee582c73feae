"""The errors of results files: each says what is wrong and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, TypeAlias

from conformance.core.wording import counted, printable

CellKey: TypeAlias = tuple[str, str]
"""Case id and target name; in the upgrade matrix, both target names with the cut."""

_SHOWN = 10
"""Parts of a run that a message lists."""


class UnusableResults(Exception):
    """These results do not make a matrix."""

    exit_code: ClassVar[int] = 3

    def __init__(self, path: Path | None, problem: str, remedy: str) -> None:
        text = f"{path}: {problem}; {remedy}" if path is not None else f"{problem}; {remedy}"
        # One line: a text quoted from the file must not begin a line of a CI log.
        super().__init__(printable(text))
        self.path = path
        self.problem = problem
        self.remedy = remedy


class NoResultsFile(UnusableResults):
    """There is no such file."""

    exit_code = 2

    def __init__(self, path: Path) -> None:
        part = path.with_name(f"{path.name}.part")
        unfinished = part.is_file()
        super().__init__(
            path,
            f"there is no such file, but {part.name} of a run that has not finished"
            if unfinished
            else "there is no such file",
            "pass the results.jsonl that a run wrote",
        )


class NotReadable(UnusableResults):
    """The file cannot be read."""

    exit_code = 2

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, f"the file cannot be read ({why})", "pass the results.jsonl that a run wrote")


class NotDecompressed(UnusableResults):
    """The content of a compressed file cannot be had."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            path, f"the file cannot be decompressed ({why})", "try `xz --test` on it, and copy it again or run again"
        )


class ChangedResults(UnusableResults):
    """The file was replaced or written to while it was being read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the file changed while it was read", "try again when no run writes it")


class NotResults(UnusableResults):
    """The file is another one: its first line is not the header of a results file."""

    exit_code = 2

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, f"not a results file: line 1 {reason}", "pass the results.jsonl that a run wrote")
        self.reason = reason


class EmptyResults(UnusableResults):
    """The file has no content."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the file is empty", "the run never started writing: check its log and run it again")


class TruncatedResults(UnusableResults):
    """The file has no footer: the run was interrupted."""

    def __init__(self, path: Path, cells: int, expected: int) -> None:
        super().__init__(
            path, f"the run was interrupted after {cells} of {expected} cells: the footer is missing", "run it again"
        )
        self.cells = cells
        self.expected = expected


class NotJson(UnusableResults):
    """A line is not JSON."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(
            path,
            f"line {line} is not JSON ({reason})",
            "the file was changed or damaged after it was written; run again",
        )
        self.line = line
        self.reason = reason


class NotARecord(UnusableResults):
    """A line is JSON, but not a valid record in this place."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(path, f"line {line} is not a valid record: {reason}", "if it is a results.jsonl, run again")
        self.line = line
        self.reason = reason


class NewerFormat(UnusableResults):
    """The file was written by a later version of the suite."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            path,
            f"the file has format {found}, but this program reads formats up to {known}",
            "upgrade watermark-conformance",
        )
        self.found = found
        self.known = known


class MissingCells(UnusableResults):
    """The header announces cells that have no record."""

    def __init__(self, path: Path | None, cells: Iterable[CellKey]) -> None:
        self.cells = tuple(sorted(cells))
        super().__init__(
            path, f"{_cells(self.cells)} of the header without a result", "run again, or run the missing cells"
        )


class UnknownCell(UnusableResults):
    """A record is about a case or target that is not in the header."""

    def __init__(self, path: Path, line: int, case: str, target: str) -> None:
        super().__init__(
            path,
            f"line {line} is about {case} on {target}, which is not in the header",
            "the file was assembled by hand; run again",
        )
        self.line = line
        self.case = case
        self.target = target


class DuplicateCell(UnusableResults):
    """A cell has two records."""

    def __init__(self, path: Path | None, case: str, target: str, line: int | None = None) -> None:
        where = f"line {line} is the second result" if line is not None else "there are two results"
        super().__init__(
            path, f"{where} of {case} on {target}", "pass each file once, and run each target in one run only"
        )
        self.case = case
        self.target = target
        self.line = line


class ContradictoryCell(UnusableResults):
    """A cell has a status that its own evidence denies."""

    def __init__(self, path: Path, line: int, cell: CellKey, status: str, why: str) -> None:
        super().__init__(
            path,
            f"line {line} says that {cell[0]} on {cell[1]} has the status {status}, but {why}",
            "the line was changed after it was written; run again",
        )
        self.line = line
        self.cell = cell


class NoCells(UnusableResults):
    """The results have no cell, so they say nothing."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, "there is no cell in these results", "run again with cases and versions that apply")


class MissingShards(UnusableResults):
    """A run was split into shards, and some of them are missing."""

    def __init__(self, target: str, of: int, absent: Sequence[int]) -> None:
        parts = ", ".join(f"{number}/{of}" for number in absent[:_SHOWN])
        parts += f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
        super().__init__(
            None,
            f"of the {of} shards of {target}, these are missing: {parts}",
            "pass the results of all shards",
        )
        self.target = target
        self.of = of
        self.absent = tuple(absent)


class MixedSuites(UnusableResults):
    """Results of different suites do not fit into one matrix."""

    def __init__(self, digests: Mapping[str, str]) -> None:
        each = ", ".join(f"{path} has {digest[:12]}" for path, digest in digests.items())
        super().__init__(None, f"the results are of different suites: {each}", "run all targets with the same cases")
        self.digests = dict(digests)


class MixedTargets(UnusableResults):
    """Two files use one target name for different engines."""

    def __init__(self, name: str, paths: tuple[Path, ...]) -> None:
        files = " and ".join(str(path) for path in paths)
        super().__init__(None, f"{name} is not the same engine in {files}", "give one of them another name")
        self.name = name
        self.paths = paths


class CountsDoNotMatch(UnusableResults):
    """The counts in the footer do not match the cells."""

    def __init__(self, path: Path, expected: Mapping[str, int], found: Mapping[str, int]) -> None:
        differing = sorted(status for status in {*expected, *found} if expected.get(status, 0) != found.get(status, 0))
        each = ", ".join(
            f"{expected.get(status, 0)} {status} instead of {found.get(status, 0)}" for status in differing
        )
        super().__init__(
            path, f"the footer counts {each}", "lines were changed or lost after they were written; run again"
        )
        self.expected = dict(expected)
        self.found = dict(found)


def _cells(cells: tuple[CellKey, ...], shown: int = 3) -> str:
    some = ", ".join(f"{case} on {target}" for case, target in cells[:shown])
    more = f" and {len(cells) - shown} more" if len(cells) > shown else ""
    return f"{counted(len(cells), 'cell')} ({some}{more})"
