"""The questions that people ask, for the site: each answered by cases and statements, as a page and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.core.errors import WrongUsage
from reports.analysis.report import Report
from reports.analysis.specification import TITLE, Clause, Evidence, Specification, SpecifiedStatement
from reports.html.specification_pages import CaseAddress, clause_lines, evidence_lines
from reports.html.texts import link, sources, text


@dataclass(frozen=True)
class Question:
    id: str
    question: str
    answer: str
    clauses: tuple[Clause, ...]
    """The parts of the answer; the best comes first."""
    statements: tuple[SpecifiedStatement, ...]
    links: tuple[str, ...]
    evidence: Evidence


def questions(report: Report, specification: Specification) -> tuple[Question, ...]:
    """Return the questions of the catalogue, in order. Raises ``WrongUsage`` if one names an unknown case or behaviour."""
    entries = report.catalogue.questions if report.catalogue is not None else None
    statements = {statement.id: statement for statement in specification.statements}
    return tuple(_question(report, statements, id, entry) for id, entry in (entries or {}).items())


def _question(
    report: Report, statements: Mapping[str, SpecifiedStatement], id: str, entry: Mapping[str, Any]
) -> Question:
    clauses = Clause.all_of(report, entry)
    behaviours = tuple(map(str, entry.get("behaviours", ())))
    for case in (clause.case for clause in clauses):
        if report.case(case) is None and case not in report.changed:
            raise WrongUsage(f"questions.yaml: {id}: there are no results of a case {case!r}")
    for behaviour in behaviours:
        if behaviour not in statements:
            raise WrongUsage(f"questions.yaml: {id}: behaviours.yaml has no {behaviour!r}")
    return Question(
        id=id,
        question=" ".join(str(entry["question"]).split()),
        answer=" ".join(str(entry["answer"]).split()),
        clauses=clauses,
        statements=tuple(statements[behaviour] for behaviour in behaviours),
        links=tuple(map(str, entry.get("links", ()))),
        evidence=Evidence.of(report, clauses),
    )


def questions_markdown(
    report: Report, questions: Sequence[Question], specification: Specification, address: CaseAddress, chapters: str
) -> str:
    """Return the page of questions; ``address``: of the pages of cases; ``chapters``: of the folder with the specification's chapters."""
    pages = {
        statement.number: f"{chapter.name}.md" for chapter in specification.chapters for statement in chapter.statements
    }
    contents = "\n".join(f"- {link(question.question, f'#{question.id}')}" for question in questions)
    lead = (
        "Each answer is shown by cases that run on real Spark versions, and the versions on which it holds are computed "
        "from their results."
    )
    parts = [f"# Questions people ask\n\n{lead}\n\n{contents}\n"]
    for asked in questions:
        statements = ", ".join(
            link(statement.number, f"{chapters.rstrip('/')}/{pages[statement.number]}#{statement.number}")
            for statement in asked.statements
        )
        shown = "\n".join(clause_lines(report, asked.clauses, asked.evidence, address))
        elsewhere = f"*Asked and answered elsewhere:* {sources(asked.links)}\n" if asked.links else ""
        parts.append(
            f'<a id="{asked.id}"></a>\n\n## {text(asked.question)}\n\n{text(asked.answer)}\n\n'
            + "\n".join(evidence_lines(asked.evidence))
            + f"\n*Shown by:*\n\n{shown}\n\n*Specification:* {statements}\n\n{elsewhere}"
        )
    return "\n".join(parts)


def llms_text(questions: Sequence[Question], specification: Specification, site: str) -> str:
    """Return answers and statements in the format of https://llmstxt.org, each with its versions and its address on the site."""
    return "\n".join(_llms_lines(questions, specification, site.rstrip("/"))) + "\n"


def _llms_lines(questions: Sequence[Question], specification: Specification, site: str) -> Iterator[str]:
    versions = ", ".join(target.title for target in specification.targets)
    yield "# Event-time semantics of Spark Structured Streaming"
    yield ""
    yield (
        f"> How watermarks behave in Apache Spark, tested on {versions}. Every statement here is shown by cases that ran "
        "on these versions; after it stand the versions on which it holds."
    )
    yield ""
    yield "## Questions people ask"
    yield ""
    for question in questions:
        yield f"- [{question.question}]({site}/questions.html#{question.id}): {question.answer} ({question.evidence.summary})"
    for chapter in specification.chapters:
        yield ""
        yield f"## {TITLE}: {chapter.number} {chapter.title}"
        yield ""
        for statement in chapter.statements:
            address = f"{site}/specification/{chapter.name}.html#{statement.number}"
            where = "not tested" if statement.untested else statement.evidence.summary
            yield f"- [{statement.number} {statement.id}]({address}): {statement.sentence} ({where})"
