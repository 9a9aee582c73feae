"""Questions that people ask, answered by cases: where their answers hold is computed from results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.core.errors import WrongUsage
from reports.analysis.report import Report
from reports.analysis.specification import Specification, Statement, TestedBy
from reports.analysis.standing import Evidence


class WrongQuestion(WrongUsage):
    """A question names a case without results, or a behaviour that is not in the catalogue."""

    def __init__(self, id: str, why: str) -> None:
        super().__init__(f"questions.yaml: {id}: {why}")
        self.id = id


@dataclass(frozen=True)
class Question:
    """A question with its answer."""

    id: str
    """Its anchor."""
    question: str
    answer: str
    cases: tuple[TestedBy, ...]
    """The best one first."""
    statements: tuple[Statement, ...]
    """Those of the specification behind it."""
    links: tuple[str, ...]
    evidence: Evidence


def questions(report: Report, specification: Specification) -> tuple[Question, ...]:
    """The questions of the suite's catalogue, in its order.

    Raises:
        WrongQuestion: one names a case without a result, or a behaviour that is not in the catalogue.
    """
    entries = report.catalogue.questions if report.catalogue is not None else None
    statements = {statement.id: statement for statement in specification.statements}
    return tuple(_question(report, statements, id, entry) for id, entry in (entries or {}).items())


def _question(report: Report, statements: Mapping[str, Statement], id: str, entry: Mapping[str, Any]) -> Question:
    cases = tuple(map(str, entry.get("cases", ())))
    behaviours = tuple(map(str, entry.get("behaviours", ())))
    for case in cases:
        if report.case(case) is None and case not in report.changed:
            raise WrongQuestion(id, f"there are no results of a case {case!r}")
    for behaviour in behaviours:
        if behaviour not in statements:
            raise WrongQuestion(id, f"behaviours.yaml has no {behaviour!r}")
    return Question(
        id=id,
        question=" ".join(str(entry["question"]).split()),
        answer=" ".join(str(entry["answer"]).split()),
        cases=tuple(TestedBy(case, report.title(case)) for case in cases),
        statements=tuple(statements[behaviour] for behaviour in behaviours),
        links=tuple(map(str, entry.get("links", ()))),
        evidence=Evidence.of(report.matrix, cases, report.versions),
    )
