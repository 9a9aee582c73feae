"""JUnit XML for Jenkins and GitLab: one suite per version, one test case per cell.

Names are unique in the whole file, since GitLab identifies tests by name and class. The output follows the schema of
Jenkins' xUnit plugin. Documented differences and known bugs pass; the reason is in ``system-out``.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from conformance.core.wording import printable, without_commands
from conformance.judging.finding import described
from conformance.judging.verdict import Status
from reports.results.reading import Results
from reports.results.records import Cell, Target
from reports.results.status import MARKS

NAME = "watermark-conformance"
FAILURES: tuple[Status, ...] = ("violates", "flaky")
ERRORS: tuple[Status, ...] = ("broken", "not-run")

_NOT_IN_XML = re.compile("[\ufffe\uffff]")


def junit(results: Results) -> str:
    """The whole file, with a line end."""
    root = Xml.Element("testsuites", name=NAME)
    for target in results.header.targets:
        cells = [cell for cell in results.cells if cell.target == target.name]
        root.append(_suite(target, sorted(cells, key=lambda cell: cell.case), results))
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(target: Target, cells: list[Cell], results: Results) -> Xml.Element:
    suite = Xml.Element(
        "testsuite",
        name=_clean(target.name),
        tests=str(len(cells)),
        failures=str(sum(cell.status in FAILURES for cell in cells)),
        errors=str(sum(cell.status in ERRORS for cell in cells)),
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
    said = [*described(cell.findings), *(f"note: {note}" for note in cell.notes)]
    if cell.status == "not-applicable":
        Xml.SubElement(case, "skipped").text = _clean("\n".join(said) or "the case does not apply to this version")
    elif cell.status in (*FAILURES, *ERRORS):
        kind = "failure" if cell.status in FAILURES else "error"
        first = next((line.strip() for line in said[1:] or said), cell.status)
        told = Xml.SubElement(case, kind, type=cell.status, message=_clean(f"{cell.status}: {first}"))
        told.text = _clean("\n".join(said))
    elif cell.differs is not None:
        reason = cell.differs.because or cell.differs.unsupported or ""
        link = cell.differs.ticket
        Xml.SubElement(case, "system-out").text = _clean(f"{MARKS[cell.status].word}: {reason}{link}")
    return case


def _clean(text: str) -> str:
    """The text with every character that XML cannot hold, or that acts on a terminal, written as its number."""
    return _NOT_IN_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", without_commands(printable(text, keep="\t\n")))


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"
