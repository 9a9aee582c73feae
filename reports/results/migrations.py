"""Converts results in older formats to the current one."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.core.versions import NotAVersion, SparkVersion
from reports.results.known_bug import gone_in
from reports.results.records import FORMAT, Cell, Target


def of_today(cell: Cell, format: int, targets: Mapping[str, Target]) -> Cell:
    """The cell in the newest format.

    Format 1 did not distinguish a known bug from a documented change. A difference that a later patch release of the same line no
    longer shows was a bug: semantics do not change on purpose between patch releases.

    Args:
        cell: as it was read.
        format: of its file.
        targets: of its file, by name.
    """
    entry = cell.differs
    if format >= FORMAT or cell.status != "differs" or entry is None:
        return cell
    try:
        version = SparkVersion.parse(targets[cell.target].spark)
    except NotAVersion:
        return cell
    fixed = gone_in(entry.spark, version)
    if fixed is None or fixed.line != version.line:
        return cell
    return cell.model_copy(update={"status": "bug", "differs": entry.model_copy(update={"bug": True})})
