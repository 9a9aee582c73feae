"""What can be wrong with a results file: each error says what it is and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

CellKey: TypeAlias = tuple[str, str]
"""Case id and target name; in the upgrade matrix, both target names with the cut."""


class UnusableResults(Exception):
    """No matrix can be made from these results."""

    def __init__(self, path: Path | None, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}" if path is not None else f"{problem}; {remedy}")
        self.path = path
        self.problem = problem
        self.remedy = remedy


class NoResultsFile(UnusableResults):
    """There is no such file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "there is no such file", "give the results.jsonl that a run has written")


class EmptyResults(UnusableResults):
    """The file has no content."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the file is empty", "the run never began to write: look at its log and run it again")


class TruncatedResults(UnusableResults):
    """The file has no footer: the run was interrupted."""

    def __init__(self, path: Path, cells: int, expected: int) -> None:
        super().__init__(
            path, f"the run was interrupted after {cells} of {expected} cells: there is no footer", "run it again"
        )
        self.cells = cells
        self.expected = expected


class NotJson(UnusableResults):
    """A line is not JSON."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(
            path,
            f"line {line} is not JSON ({reason})",
            "the file was changed or damaged after it was written: run again",
        )
        self.line = line
        self.reason = reason


class NotARecord(UnusableResults):
    """A line is JSON, and not what may stand there."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(
            path, f"line {line} is not what belongs there: {reason}", "is it a results.jsonl? If so, run again"
        )
        self.line = line
        self.reason = reason


class NewerFormat(UnusableResults):
    """The file was written by a later version of the suite."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            path, f"the file has format {found} and this program reads up to {known}", "upgrade watermark-conformance"
        )
        self.found = found
        self.known = known


class MissingCells(UnusableResults):
    """The header announces cells that have no record."""

    def __init__(self, path: Path | None, cells: Iterable[CellKey]) -> None:
        self.cells = tuple(sorted(cells))
        super().__init__(
            path, f"{_cells(self.cells)} of the header without a result", "run again, or run what is missing"
        )


class UnknownCell(UnusableResults):
    """A record is of a case or target that the header does not announce."""

    def __init__(self, path: Path, line: int, case: str, target: str) -> None:
        super().__init__(
            path,
            f"line {line} is of {case} on {target}, which the header does not have",
            "the file was put together: run again",
        )
        self.line = line
        self.case = case
        self.target = target


class DuplicateCell(UnusableResults):
    """A cell has two records."""

    def __init__(self, path: Path | None, case: str, target: str, line: int | None = None) -> None:
        where = f"line {line} is the second result" if line is not None else "there are two results"
        super().__init__(path, f"{where} of {case} on {target}", "give each run once, and each target to one run")
        self.case = case
        self.target = target
        self.line = line


class MissingShards(UnusableResults):
    """A run was divided into parts, and not all of them are here."""

    def __init__(self, target: str, of: int, absent: Sequence[int]) -> None:
        parts = ", ".join(f"{number}/{of}" for number in absent)
        super().__init__(
            None,
            f"of the {of} shards of {target} {'is' if len(absent) == 1 else 'are'} missing: {parts}",
            "give the results of all of them",
        )
        self.target = target
        self.of = of
        self.absent = tuple(absent)


class MixedSuites(UnusableResults):
    """Results of different suites cannot be put into one matrix."""

    def __init__(self, digests: Mapping[str, str]) -> None:
        each = ", ".join(f"{path} has {digest[:12]}" for path, digest in digests.items())
        super().__init__(None, f"the results are of different suites: {each}", "run all targets with the same cases")
        self.digests = dict(digests)


class MixedTargets(UnusableResults):
    """Two files mean different things by one target name."""

    def __init__(self, name: str, paths: tuple[Path, ...]) -> None:
        files = " and ".join(str(path) for path in paths)
        super().__init__(None, f"{name} is not the same engine in {files}", "give one of them another name")
        self.name = name
        self.paths = paths


class CountsDoNotMatch(UnusableResults):
    """The footer counts other cells than there are."""

    def __init__(self, path: Path, counted: Mapping[str, int], found: Mapping[str, int]) -> None:
        differing = sorted(status for status in {*counted, *found} if counted.get(status, 0) != found.get(status, 0))
        each = ", ".join(
            f"{counted.get(status, 0)} {status} where there are {found.get(status, 0)}" for status in differing
        )
        super().__init__(
            path, f"the footer counts {each}", "lines were changed or lost after it was written: run again"
        )
        self.counted = dict(counted)
        self.found = dict(found)


def _cells(cells: tuple[CellKey, ...], shown: int = 3) -> str:
    some = ", ".join(f"{case} on {target}" for case, target in cells[:shown])
    more = f" and {len(cells) - shown} more" if len(cells) > shown else ""
    return f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'} ({some}{more})"
