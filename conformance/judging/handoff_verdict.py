"""What one version made of the checkpoint of another: the steps before the cut judged as of the first, the rest as of the second.

A cut is the number of the step before which the versions change. The rules are those of ``docs/upgrade.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from conformance.core.case import Add, Backlog, Case, Expectation, ExpectedError, Restart, Upgrade
from conformance.core.observation import ErrorSeen, Observation
from conformance.core.versions import SparkVersion
from conformance.judging.expected import (
    ExpectedStep,
    NotApplicable,
    Steps,
    Unsupported,
    expected,
    overlaid,
    until_the_end,
)
from conformance.judging.finding import ErrorDiffers, ErrorExpectedAs, Finding, FindingLocation, StaleEntry
from conformance.judging.log_consistency import disagreements, lost_or_doubled
from conformance.judging.verdict import by_step, mismatching, walk, why_incoherent
from conformance.judging.wall_clock import behaviour

UpgradeStatus: TypeAlias = Literal[
    "resumes", "differs", "refused", "unsupported", "violates", "broken", "not-applicable", "not-run"
]


@dataclass(frozen=True)
class CheckpointHandoff:
    """A case, and the step before which it changes versions."""

    case: Case
    cut: int
    """From 2."""


@dataclass(frozen=True)
class VersionPair:
    """The version that writes a checkpoint, and the one that goes on from it."""

    origin: SparkVersion
    to: SparkVersion

    def __str__(self) -> str:
        return f"{self.origin} → {self.to}"


@dataclass(frozen=True)
class UpgradeVerdict:
    """One cell of the upgrade matrix."""

    case: str
    pair: VersionPair
    cut: int
    status: UpgradeStatus
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    entry: Upgrade | None = None
    """The entry of the case that speaks of it."""
    error: ErrorSeen | None = None
    """With which the resuming version ended, wherever that was after the cut."""
    behaviour: str | None = None
    """Digest of what was seen."""


def cuts(case: Case, *, each: bool = False) -> tuple[int, ...]:
    """Where a case may change versions: before each step but the first, or only where that comes first to mind.

    That is where the case itself restarts its query, and else after the first rows have come. None for a case of one step, or one
    that is over when they have.
    """
    if each:
        return tuple(range(2, len(case.steps) + 1))
    restarts = [step.number for step in case.steps[1:] if isinstance(step.action, Restart)]
    after_data = [step.number + 1 for step in case.steps[:-1] if isinstance(step.action, Add | Backlog)]
    return tuple((restarts or after_data)[:1])


def handoffs(cases: Iterable[Case], *, each: bool = False) -> tuple[CheckpointHandoff, ...]:
    """Every case that keeps state, with each of its cuts."""
    return tuple(CheckpointHandoff(case, cut) for case in cases if case.keeps_state for cut in cuts(case, each=each))


def not_applicable(handover: CheckpointHandoff, pair: VersionPair) -> UpgradeVerdict | None:
    """The verdict where there is nothing to hand over or nobody to take it, None where the cell needs a run."""
    case, cut = handover.case, handover.cut
    origin, to = expected(case, pair.origin), expected(case, pair.to)
    for version, of_it in ((pair.origin, origin), (pair.to, to)):
        if isinstance(of_it, NotApplicable):
            return _without_run(handover, pair, f"the case is about Spark {of_it.spark}, not about {version}")
    if isinstance(origin, Unsupported):
        return _without_run(handover, pair, f"{pair.origin} writes no checkpoint: {origin.reason}")
    if isinstance(origin, Steps) and len(origin.steps) < cut and origin.steps[-1].ends_the_case:
        return _without_run(handover, pair, f"on {pair.origin} the case ends with an error before step {cut}")
    return None


def broken(handover: CheckpointHandoff, pair: VersionPair, reason: str) -> UpgradeVerdict:
    """The harness, not an engine, failed."""
    return UpgradeVerdict(handover.case.id, pair, handover.cut, "broken", notes=(reason,))


def not_run(handover: CheckpointHandoff, pair: VersionPair, reason: str) -> UpgradeVerdict:
    """There is no result."""
    return UpgradeVerdict(handover.case.id, pair, handover.cut, "not-run", notes=(reason,))


def judge_upgrade(handover: CheckpointHandoff, pair: VersionPair, observation: Observation) -> UpgradeVerdict:
    """Judge what two engines did with a case, one up to the cut and the other from there on.

    Never raises for what an engine did.
    """
    case, cut = handover.case, handover.cut
    nothing = not_applicable(handover, pair)
    if nothing is not None:
        return nothing
    verdict = UpgradeVerdict(case.id, pair, cut, "resumes", behaviour=behaviour(case, observation))
    if incoherent := why_incoherent(case, observation):
        return replace(verdict, status="broken", notes=(incoherent,))
    last = observation.steps[-1]
    verdict = replace(verdict, error=last.error if last.number >= cut else None)
    entry = case.upgrade_between(pair.origin, pair.to, cut)
    wanted = _steps(handover, pair)
    to = expected(case, pair.to)
    if isinstance(to, Unsupported):
        return _unsupported(to, handover, verdict, observation)
    if entry is not None and entry.error is not None:
        return _refused(entry, entry.error, wanted, handover, verdict, observation)
    overlay = wanted if entry is None else _overlay(wanted, entry, handover)
    walked = walk(overlay, case, pair.origin, observation, then=(cut, pair.to))
    if walked.broken is not None:
        return replace(verdict, status="broken", findings=walked.findings, notes=(walked.broken, *walked.notes))
    stale: tuple[Finding, ...] = ()
    if entry is not None and not walk(wanted, case, pair.origin, observation, then=(cut, pair.to)).findings:
        stale = (_stale(case, entry, pair, entry.because, "it goes on as if it had written the checkpoint itself"),)
    findings = (
        *stale,
        *by_step([*walked.findings, *disagreements(case, observation), *lost_or_doubled(case, observation)]),
    )
    if findings:
        return replace(verdict, status="violates", findings=findings, notes=walked.notes, entry=entry)
    return replace(verdict, status="resumes" if entry is None else "differs", notes=walked.notes, entry=entry)


def _without_run(handover: CheckpointHandoff, pair: VersionPair, note: str) -> UpgradeVerdict:
    return UpgradeVerdict(handover.case.id, pair, handover.cut, "not-applicable", notes=(note,))


def _steps(handover: CheckpointHandoff, pair: VersionPair) -> Steps:
    """What each step must show: up to the cut as of the first version, then as of the second.

    Where the second would have ended with an error before the cut, it ends with that error when it resumes.
    """
    origin, to = expected(handover.case, pair.origin), expected(handover.case, pair.to)
    assert isinstance(origin, Steps)
    before = origin.steps[: handover.cut - 1]
    if not isinstance(to, Steps):
        return Steps(before)
    if len(to.steps) < handover.cut and to.steps and to.steps[-1].ends_the_case:
        ending = to.steps[-1]
        resumed = replace(ending, step=handover.case.steps[handover.cut - 1])
        return Steps(until_the_end((*before, resumed)))
    return Steps(until_the_end((*before, *to.steps[handover.cut - 1 :])))


def _overlay(wanted: Steps, entry: Upgrade, handover: CheckpointHandoff) -> Steps:
    """The expectations with those of the entry laid over them, after the cut only."""
    return Steps(
        until_the_end(
            overlaid(step, entry.steps[step.step.number], handover.case)
            if step.step.number >= handover.cut and step.step.number in entry.steps
            else step
            for step in wanted.steps
        )
    )


def _unsupported(
    to: Unsupported, handover: CheckpointHandoff, verdict: UpgradeVerdict, seen: Observation
) -> UpgradeVerdict:
    """The feature is not there: the query must fail when it is built or started again."""
    if verdict.error is not None and verdict.error.stage in ("analysis", "start"):
        return replace(verdict, status="unsupported", notes=(to.reason,))
    return replace(verdict, status="violates", findings=(_not_this_error(handover, seen, None),))


def _refused(
    entry: Upgrade,
    error: ExpectedError,
    wanted: Steps,
    handover: CheckpointHandoff,
    verdict: UpgradeVerdict,
    observation: Observation,
) -> UpgradeVerdict:
    """The checkpoint must be refused with this error, and before the second version has done anything."""
    case, cut, verdict = handover.case, handover.cut, replace(verdict, entry=entry)
    before = walk(
        Steps(wanted.steps[: cut - 1]),
        case,
        verdict.pair.origin,
        observation.model_copy(update={"steps": observation.steps[: cut - 1]}),
    )
    if before.findings:
        return replace(verdict, status="violates", findings=before.findings)
    if verdict.error is None:
        said = f"refused, {entry.because}"
        stale = _stale(case, entry, verdict.pair, said, "the checkpoint is resumed to the end of the case")
        return replace(verdict, status="violates", findings=(stale,))
    done = any(batch for step in observation.steps[cut - 1 :] for batch in step.batches)
    if done or tuple(mismatching(error, verdict.error)):
        return replace(verdict, status="violates", findings=(_not_this_error(handover, observation, error),))
    return replace(verdict, status="refused")


def _not_this_error(
    handover: CheckpointHandoff, observation: Observation, wanted: ExpectedError | None
) -> ErrorDiffers:
    last = observation.steps[-1]
    said = ErrorExpectedAs(stage="start")
    if wanted is not None:
        said = ErrorExpectedAs(classes=wanted.classes, message=wanted.message, stage=wanted.stage)
    mismatches = tuple(mismatching(wanted, last.error)) if wanted is not None and last.error is not None else ()
    place = FindingLocation.of_step(handover.case, last.number, tuple(batch.id for batch in last.batches))
    return ErrorDiffers(place=place, expected=said, observed=last.error, mismatches=mismatches)


def _stale(case: Case, entry: Upgrade, pair: VersionPair, said: str, saw: str) -> StaleEntry:
    number = next(at for at, other in enumerate(case.upgrades, 1) if other is entry)
    link = f" ({entry.link})" if entry.link else ""
    return StaleEntry(
        aspect="upgrades",
        place=FindingLocation.of_entry(case, number, "upgrades"),
        spark=str(pair),
        expected=f"{said}{link}",
        observed=saw,
    )


__all__ = [
    "CheckpointHandoff",
    "Expectation",
    "ExpectedStep",
    "UpgradeStatus",
    "UpgradeVerdict",
    "VersionPair",
    "broken",
    "cuts",
    "handoffs",
    "judge_upgrade",
    "not_applicable",
    "not_run",
]
