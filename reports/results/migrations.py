"""Converts results in older formats to the current one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from conformance.core.observation import Observation
from conformance.core.versions import NotAVersion, SparkVersion
from reports.results.known_bug import gone_in
from reports.results.records import Cell, Target, UpgradeCell


def in_current_format(cell: Cell | UpgradeCell, format: int, targets: Mapping[str, Target]) -> Cell | UpgradeCell:
    """The cell as the newest format has it.

    Args:
        cell: as it was read.
        format: of its file.
        targets: of its file, by name.
    """
    if format < 2 and isinstance(cell, Cell):
        cell = _with_bug(cell, targets)
    return _with_error_classes(cell) if format < 3 else cell


def _with_bug(cell: Cell, targets: Mapping[str, Target]) -> Cell:
    """Format 1 did not distinguish a known bug from a documented change.

    A difference that a later patch release of the same line no longer shows was a bug: semantics do not change on purpose between patch
    releases.
    """
    entry = cell.differs
    if cell.status != "differs" or entry is None:
        return cell
    try:
        version = SparkVersion.parse(targets[cell.target].spark)
    except NotAVersion:
        return cell
    fixed = gone_in(entry.spark, version)
    if fixed is None or fixed.line != version.line:
        return cell
    return cell.model_copy(update={"status": "bug", "differs": entry.model_copy(update={"bug": True})})


def _with_error_classes(cell: Cell | UpgradeCell) -> Cell | UpgradeCell:
    behaviour = _with_error_class(cell.behaviour, cell.observation)
    if not isinstance(cell, Cell):
        return cell.model_copy(update={"behaviour": behaviour})
    runs = tuple(
        run.model_copy(update={"behaviour": _with_error_class(run.behaviour, run.observation)}) for run in cell.runs
    )
    return cell.model_copy(update={"behaviour": behaviour, "runs": runs})


def _with_error_class(digest: str | None, observation: Observation | None) -> str | None:
    """Up to format 2 the digest of an answer had the stage of its error, but not the class."""
    if observation is None or not observation.steps or observation.steps[-1].error is None:
        return digest
    for instants in (True, False):
        if digest == _digest_with_stages(observation, instants=instants):
            return observation.digest(instants=instants)
    return digest


def _digest_with_stages(observation: Observation, *, instants: bool) -> str:
    steps = [step.behaviour if instants else step.behaviour.without_instants() for step in observation.steps]
    written = [(step.batches, step.watermark, step.error.stage if step.error else None) for step in steps]
    return hashlib.sha256(json.dumps(written).encode()).hexdigest()
