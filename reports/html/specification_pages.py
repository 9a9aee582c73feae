"""The specification as Markdown: an index and a page for each chapter, and all of it as one page to print."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from markdown_it import MarkdownIt
from markupsafe import Markup

from conformance.core.output_file import FileKind, any_content, write_file
from conformance.core.wording import counted
from conformance.judging.verdict import Status
from reports.analysis.report import Report
from reports.analysis.specification import (
    STANDINGS,
    TITLE,
    Chapter,
    Clause,
    Evidence,
    Specification,
    SpecifiedStatement,
    StatedRule,
    Variation,
)
from reports.html.addresses import InAFolder, case_key
from reports.html.standalone import make_folder, write_standalone
from reports.html.texts import block, code, link, sources, text
from reports.results.status import MARKS

INDEX = "index.md"
APPENDIX = "appendix.md"
ONE_PAGE = "specification.html"
LIST = "statements.html"
_MARKDOWN = FileKind("a page of the specification", any_content)
_MANY = 4
"""The number of cases that are listed; the others are folded."""

CaseAddress: TypeAlias = Callable[[str], str | None]
"""Maps the id of a case to the address of its page; None if there is none."""


def pages_of_report(folder: str | None) -> CaseAddress:
    """Return the pages of cases as seen from the specification; ``folder``: the address of their report, if there is one."""
    if folder is None:
        return lambda _: None
    return lambda case: f"{folder.rstrip('/')}/{InAFolder().file(case_key(case))}"


@dataclass(frozen=True)
class SpecificationPages:
    report: Report
    specification: Specification
    address: CaseAddress

    def markdown(self) -> Mapping[str, str]:
        """Map the name of each file to its content: the index, a page for each chapter, and the appendix."""
        chapters = {f"{chapter.name}.md": self._chapter(chapter) for chapter in self.specification.chapters}
        return {INDEX: self.index(), **chapters, APPENDIX: self._appendix()}

    def one_page(self) -> str:
        """Return all of it, as Markdown with nothing folded."""
        chapters = self.specification.chapters
        contents = "\n".join(f"- [{chapter.number} {chapter.title}](#chapter-{chapter.number})" for chapter in chapters)
        body = "\n".join(self._chapter(chapter, 2, folded=False) for chapter in chapters)
        contents += f"\n- [{_APPENDIX_TITLE}](#appendix)"
        return f"# {TITLE}\n\n{self._preface()}\n## Contents\n\n{contents}\n\n{body}\n{self._appendix(2)}"

    def _preface(self) -> str:
        specification, results = self.specification, self.report.results
        cases = {case.case for statement in specification.statements for case in statement.cases}
        versions = ", ".join(target.title for target in specification.targets)
        return (
            "Every statement has a number that never changes, the cases about it, and the versions on which it holds: "
            "those on which the steps that prove its parts did what it says. "
            "Where the reference model has a rule for it, its values are shown with the functions that decide by them. "
            "Statement, cases and rule are kept in step by tests: a statement without a case or a result, "
            "and a rule whose misreading none of its statement's cases notices, fail the build.\n\n"
            f"{counted(len(specification.statements), 'statement')}, {counted(len(cases), 'case')}, on Spark {versions}. "
            f"Results of {self.report.date}, suite {code(results.header.suite[:12])}.\n"
        )

    def index(self, whole: str = "") -> str:
        """Return the sentences of all statements; their numbers lead to the page ``whole``, or to the pages of the chapters."""
        lines = [f"# {TITLE}\n", *([] if whole else [self._preface(), _LEGEND])]
        for chapter in self.specification.chapters:
            page = whole or f"{chapter.name}.md"
            lines += [f"\n## {link(f'{chapter.number} {chapter.title}', f'{page}#chapter-{chapter.number}')}\n"]
            lines += [
                f"- {link(statement.number, f'{page}#{statement.number}')} {text(statement.sentence)}"
                for statement in chapter.statements
            ]
        lines += [
            f"\n## {link(_APPENDIX_TITLE, f'{whole or APPENDIX}#appendix')}\n",
            f"- {link(_FEATURES, f'{whole or APPENDIX}#features')}",
            f"- {link(_UNPREDICTED, f'{whole or APPENDIX}#not-predicted')}",
        ]
        return "\n".join(lines) + "\n"

    def _appendix(self, level: int = 1) -> str:
        marks = "#" * level
        rows = [
            f"| {text(name)} | {code(spark)} | {_without(error)} | {sources([ticket])} |"
            for name, spark, error, ticket in self.specification.features
        ]
        items = [
            f"- {text(construct)}: {', '.join(link(id, self.address(id)) for id in ids)}"
            for construct, ids in sorted(self.specification.unpredicted.items())
        ]
        return "\n".join(
            [
                f'<a id="appendix"></a>\n\n{marks} {_APPENDIX_TITLE}\n',
                f'<a id="features"></a>\n\n{marks}# {_FEATURES}\n',
                "| feature | Spark | other versions | source |\n|---|---|---|---|",
                *rows,
                f'\n<a id="not-predicted"></a>\n\n{marks}# {_UNPREDICTED}\n',
                f"The model does not predict these cases on Spark {self.specification.targets[-1].spark}. "
                "Such a case is judged by its own expectations alone.\n",
                *items,
                "",
            ]
        )

    def _chapter(self, chapter: Chapter, level: int = 1, *, folded: bool = True) -> str:
        head = f'<a id="chapter-{chapter.number}"></a>\n\n{"#" * level} {chapter.number} {text(chapter.title)}\n'
        return "\n".join(
            [head, *(self._statement(statement, level + 1, folded=folded) for statement in chapter.statements)]
        )

    def _statement(self, statement: SpecifiedStatement, level: int, *, folded: bool) -> str:
        parts = [
            f'<a id="{statement.number}"></a>\n\n{"#" * level} {statement.number} {text(statement.id)}\n',
            f"**{text(statement.sentence)}**\n",
        ]
        if statement.observable != "all":
            parts.append(f"Can be observed on Spark {code(statement.observable)}.\n")
        if statement.untested is not None:
            parts.append(f"Not tested: {text(statement.untested)}\n")
        else:
            parts += [*evidence_lines(statement.evidence), self._cases(statement, folded=folded)]
        if statement.clauses:
            items = clause_lines(self.report, statement.clauses, statement.evidence, self.address)
            parts.append("*What fails if a part of it is wrong:*\n\n" + "\n".join(items) + "\n")
        parts.append(f"*Sources:* {sources(statement.sources)}\n")
        if statement.confs:
            parts.append(f"*Settings:* {', '.join(map(code, statement.confs))}\n")
        parts += [self._rule(rule, folded=folded) for rule in statement.rules]
        return "\n".join(parts)

    def _cases(self, statement: SpecifiedStatement, *, folded: bool) -> str:
        items = [
            f"- {link(case.title, self.address(case.case))} {code(case.case)}"
            + (f" {MARKS['bug'].glyph} known bug: {case.bugs}" if case.bugs else "")
            for case in statement.cases
        ]
        first, rest = (items[:_MANY], items[_MANY:]) if folded else (items, [])
        more = _fold(f"{counted(len(rest), 'more case')}", "\n".join(rest)) if rest else ""
        return f"*Tested by {counted(len(items), 'case')}:*\n\n" + "\n".join(first) + f"\n\n{more}"

    def _rule(self, rule: StatedRule, *, folded: bool) -> str:
        parts = [f"Source: {sources([rule.source])}\n"]
        for says, spark, value in rule.versions:
            where = f"Spark {code(spark)}" if spark is not None else "Every version"
            parts += [f"{where}: {text(says)}\n", block(value)]
        for reader in self.specification.readers(rule.name):
            parts.append(f"Read by {code(reader.name)}{':' if reader.text else '.'}\n")
            parts += [block(reader.text)] if reader.text else []
        body = "\n".join(parts)
        if folded:
            return _fold(f"Rule <code>{rule.name}</code> of the reference model", body)
        return f"*Rule {code(rule.name)} of the reference model.* {body}"


_APPENDIX_TITLE = "Appendix: versions of features, and limits of the model"
_FEATURES = "Features that some versions lack"
_UNPREDICTED = "What the reference model does not predict"


def _without(error: tuple[str, str] | None) -> str:
    """Say what versions without a feature do; ``error``: class and message, if they refuse it."""
    return f"{code(error[0])}: {text(error[1])}" if error is not None else "ignored, or refused elsewhere"


_LEGEND = " · ".join(STANDINGS.values()) + "\n"


def evidence_lines(evidence: Evidence) -> Iterator[str]:
    """Yield on which versions it holds, and why cited steps differ or did not run on some."""
    yield evidence.summary + "\n"
    if evidence.variations:
        yield "*What the cases document of its steps on some versions:*\n"
        yield "\n".join(_variation(variation) for variation in evidence.variations) + "\n"


def clause_lines(report: Report, clauses: Iterable[Clause], whole: Evidence, address: CaseAddress) -> Iterator[str]:
    """Yield each part of a sentence with its step, and with the versions on which it holds if they are not those of the whole."""
    for clause in clauses:
        evidence = Evidence.of(report, [clause])
        versions = f" ({evidence.summary})" if evidence.spans != whole.spans else ""
        shown = "a checkpoint handed over before" if clause.shows == "checkpoint" else f"{code(clause.shows)} of"
        yield f"- “{text(clause.says)}”: {shown} step {clause.step} of {link(clause.title, address(clause.case))}{versions}"


def _variation(variation: Variation) -> str:
    reason = variation.reason
    said = reason.because or f"not available: {reason.unsupported}"
    status: Status = "bug" if reason.bug else "unsupported" if reason.unsupported else "differs"
    ticket = f" ({sources([reason.link])})" if reason.link else text(reason.ticket)
    return f"- {MARKS[status].glyph} {variation.versions}: {text(said)}{ticket}, in {counted(len(variation.cases), 'case')}"


def _fold(summary: str, body: str) -> str:
    return f'<details markdown="1"><summary>{summary}</summary>\n\n{body}\n\n</details>\n'


def render(markdown: str) -> Markup:
    return Markup(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def write_specification(report: Report, folder: Path, cases: str | None = None) -> tuple[Path, ...]:
    """Write the pages and the two pages to print; other files in the folder stay.

    ``cases``: the address of a report whose pages of cases are linked, as seen from the folder. Raises as `Specification.of` and
    `conformance.core.output_file.write_file`.
    """
    rendered = SpecificationPages(report, Specification.of(report), pages_of_report(cases))
    make_folder(folder)
    written = []
    for name, content in rendered.markdown().items():
        write_file(folder / name, content, _MARKDOWN)
        written.append(folder / name)
    pages = {LIST: rendered.index(ONE_PAGE), ONE_PAGE: rendered.one_page()}
    for name, content in pages.items():
        write_standalone(folder / name, "a specification", "specification.html", TITLE, body=render(content), name=name)
    return (*written, *(folder / name for name in pages))
