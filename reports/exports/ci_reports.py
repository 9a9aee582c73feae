"""What CI services show of results: JUnit XML, the step summary and the annotations of GitHub.

JUnit XML, for Jenkins and GitLab, follows the schema of Jenkins' xUnit plugin: a suite per version, a test case per cell. Names are
unique in the whole file, since GitLab identifies tests by name and class. Documented differences and known bugs pass, with the reason.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from xml.etree import ElementTree as Xml

from conformance.core.wording import counted, printable, without_commands
from conformance.judging.comparison import MEANINGS
from reports.analysis.change import Changes
from reports.analysis.checkpoints import UpgradeMatrix, by_pair
from reports.analysis.matrix import CellTotal, Matrix, summary
from reports.results.published import find
from reports.results.reading import Results
from reports.results.records import Cell, TargetRecord
from reports.results.status import DOES_NOT_CONFORM, GREEN, MARKS, NO_RESULT

NAME = "watermark-conformance"
_NOT_IN_XML = re.compile("[\ufffe\uffff]")


def junit(results: Results) -> str:
    root = Xml.Element("testsuites", name=NAME)
    for target in results.header.targets:
        cells = [cell for cell in results.cells if cell.target == target.name]
        root.append(_suite(target, sorted(cells, key=lambda cell: cell.case), results))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(target: TargetRecord, cells: list[Cell], results: Results) -> Xml.Element:
    suite = Xml.Element(
        "testsuite",
        name=_clean(target.name),
        tests=str(len(cells)),
        failures=str(sum(cell.status in DOES_NOT_CONFORM for cell in cells)),
        errors=str(sum(cell.status in NO_RESULT for cell in cells)),
        skipped=str(sum(cell.status == "not-applicable" for cell in cells)),
        time=_seconds(sum(cell.duration_ms for cell in cells)),
        timestamp=f"{results.header.started:%Y-%m-%dT%H:%M:%S}",
    )
    properties = Xml.SubElement(suite, "properties")
    for key, value in (("suite", results.header.suite), *target.model_dump(exclude_none=True).items()):
        Xml.SubElement(properties, "property", name=key, value=_clean(str(value)))
    suite.extend(_case(cell) for cell in cells)
    return suite


def _case(cell: Cell) -> Xml.Element:
    family = cell.family.replace("/", ".") or "cases"
    case = Xml.Element(
        "testcase",
        name=_clean(f"{cell.case} [{cell.target}]"),
        classname=_clean(f"{cell.target.replace('.', '_')}.{family}"),
        time=_seconds(cell.duration_ms),
    )
    evidence = cell.evidence()
    if cell.status == "not-applicable":
        Xml.SubElement(case, "skipped").text = _clean("\n".join(evidence) or "the case does not apply to this version")
    elif cell.status in DOES_NOT_CONFORM | NO_RESULT:
        kind = "failure" if cell.status in DOES_NOT_CONFORM else "error"
        first = next((line.strip() for line in evidence[1:] or evidence), cell.status)
        first = f"explained by {' and '.join(cell.explained_by)}" if cell.explained_by else first
        element = Xml.SubElement(case, kind, type=cell.status, message=_clean(f"{cell.status}: {first}"))
        element.text = _clean("\n".join(evidence))
    elif cell.differs is not None:
        text = f"{MARKS[cell.status].word}: {cell.differs.reason}{cell.differs.ticket}"
        Xml.SubElement(case, "system-out").text = _clean(text)
    return case


def _clean(text: str) -> str:
    """Write every character that XML cannot hold, or that acts on a terminal, as its number."""
    return _NOT_IN_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", without_commands(printable(text, keep="\t\n")))


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"


MOST_BYTES = 1024 * 1024
"""GitHub's limit."""
_ROOM = 400
MOST_FINDINGS = 200
LONGEST = 4_000
"""The most characters of the findings of a cell."""


def step_summary(results: Results, pairs: tuple[Changes, ...] = ()) -> str:
    """Return the summary, with comparisons of two versions, under ``MOST_BYTES``; parts that do not fit are counted."""
    matrix = Matrix.of(results)
    kept: list[str] = []
    size = 0
    blocks = list(_blocks(results, matrix, pairs))
    for at, block in enumerate(blocks):
        size += len(block.encode("utf-8", "replace"))
        if size > MOST_BYTES - _ROOM:
            kept.append(f"\n… and {len(blocks) - at} more parts do not fit; see the report.\n")
            break
        kept.append(block)
    return "".join(kept).encode("utf-8", "replace").decode()


def _blocks(results: Results, matrix: Matrix, pairs: tuple[Changes, ...]) -> Iterator[str]:
    yield f"## Watermark conformance\n\n{_text(summary(matrix))}.\n\n"
    bad = matrix.not_green()
    if bad:
        yield "### Not as expected\n\n"
    for case, target, status in bad[:MOST_FINDINGS]:
        cell = matrix.cell(case, target)
        head = f"{MARKS[status].glyph} <code>{_text(case)}</code> on {_text(target.name)}: {status}"
        # A blank line would end the block of HTML, and what follows it would be Markdown.
        evidence = cell.evidence() if cell is not None else ()
        lines = (line for line in "\n".join(evidence).splitlines() if line.strip())
        body = html.escape(without_commands("\n".join(map(printable, lines))))
        body = body if len(body) <= LONGEST else body[:LONGEST] + "…"
        yield f"<details><summary>{head}</summary>\n<pre>{body}</pre></details>\n\n"
    if len(bad) > MOST_FINDINGS:
        yield f"… and {len(bad) - MOST_FINDINGS} more cells.\n\n"
    yield from _known_bugs(matrix)
    upgrades = UpgradeMatrix(by_pair(results.upgrades), {})
    for pair in pairs:
        handed = upgrades.between(pair.before, pair.after)
        yield f"### From {_text(pair.before.title)} to {_text(pair.after.title)}\n\n"
        yield f"{_text(pair.basis.capitalize())}. Checkpoints: {_text(handed.summary())}.\n\n"
        yield from _changes(pair)
    yield from _numbers(matrix)


def _known_bugs(matrix: Matrix) -> Iterator[str]:
    rows: dict[tuple[str, str], list[str]] = {}
    for case, target in product(matrix.cases, matrix.targets):
        cell, bug = matrix.cell(case, target), matrix.known_bug(case, target)
        if cell is not None and cell.differs is not None and bug is not None:
            until = f", fixed in {bug.fixed_in}" if bug.fixed_in else ""
            rows.setdefault((case, f"{cell.differs.because}{bug.ticket}"), []).append(f"{target.spark}{until}")
    if rows:
        yield "### Known bugs\n\n| | case | what goes wrong | Spark |\n|---|---|---|---|\n"
        for (case, why), versions in rows.items():
            yield f"| {MARKS['bug'].glyph} | {_text(case)} | {_text(why)} | {_text('; '.join(versions))} |\n"
        yield "\n"


def _changes(pair: Changes) -> Iterator[str]:
    if not pair.changes:
        yield f"No change in {counted(pair.compared, 'compared case')}.\n\n" if pair.compared else ""
        return
    yield "| | case | what changes | why |\n|---|---|---|---|\n"
    for change in pair.changes:
        why = "; ".join(map(str, change.reasons))
        glyph = MEANINGS[change.meaning].glyph
        yield f"| {glyph} | {_text(change.case)} | {_text(change.what)} | {_text(why) or 'no documented reason'} |\n"
    yield "\n"


def _numbers(matrix: Matrix) -> Iterator[str]:
    names = [target.name for target in matrix.targets]
    if not names:
        return
    yield "### As expected\n\n"
    yield f"| family | {' | '.join(_text(name.removeprefix('spark-')) for name in names)} |\n|---{'|---:' * len(names)}|\n"
    for family, cases in matrix.families.items():
        totals = [CellTotal.of_counts(matrix.count(cases, [name])) for name in names]
        counts = " | ".join(str(total) if total.complete else f"**{total}**" for total in totals)
        yield f"| {_text(family) or 'no family'} | {counts} |\n"


def _text(text: str) -> str:
    return html.escape(printable(" ".join(text.split()))).translate(_MARKDOWN)


_MARKDOWN = str.maketrans({char: f"&#{ord(char)};" for char in "\\`*_[]|~"})


def workflow_commands(results: Results, folder: str = "cases") -> str:
    """Return the lines to print in a workflow, none if everything is as expected. A known bug becomes a notice.

    ``folder``: of the cases, relative to the root of the repository.
    """
    lines = [line for cell in results.cells if cell.status not in GREEN for line in _of(cell, folder)]
    for cell in results.cells:
        if cell.status == "bug":
            reason = f"{cell.differs.because}{cell.differs.ticket}" if cell.differs is not None else ""
            lines.append(_line("notice", f"{folder}/{cell.file}", None, f"{cell.target}, known bug", reason))
    return "".join(f"{line}\n" for line in sorted(lines))


def _of(cell: Cell, folder: str) -> Iterator[str]:
    level = "error" if cell.status in DOES_NOT_CONFORM else "warning"
    for finding in cell.findings:
        place = finding.place
        step = f", step {place.step}" if place.step is not None else ""
        body = "\n".join(line.strip() for line in finding.body())
        yield _line(level, f"{folder}/{place.file}", place.line, f"{cell.target}{step}", body)
    if not cell.findings:
        reason = "; ".join(cell.notes) or "no result"
        yield _line(level, f"{folder}/{cell.file}", None, cell.target, f"{cell.status}: {reason}")


def _line(level: str, file: str, line: int | None, title: str, message: str) -> str:
    places = {"file": file, **({"line": str(line)} if line is not None else {}), "title": title}
    escaped = ((key, _data(value).replace(":", "%3A").replace(",", "%2C")) for key, value in places.items())
    properties = ",".join(f"{key}={value}" for key, value in escaped)
    return f"::{level} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return printable(text, keep="\r\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


LABEL = "watermark conformance"


def badge(results: Results, version: str | None = None) -> str:
    """Return the badge of all versions, or of one. Raises NoSuchVersion: the results do not have that version."""
    target = find(results, version) if version is not None else None
    cells = [cell for cell in results.cells if target is None or cell.target == target.name]
    statuses = {cell.status for cell in cells}
    total = CellTotal.of_counts(Counter(cell.status for cell in cells))
    uncertain = statuses & NO_RESULT or total.bugs or not total.of
    color = "red" if statuses & DOES_NOT_CONFORM else "yellow" if uncertain else "brightgreen"
    message = f"{total.good} of {total.of}" + (f", {counted(total.bugs, 'known bug')}" if total.bugs else "")
    document = {
        "schemaVersion": 1,
        "label": f"{LABEL}, Spark {target.spark}" if target is not None else LABEL,
        "message": message if total.of else "no results",
        "color": color,
        "isError": color == "red",
    }
    return json.dumps(document, ensure_ascii=False) + "\n"
