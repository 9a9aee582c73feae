"""What the record of a cell says, checked against its own evidence: what was observed counts, not what is said about it."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import TypeVar, cast

from conformance.core.observation import Observation
from conformance.judging.consistency import digest_omits_instants
from conformance.judging.verdict import AS_THE_CASE_SAYS
from conformance.policies.case import REAL_ENGINE
from conformance.policies.case import TARGET as MODEL
from reports.results.errors import UnusableResults
from reports.results.records import Cell, Target, UpgradeCell

AnyCell = TypeVar("AnyCell", bound=Cell | UpgradeCell)
_GREEN_UPGRADES = frozenset({"resumes", "differs", "refused", "unsupported"})


def answers_policies(target: Target) -> bool:
    """Tells whether a target answers cases on watermark policies, and no case for Spark: the model, and real engines."""
    return target.version is None and target.runtime in (MODEL, REAL_ENGINE)


def contradiction_in(
    path: Path, line: int, cell: Cell | UpgradeCell, *, condensed: bool = False, of_policies: Container[str] = ()
) -> UnusableResults | None:
    """Returns the error of a cell whose status says what its evidence denies.

    Args:
        condensed: whether upgrades may have the digest of what was observed instead of the observation.
        of_policies: names of the targets that answer cases on watermark policies, where no observation is kept.
    """
    why = next(_contradictions(cell, condensed, of_policies), None)
    if why is None:
        return None
    case, target = cell.key
    problem = f"line {line} says that {case} on {target} has the status {cell.status}, but {why}"
    return UnusableResults(path, problem, "the line was changed after it was written; run again")


def with_own_behaviour(cell: AnyCell) -> AnyCell:
    """Replaces the digest in the record by that of what was observed: somebody may have edited the rows.

    A record says only by its digest whether the case reads the clock, so a digest without watermarks stays.
    """
    if cell.observation is None and isinstance(cell, UpgradeCell):
        return cell
    behaviour = _behaviour(cell.behaviour, cell.observation)
    if behaviour is None and cell.observation is not None and cell.status in (*AS_THE_CASE_SAYS, "violates"):
        behaviour = cell.observation.behaviour_digest
    if behaviour == cell.behaviour:
        return cell
    return cast(AnyCell, cell.model_copy(update={"behaviour": behaviour}))


def _contradictions(cell: Cell | UpgradeCell, condensed: bool, of_policies: Container[str]) -> Iterator[str]:
    green = AS_THE_CASE_SAYS if isinstance(cell, Cell) else _GREEN_UPGRADES
    if cell.status not in green:
        return
    if cell.findings:
        yield "it has findings"
    if cell.observation is None and not _may_be_without(cell, condensed, of_policies):
        yield "nothing was observed"
    if not isinstance(cell, Cell):
        return
    if cell.status != "conforms" and cell.differs is None:
        yield "no entry of the case says so"
    if cell.status == "bug" and cell.differs is not None and not cell.differs.bug:
        yield "the entry of the case names no bug"
    if any(run.status != cell.status for run in cell.runs):
        yield "its runs have other statuses"
    if len({_behaviour(run.behaviour, run.observation) for run in cell.runs}) > 1:
        yield "its runs showed different behaviours"


def _may_be_without(cell: Cell | UpgradeCell, condensed: bool, of_policies: Container[str]) -> bool:
    if isinstance(cell, UpgradeCell):
        return condensed and cell.behaviour is not None
    return cell.target in of_policies and cell.status == "conforms"


def _behaviour(recorded: str | None, observation: Observation | None) -> str | None:
    if recorded is None or observation is None:
        return None
    seen = observation.behaviour_digest
    return recorded if recorded == seen or digest_omits_instants(recorded, observation) else seen
