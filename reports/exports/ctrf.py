"""Common Test Report Format, https://ctrf.io: one test per cell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from conformance.core.wording import printable_json
from conformance.judging.finding import described
from conformance.judging.verdict import Status
from reports.results.reading import Results
from reports.results.records import Cell

SPEC_VERSION = "0.0.0"
STATUSES: Mapping[Status, str] = {
    "conforms": "passed",
    "differs": "passed",
    "bug": "passed",
    "unsupported": "passed",
    "violates": "failed",
    "flaky": "failed",
    "broken": "other",
    "not-run": "pending",
    "not-applicable": "skipped",
}


def ctrf(results: Results, folder: str = "cases") -> str:
    """The whole report, with a line end; ``folder``: of the cases, relative to the root of the repository."""
    counts = Counter(STATUSES[cell.status] for cell in results.cells)
    report = {
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "results": {
            "tool": {"name": "watermark-conformance"},
            "summary": {
                "tests": len(results.cells),
                **{status: counts[status] for status in ("passed", "failed", "pending", "skipped", "other")},
                "start": int(results.header.started.timestamp() * 1000),
                "stop": int(results.footer.finished.timestamp() * 1000),
            },
            "tests": [_test(cell, folder) for cell in sorted(results.cells, key=lambda cell: (cell.target, cell.case))],
        },
    }
    return printable_json(json.dumps(report, ensure_ascii=False, indent=1)) + "\n"


def _test(cell: Cell, folder: str) -> dict[str, Any]:
    said = "\n".join([*described(cell.findings), *cell.notes])
    entry = cell.differs
    message = (entry.because or entry.unsupported) if entry is not None and not said else next(iter(cell.notes), None)
    line = next((finding.place.line for finding in cell.findings if finding.place.line is not None), None)
    found: dict[str, Any] = {
        "name": f"{cell.case} [{cell.target}]",
        "status": STATUSES[cell.status],
        "duration": cell.duration_ms,
        "suite": [cell.target, cell.family or "cases"],
        "rawStatus": cell.status,
        "filePath": f"{folder}/{cell.file}",
    }
    if cell.status == "bug":
        found["tags"] = ["known bug"]
    optional = {"message": message or (said.splitlines()[0] if said else None), "trace": said or None, "line": line}
    return found | {key: value for key, value in optional.items() if value is not None}
