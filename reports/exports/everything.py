"""The whole report as one JSON document for other programs, described by ``everything.schema.json``.

Observations are not repeated: the results files are JSON already.
"""

from typing import Any, Literal

from conformance.core.observation import FrozenRecord
from conformance.core.wording import printable_json
from conformance.judging.comparison import Meaning
from conformance.judging.finding import described
from conformance.judging.verdict import Status
from conformance.suite.conditions import Condition
from reports.analysis.change import Changes
from reports.analysis.gate import default_rulings
from reports.analysis.matrix import summary
from reports.analysis.report import Report
from reports.analysis.tally import TallyRow, tally_of_cases
from reports.results.known_bug import KnownBug
from reports.results.records import Cell, TargetRecord


class ExportedCell(FrozenRecord):
    """One version of one case."""

    target: str
    status: Status
    behaviour: int | None
    """The number of its behaviour among those of the case, from 0, newest first; equal numbers mean equal behaviour."""
    because: str | None
    """Why it differs, has a known bug or is unsupported, as the case documents it."""
    link: str | None
    known_bug_fixed_in: str | None
    """Of a known bug, the first later release without it."""
    known_bug_introduced_by: str | None
    """Of a known bug without a ticket, the ticket that introduced it."""
    findings: tuple[str, ...]
    notes: tuple[str, ...]


class ExportedCase(FrozenRecord):
    id: str
    family: str
    title: str | None
    strength: Literal["documented", "observed"] | None
    behaviours: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[str, ...]
    cells: tuple[ExportedCell, ...]


class ExportedReason(FrozenRecord):
    spark: str
    text: str
    link: str | None
    bug: bool
    """Whether it is a known bug of that version rather than a documented change."""


class ExportedChange(FrozenRecord):
    case: str
    meaning: Meaning
    what: str
    where: str
    condition: Condition
    reasons: tuple[ExportedReason, ...]


class ExportedPair(FrozenRecord):
    """What changes from one version to another."""

    before: str
    after: str
    compared: int
    changes: tuple[ExportedChange, ...]
    outside: tuple[str, ...]
    wrong_on_both: tuple[str, ...]
    """The cases of the same behaviour on both that show a known bug on both."""
    checkpoints: str
    """What became of the checkpoints of the first on the other, or of those of the nearest pair that was tried, in a sentence."""
    silent: tuple[tuple[str, str, Status], ...]
    """The case, target and status of each cell without a result."""
    tally: TallyRow
    """Every case once: compared, by kind and condition of the change, or not compared."""


class ExportedCoverage(FrozenRecord):
    name: str
    of: int
    covered: int
    """The number of entries that a case covers, wholly or in part."""
    partly: tuple[str, ...]
    """The tests of Spark among them that lose an assertion."""
    untested: tuple[str, ...]


class Everything(FrozenRecord):
    """The whole document."""

    format: Literal[1] = 1
    suite: str
    started: str
    finished: str
    command: str | None
    summary: str
    exit_code: int
    """Exit code for these results: 0 everything conforms, 1 something does not, 3 results are missing."""
    targets: tuple[TargetRecord, ...]
    counts: dict[Status, int]
    cases: tuple[ExportedCase, ...]
    pairs: tuple[ExportedPair, ...]
    coverage: tuple[ExportedCoverage, ...]


def everything(report: Report) -> str:
    header, footer = report.results.header, report.results.footer
    document = Everything(
        suite=header.suite,
        started=header.started.isoformat(),
        finished=footer.finished.isoformat(),
        command=header.command,
        summary=summary(report.matrix),
        exit_code=report.matrix.exit_code,
        targets=report.targets,
        counts={status: count for status, count in sorted(report.matrix.totals.items()) if count},
        cases=tuple(_case(report, id) for id in report.matrix.cases),
        pairs=tuple(_pair(report, pair) for pair in report.pairs),
        coverage=tuple(
            ExportedCoverage(
                name=category.name,
                of=len(category.entries),
                covered=len(category.cases),
                partly=tuple(category.lost),
                untested=category.untested,
            )
            for category in report.covered
        ),
    )
    return printable_json(document.model_dump_json(indent=1)) + "\n"


def json_schema() -> dict[str, Any]:
    """Return the content of ``everything.schema.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Everything.model_json_schema(mode="serialization"),
    }


def _case(report: Report, id: str) -> ExportedCase:
    case = report.cases.get(id)
    numbers = {name: number for number, behaviour in enumerate(report.behaviours[id]) for name in behaviour.targets}
    return ExportedCase(
        id=id,
        family=id.rpartition("/")[0],
        title=" ".join(case.title.split()) if case is not None else None,
        strength=case.strength if case is not None else None,
        behaviours=case.behaviour if case is not None else (),
        tags=case.tags if case is not None else (),
        links=case.links if case is not None else (),
        cells=tuple(
            _cell(cell, numbers.get(target.name), report.matrix.known_bug(id, target))
            for target in report.targets
            if (cell := report.matrix.cell(id, target)) is not None
        ),
    )


def _cell(cell: Cell, behaviour: int | None, bug: KnownBug | None) -> ExportedCell:
    entry = cell.differs
    return ExportedCell(
        target=cell.target,
        status=cell.status,
        behaviour=behaviour,
        because=(entry.because or entry.unsupported) if entry is not None else None,
        link=entry.link if entry is not None else None,
        known_bug_fixed_in=bug.fixed_in if bug is not None else None,
        known_bug_introduced_by=bug.introduced_by if bug is not None else None,
        findings=tuple(described(cell.findings)),
        notes=cell.notes,
    )


def _pair(report: Report, pair: Changes) -> ExportedPair:
    return ExportedPair(
        before=pair.before.name,
        after=pair.after.name,
        compared=pair.compared,
        changes=tuple(
            ExportedChange(
                case=change.case,
                meaning=change.meaning,
                what=change.what,
                where=str(change.where),
                condition=report.condition(change),
                reasons=tuple(
                    ExportedReason(spark=reason.spark, text=reason.text, link=reason.link, bug=reason.bug is not None)
                    for reason in change.reasons
                ),
            )
            for change in pair.changes
        ),
        outside=pair.outside,
        wrong_on_both=pair.wrong_on_both,
        checkpoints=report.upgrades.between(pair.before, pair.after).summary(),
        silent=tuple((answer.case, answer.target, answer.status) for answer in pair.missing),
        tally=tally_of_cases(pair, default_rulings(pair, report.condition)),
    )
