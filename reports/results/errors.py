"""The errors of results files: each says what is wrong and what to do about it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from conformance.core.wording import counted, printable

CellKey: TypeAlias = tuple[str, str]
"""The id of a case and the name of a target; in the upgrade matrix, both names with the cut."""

RESULTS_WANTED = "pass the results.jsonl that a run wrote"


class UnusableResults(Exception):
    def __init__(self, path: Path | None, problem: str, remedy: str, exit_code: int = 3) -> None:
        """``exit_code``: of the command; 2 if the file named is none of results."""
        text = f"{path}: {problem}; {remedy}" if path is not None else f"{problem}; {remedy}"
        # One line: a text quoted from the file must not begin a line of a CI log.
        super().__init__(printable(text))
        self.path = path
        self.problem = problem
        self.remedy = remedy
        self.exit_code = exit_code


class NotDecompressed(UnusableResults):
    """The content of a compressed file cannot be had."""

    def __init__(self, path: Path, why: str) -> None:
        remedy = "try `xz --test` on it, and copy it again or run again"
        super().__init__(path, f"the file cannot be decompressed ({why})", remedy)


class NotJson(UnusableResults):
    """A line is not JSON."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        remedy = "the file was changed or damaged after it was written; run again"
        super().__init__(path, f"line {line} is not JSON ({reason})", remedy)
        self.reason = reason


class NotARecord(UnusableResults):
    """A line is JSON, but not a valid record in this place."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(path, f"line {line} is not a valid record: {reason}", "if it is a results.jsonl, run again")
        self.reason = reason


def not_readable(path: Path, why: str) -> UnusableResults:
    return UnusableResults(path, f"the file cannot be read ({why})", RESULTS_WANTED, exit_code=2)


def not_copied(path: Path, why: str) -> UnusableResults:
    problem = f"its plain content cannot be copied to the folder of temporary files ({why})"
    return UnusableResults(path, problem, "make room there, or set TMPDIR to another folder")


def changed_while_read(path: Path) -> UnusableResults:
    return UnusableResults(path, "the file changed while it was read", "try again when no run writes it")


def not_results(path: Path, reason: str) -> UnusableResults:
    return UnusableResults(path, f"not a results file: line 1 {reason}", RESULTS_WANTED, exit_code=2)


def interrupted(path: Path, cells: int, expected: int) -> UnusableResults:
    problem = f"the run was interrupted after {cells} of {expected} cells: the footer is missing"
    return UnusableResults(path, problem, "run it again")


def missing_cells(path: Path | None, cells: Iterable[CellKey]) -> UnusableResults:
    named = [f"{case} on {target}" for case, target in sorted(cells)]
    problem = f"{counted(len(named), 'cell')} ({first_of(named, 3)}) of the header without a result"
    return UnusableResults(path, problem, "run again, or run the missing cells")


def duplicate_cell(path: Path | None, case: str, target: str, line: int | None = None) -> UnusableResults:
    where = f"line {line} is the second result" if line is not None else "there are two results"
    remedy = "pass each file once, and run each target in one run only"
    return UnusableResults(path, f"{where} of {case} on {target}", remedy)


def missing_shards(target: str, total: int, absent: Sequence[int]) -> UnusableResults:
    parts = first_of([f"{number}/{total}" for number in absent], 10)
    problem = f"of the {total} shards of {target}, these are missing: {parts}"
    return UnusableResults(None, problem, "pass the results of all shards")


def counts_do_not_match(path: Path, expected: Mapping[str, int], counts: Mapping[str, int]) -> UnusableResults:
    differing = sorted(status for status in {*expected, *counts} if expected.get(status, 0) != counts.get(status, 0))
    wrong = ", ".join(f"{expected.get(status, 0)} {status} instead of {counts.get(status, 0)}" for status in differing)
    remedy = "lines were changed or lost after they were written; run again"
    return UnusableResults(path, f"the footer counts {wrong}", remedy)


def first_of(texts: Sequence[str], shown: int) -> str:
    """Return the first texts and how many more there are: ``a, b, c and 2 more``."""
    more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
    return f"{', '.join(texts[:shown])}{more}"
