"""The questions that people ask as a page of Markdown, and as ``llms.txt`` for programs that answer such questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reports.analysis.questions import Question
from reports.analysis.specification import TITLE, Specification
from reports.html.markdown_text import code, link, sources, text
from reports.html.specification_pages import CaseAddress, evidence_lines


def questions_markdown(
    questions: Sequence[Question], specification: Specification, address: CaseAddress, chapters: str
) -> str:
    """The page.

    Args:
        questions: in order.
        specification: whose statements they name.
        address: of the pages of cases.
        chapters: the address of the folder with the chapters of the specification.
    """
    places = statement_places(specification)
    contents = "\n".join(f"- {link(one.question, f'#{one.id}')}" for one in questions)
    lead = (
        "Each answer is shown by cases that run on real Spark versions, and the versions on which it holds are computed "
        "from their results."
    )
    parts = [f"# Questions people ask\n\n{lead}\n\n{contents}\n"]
    for one in questions:
        statements = ", ".join(
            link(statement.number, f"{chapters.rstrip('/')}/{places[statement.number]}") for statement in one.statements
        )
        cases = "\n".join(f"- {link(case.title, address(case.case))} {code(case.case)}" for case in one.cases)
        asked = f"*Asked and answered elsewhere:* {sources(one.links)}\n" if one.links else ""
        parts.append(
            f'<a id="{one.id}"></a>\n\n## {text(one.question)}\n\n{text(one.answer)}\n\n'
            + "\n".join(evidence_lines(one.evidence))
            + f"\n*Shown by:*\n\n{cases}\n\n*Specification:* {statements}\n\n{asked}"
        )
    return "\n".join(parts)


def statement_places(specification: Specification) -> Mapping[str, str]:
    """Number of a statement → its address in the folder of the chapters: ``03-late-filtering.md#3.1``."""
    return {
        statement.number: f"{chapter.name}.md#{statement.number}"
        for chapter in specification.chapters
        for statement in chapter.statements
    }


def llms_text(questions: Sequence[Question], specification: Specification, site: str) -> str:
    """Answers and statements in the format of https://llmstxt.org, each with its versions and its address.

    Args:
        questions: in order.
        specification: all statements.
        site: the address of the site, or ``.``.
    """
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
    for one in questions:
        yield f"- [{one.question}]({site}/questions.html#{one.id}): {one.answer} ({_where(one)})"
    for chapter in specification.chapters:
        yield ""
        yield f"## {TITLE}: {chapter.number} {chapter.title}"
        yield ""
        for statement in chapter.statements:
            address = f"{site}/specification/{chapter.name}.html#{statement.number}"
            where = "not tested" if statement.untested else "; ".join(map(str, statement.evidence.spans))
            yield f"- [{statement.number} {statement.id}]({address}): {statement.sentence} ({where})"


def _where(question: Question) -> str:
    return "; ".join(map(str, question.evidence.spans))
