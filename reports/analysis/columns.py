"""Columns of others: results of a vendor's or a team's Spark with where they come from, beside Apache's and never among their totals.

What an accelerator ran of the cases follows from the plans of their micro-batches.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from conformance.core.errors import WrongUsage
from conformance.core.observation import FrozenRecord, Observation
from conformance.core.wording import counted, printable, shortened
from conformance.judging.verdict import Status, rejects_the_query
from conformance.language.source import ProblemReport, read_yaml
from reports.analysis.equivalence import DifferentCell, NothingInCommon, compare
from reports.results.errors import UnusableResults, first_of
from reports.results.published import BASELINES
from reports.results.reading import Results
from reports.results.records import Cell, Name, TargetRecord
from reports.results.status import NO_RESULT

PUBLISHED = BASELINES / "columns"
_SUFFIXES = (".jsonl.xz", ".jsonl")
_LONGEST = 60
_SHOWN = 6
_LONGEST_WHY = 400
_SILENT = NO_RESULT | {"not-applicable"}


class UnusableColumn(WrongUsage):
    """A column cannot be published; each of the ``reasons`` says in a line what to do."""

    def __init__(self, path: Path, problems: Iterable[str]) -> None:
        self.path = path
        self.reasons = tuple(map(printable, problems))
        super().__init__("\n".join(f"{path}: {problem}" for problem in self.reasons))


Said: TypeAlias = Annotated[Name, Field(min_length=1, max_length=500)]


class Provenance(FrozenRecord):
    """Where the results come from: what stands in ``NAME.yaml`` beside ``NAME.jsonl.xz``."""

    model_config = ConfigDict(str_strip_whitespace=True)

    title: Said
    by: Said
    build: Said
    """What identifies the build: the digest of an image, a commit, the release of a service."""
    suite: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|\d+\.\d+\.\d+)$")]
    """The commit of the suite in full, or its release."""
    run: Annotated[str, StringConstraints(pattern=r"^https://[^\s\"<>]+$")] | None = None
    covers: Literal["all", "part"] = "all"
    note: Said | None = None
    """Why only a part ran, how the results were made if no CI run made them, and whatever else a reader must know."""

    def problems(self) -> Iterator[str]:
        if self.covers == "part" and self.note is None:
            yield "only a part of the suite ran (covers: part), and no note says why; add note:"
        if self.run is None and self.note is None:
            yield "neither run: names the CI run nor note: says how the results were made; add one of them"


@dataclass(frozen=True)
class NativeUse:
    target: TargetRecord
    answered: int
    """The number of cases whose queries ran."""
    native: int
    """The number of those in which it ran an operator."""
    stateful: int
    """The number of cases whose queries keep state."""
    native_stateful: int
    operators: Mapping[str, int]
    """Operator → the number of cases in which it ran."""

    def __str__(self) -> str:
        """``comet-spark-spark3.5_2.12 0.12.0 ran operators of 678 of 824 cases, of 600 of the 700 with state: CometProject 678, …``"""
        most = sorted(self.operators, key=lambda name: (-self.operators[name], name))
        names = ", ".join(f"{name} {self.operators[name]}" for name in most[:_SHOWN])
        more = f" and {counted(len(most) - _SHOWN, 'other operator')}" if len(most) > _SHOWN else ""
        cases = f"{self.native} of {counted(self.answered, 'case')}"
        stateful = f"{self.native_stateful} of the {self.stateful} with state"
        ran = f"{self.target.accelerator} ran operators of {cases}, of {stateful}"
        return ran + (f": {names}{more}" if names else "")


def native_uses(results: Results) -> Iterator[NativeUse]:
    """Yield what the accelerator of each column that has one ran."""
    for target in results.header.targets:
        if target.accelerator is None:
            continue
        answers = (cell.observation for cell in results.cells if cell.target == target.name)
        ran = [answer for answer in answers if answer is not None and any(step.batches for step in answer.steps)]
        with_state = [answer for answer in ran if any(batch.state for step in answer.steps for batch in step.batches)]
        operators = Counter(name for answer in ran for name in _operators(answer))
        native, stateful = (sum(bool(_operators(answer)) for answer in group) for group in (ran, with_state))
        yield NativeUse(target, len(ran), native, len(with_state), stateful, operators)


def _operators(answer: Observation) -> frozenset[str]:
    return frozenset(name for step in answer.steps for name in step.native or ())


@dataclass(frozen=True)
class ForeignColumn:
    """Results of one engine that is not Apache's release, with where they come from."""

    name: str
    provenance: Provenance
    results: Results

    @property
    def target(self) -> TargetRecord:
        return self.results.header.targets[0]

    @property
    def counts(self) -> Counter[Status]:
        return Counter(cell.status for cell in self.results.cells)

    @cached_property
    def native(self) -> tuple[NativeUse, ...]:
        """What its accelerator ran; empty without one."""
        return tuple(native_uses(self.results))


@dataclass(frozen=True)
class BesideApache:
    column: ForeignColumn
    release: TargetRecord | None
    compared: int
    """The number of cases that are the same in both and have an answer in both."""
    different: tuple[DifferentCell, ...]
    changed: tuple[str, ...]
    """The cases that have changed since the column was made; they are not compared."""
    newer: tuple[str, ...]
    """The cases that the suite has got since a column was made that covers all of it."""
    of: int
    """The number of cases that the suite has now."""

    @cached_property
    def refused(self) -> Mapping[str, tuple[DifferentCell, ...]]:
        """Of the different cases, those whose query the engine refused before it read a row, by what it said; the most frequent first."""
        cells_of: dict[str, list[DifferentCell]] = defaultdict(list)
        for cell in self.different:
            if why := _refusal(cell.b):
                cells_of[why].append(cell)
        return {why: tuple(cells_of[why]) for why in sorted(cells_of, key=lambda why: (-len(cells_of[why]), why))}

    @property
    def otherwise(self) -> tuple[DifferentCell, ...]:
        """The different cases that the engine did not refuse."""
        refused = {cell.case for cells in self.refused.values() for cell in cells}
        return tuple(cell for cell in self.different if cell.case not in refused)

    @property
    def outcome(self) -> str:
        """``2 different``; of an engine that refuses queries: ``9 different: refuses 7 cases; answers 2 otherwise``."""
        total = f"{len(self.different) or 'none'} different"
        refused = [cell for cells in self.refused.values() for cell in cells]
        if explained := sum(bool(cell.b.explained_by) for cell in self.different):
            total += f", {explained} explained by its settings"
        if not refused:
            return total
        both = sum(bool(_refusal(cell.a)) for cell in refused)
        too = f", {both} of which Apache's refuses too, with another error" if both else ""
        return f"{total}: refuses {counted(len(refused), 'case')}{too}; answers {len(self.otherwise)} otherwise"


def read_column(path: Path) -> ForeignColumn:
    """Read a ``NAME.yaml`` and the results beside it.

    Raises UnusableColumn: one of them cannot be read, or they do not belong together.
    """
    report = ProblemReport(path)
    content = read_yaml(path, report)
    if report.problems:
        reasons = [
            f"line {problem.line}: {problem.message}" if problem.line else problem.message
            for problem in report.problems
        ]
        raise UnusableColumn(path, reasons)
    try:
        provenance = Provenance.model_validate(content and content.plain())
    except ValidationError as invalid:
        errors = ((".".join(map(str, error["loc"])) or "the file", error["msg"]) for error in invalid.errors())
        raise UnusableColumn(path, map(": ".join, errors)) from None
    named = [path.with_name(path.stem + suffix) for suffix in _SUFFIXES]
    files = [file for file in named if file.is_file()]
    if len(files) != 1:
        raise UnusableColumn(path, [f"there must be one file {' or '.join(file.name for file in named)}"])
    try:
        results = Results.read(files[0])
    except UnusableResults as error:
        raise UnusableColumn(files[0], [f"{error.problem}; {error.remedy}"]) from None
    problems = [*provenance.problems(), *_not_one_engine(results, provenance)]
    if problems:
        raise UnusableColumn(path, problems)
    return ForeignColumn(path.stem, provenance, results)


def problems_of_submission(column: ForeignColumn, suite: str, digests: Mapping[str, str]) -> Iterator[str]:
    """Yield what keeps a new column from being published; ``suite`` and ``digests``, by case, are those of this suite."""
    ran = {cell.case for cell in column.results.cells}
    changed = _changed(column, digests)
    if column.results.header.suite != suite and (column.provenance.covers == "all" or changed):
        yield (
            f"the results are of another suite than this one ({counted(len(changed), 'case')} of it changed or went"
            f"{some(changed)}); check it with the release that ran, or run again"
        )
    if column.provenance.covers == "all" and (missing := sorted(digests.keys() - ran)):
        yield (
            f"{counted(len(missing), 'case')} of the suite did not run{some(missing)}; "
            "run all, `conformance run --all`, or say covers: part with a note"
        )
    unknown: dict[str, list[str]] = defaultdict(list)
    for cell in column.results.cells:
        if cell.status in NO_RESULT | {"flaky"}:
            unknown["; ".join(cell.notes)].append(cell.case)
    for why, cases in unknown.items():
        mend = f"; {shortened(' '.join(why.split()), _LONGEST_WHY)}; mend that, then" if why else ";"
        yield f"{counted(len(cases), 'case')} without a reliable answer{some(sorted(cases))}{mend} run again"


def published_columns() -> tuple[ForeignColumn, ...]:
    return tuple(read_column(path) for path in sorted(PUBLISHED.glob("*.yaml")))


def beside_apache(column: ForeignColumn, apache: Results, digests: Mapping[str, str]) -> BesideApache:
    """Compare a column with Apache's release of its version; ``digests``: of the cases of this suite, by id."""
    ran = {cell.case for cell in column.results.cells}
    changed = tuple(_changed(column, digests))
    newer = tuple(sorted(digests.keys() - ran)) if column.provenance.covers == "all" else ()
    try:
        difference = compare(apache, column.results)
    except NothingInCommon:
        return BesideApache(column, None, 0, (), changed, newer, len(digests))
    release = difference.pairs[0][0]
    answered = {
        (cell.case, cell.case_digest)
        for cell in apache.cells
        if cell.target == release.name and cell.status not in _SILENT
    }
    answering = (cell for cell in column.results.cells if cell.status not in _SILENT)
    compared = {cell.case for cell in answering if (cell.case, cell.case_digest) in answered}
    different = tuple(cell for cell in difference.different if cell.case in compared)
    return BesideApache(column, release, len(compared), different, changed, newer, len(digests))


def _refusal(cell: Cell) -> str:
    """Return what the engine said when it refused the query before a micro-batch ran; empty if it did not."""
    answer = cell.observation
    if answer is None or (error := answer.error) is None or not rejects_the_query(error):
        return ""
    ran = any(step.batches for step in answer.steps)
    return "" if ran else shortened(printable(" ".join(error.reason)) or error.title, _LONGEST)


def _not_one_engine(results: Results, provenance: Provenance) -> Iterator[str]:
    if len(results.header.targets) != 1 or not results.cells:
        yield f"the results have {counted(len(results.header.targets), 'column')}; a file has one"
        return
    (target,) = results.header.targets
    if target.apache:
        yield f"the column has the name of Apache's release, {target.name}; run with --label"
    if not target.met:
        yield "no engine introduced itself in these results; run again"
    digest = target.image_digest
    if digest is not None and digest not in provenance.build:
        yield f"the results are of the image {digest}, and build: names another one"


def _changed(column: ForeignColumn, digests: Mapping[str, str]) -> list[str]:
    return sorted({cell.case for cell in column.results.cells if digests.get(cell.case) != cell.case_digest})


def some(names: Sequence[str]) -> str:
    """Return ``: a, b, c and 2 more``; empty without names."""
    return f": {first_of(names, 3)}" if names else ""
