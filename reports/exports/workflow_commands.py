"""GitHub workflow commands, shown as annotations: one per finding, at the file and line of its step."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.core.wording import printable
from reports.results.reading import Results
from reports.results.records import Cell
from reports.results.status import GREEN


def workflow_commands(results: Results, folder: str = "cases") -> str:
    """The lines to print in a workflow; empty if everything is as expected. A known bug becomes a notice.

    ``folder``: of the cases, relative to the root of the repository.
    """
    lines = [line for cell in results.cells if cell.status not in GREEN for line in _of(cell, folder)]
    lines += [_known_bug(cell, folder) for cell in results.cells if cell.status == "bug"]
    return "".join(f"{line}\n" for line in sorted(lines))


def _of(cell: Cell, folder: str) -> Iterator[str]:
    level = "error" if cell.status in ("violates", "flaky") else "warning"
    for finding in cell.findings:
        place = finding.place
        step = f", step {place.step}" if place.step is not None else ""
        yield _line(
            level,
            f"{folder}/{place.file}",
            place.line,
            f"{cell.target}{step}",
            "\n".join(line.strip() for line in finding.body()),
        )
    if not cell.findings:
        told = "; ".join(cell.notes) or "no result"
        yield _line(level, f"{folder}/{cell.file}", None, cell.target, f"{cell.status}: {told}")


def _known_bug(cell: Cell, folder: str) -> str:
    entry = cell.differs
    told = f"{entry.because}{entry.ticket}" if entry is not None else ""
    return _line("notice", f"{folder}/{cell.file}", None, f"{cell.target}, known bug", told)


def _line(level: str, file: str, line: int | None, title: str, message: str) -> str:
    places = {"file": file, **({"line": str(line)} if line is not None else {}), "title": title}
    properties = ",".join(f"{key}={_property(value)}" for key, value in places.items())
    return f"::{level} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return printable(text, keep="\r\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
