"""What the record of a cell says, checked against its own evidence: what was observed counts, not what is said about it."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import NotARange, SparkVersion, VersionRange
from conformance.judging.consistency import digest_omits_instants
from conformance.judging.verdict import AS_THE_CASE_SAYS
from reports.results.errors import UnusableResults
from reports.results.records import Cell, Run, TargetRecord
from reports.results.status import NO_RESULT

_OUTSIDE = re.compile(r"the case is about Spark (.+)")
"""The note of a case that does not apply to a version, as the judge writes it."""


def answers_policies(target: TargetRecord) -> bool:
    """Tell whether a target answers cases on watermark policies, and no case for Spark: the model."""
    if target.version is not None:
        return False
    from conformance.policies.case import TARGET  # takes long to import, and few results need it

    return target.runtime == TARGET


def contradiction_in(
    path: Path, line: int, cell: Cell, targets: Mapping[str, TargetRecord], *, condensed: bool = False
) -> UnusableResults | None:
    """Return the error of a cell whose status or digest says what its evidence denies.

    ``targets``: those of the file, by name; ``condensed``: whether upgrades may have the digest of what was observed instead of it.
    """
    why = next(_contradictions(cell, targets, condensed), None)
    return None if why is None else denied(path, line, cell, why)


def denied(path: Path | None, line: int | None, cell: Cell, why: str) -> UnusableResults:
    case, target = cell.key
    problem = f"line {line or '?'} says that {case} on {target} has the status {cell.status}, but {why}"
    return UnusableResults(path, problem, "the line was changed after it was written; run again")


def contradiction_with(case: Case, version: SparkVersion, cell: Cell) -> str | None:
    """Say why a cell cannot have its status on a version: exactly those have an answer that the case is about."""
    if case.applies_to(version):
        says_outside = cell.status == "not-applicable" and any(map(_OUTSIDE.fullmatch, cell.notes))
        return "the case is about this version" if says_outside else None
    answered = cell.status not in ("not-applicable", *NO_RESULT)
    return f"the case is about Spark {case.spark}" if answered else None


def _contradictions(cell: Cell, targets: Mapping[str, TargetRecord], condensed: bool) -> Iterator[str]:
    condensed = condensed and cell.origin is not None
    if cell.status == "not-applicable":
        yield from _applicable(cell, targets[cell.target].version if cell.origin is None else None)
    if cell.status in AS_THE_CASE_SAYS:
        if cell.findings:
            yield "it has findings"
        if cell.observation is None and not _may_be_without(cell, targets, condensed):
            yield "nothing was observed"
        if cell.observation is not None and cell.behaviour is None:
            yield "it has no digest of what was observed"
        if _has_rows_without_columns(cell):
            yield "it emitted rows and names no columns"
        if (cell.outcome is None) != (cell.origin is None):
            yield (
                "it does not say what the query did with the checkpoint" if cell.origin else "no checkpoint was resumed"
            )
        if cell.status != "conforms" and cell.differs is None:
            yield "no entry of the case says so"
        if cell.status == "bug" and cell.differs is not None and not cell.differs.bug:
            yield "the entry of the case names no bug"
        if any(run.status != cell.status for run in cell.runs):
            yield "its runs have other statuses"
        if len({run.behaviour for run in cell.runs}) > 1:
            yield "its runs showed different behaviours"
    answers: tuple[Cell | Run, ...] = (cell, *cell.runs)
    if not condensed and any(not _is_observed(answer.behaviour, answer.observation) for answer in answers):
        yield "its digest is not that of what was observed"


def _applicable(cell: Cell, version: SparkVersion | None) -> Iterator[str]:
    """Yield what denies that a cell does not apply: the versions that the case is about stand in its note."""
    if cell.observation is not None or cell.behaviour is not None or cell.runs or cell.findings:
        yield "something was observed"
    if not cell.notes:
        yield "it does not say why"
    for note in cell.notes:
        if version is not None and (outside := _OUTSIDE.fullmatch(note)):
            try:
                if version in _range(outside[1]):
                    yield f"{version} is among the versions that the case is about"
            except NotARange:
                yield "it names no versions that the case is about"


@lru_cache
def _range(text: str) -> VersionRange:
    return VersionRange.parse(text.split(" or "))


def _has_rows_without_columns(cell: Cell) -> bool:
    seen = cell.observation
    return seen is not None and any(
        not seen.columns_of(step) and any(batch.rows for batch in step.batches) for step in seen.steps
    )


def _may_be_without(cell: Cell, targets: Mapping[str, TargetRecord], condensed: bool) -> bool:
    """Tell whether a green cell may have no observation."""
    if cell.origin is not None:
        return condensed
    return cell.status == "conforms" and answers_policies(targets[cell.target])


def _is_observed(digest: str | None, observation: Observation | None) -> bool:
    if digest is None or observation is None:
        return digest is None
    return digest == observation.behaviour_digest or digest_omits_instants(digest, observation)
