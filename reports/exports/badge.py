"""A badge in the JSON format of shields.io's endpoint."""

from __future__ import annotations

import json
from collections import Counter

from conformance.core.wording import counted
from conformance.judging.verdict import Status
from reports.analysis.gate import find
from reports.analysis.matrix import CellTotal
from reports.results.reading import Results
from reports.results.status import DOES_NOT_CONFORM, NO_RESULT

LABEL = "watermark conformance"


def badge(results: Results, version: str | None = None) -> str:
    """The badge of all versions, or of one.

    Raises:
        NoSuchVersion: the results do not have that version.
    """
    target = find(results, version) if version is not None else None
    cells = [cell for cell in results.cells if target is None or cell.target == target.name]
    counts: Counter[Status] = Counter(cell.status for cell in cells)
    total = CellTotal.of_counts(counts)
    bad = sum(counts[status] for status in DOES_NOT_CONFORM)
    open_ = sum(counts[status] for status in NO_RESULT)
    color = "red" if bad else "yellow" if open_ or total.bugs or not total.of else "brightgreen"
    message = f"{total.good} of {total.of}" + (f", {counted(total.bugs, 'known bug')}" if total.bugs else "")
    return (
        json.dumps(
            {
                "schemaVersion": 1,
                "label": f"{LABEL}, Spark {target.spark}" if target is not None else LABEL,
                "message": message if total.of else "no results",
                "color": color,
                "isError": color == "red",
            },
            ensure_ascii=False,
        )
        + "\n"
    )
