"""Every case on every target, and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.judging.expected import expects_nothing_yet
from conformance.judging.verdict import Verdict, beyond, broken, combine, judge, not_applicable, not_run
from conformance.variants.variant import VariedCase
from harness.scheduling.cell_run import CellRun, CellTask
from harness.targets.target import Target

NOTHING_YET = "the case expects nothing yet: `conformance record {file}` fills in what Spark does"


def cells_of(cases: Sequence[Case], targets: Sequence[Target]) -> tuple[CellTask, ...]:
    """Every case on every target."""
    return tuple(CellTask(case, (target,)) for target in targets for case in cases)


class JudgeCases:
    """Gives each case on each target its verdict."""

    def without_run(self, task: CellTask, lacking: str | None) -> Verdict | None:
        verdict = not_applicable(task.case, task.target.version)
        if verdict is None and lacking is not None:
            verdict = beyond(task.case, task.target.version, lacking)
        return verdict

    def verdict(self, run: CellRun) -> Verdict:
        """The verdict on a run, repetitions combined."""
        case, version = run.case, run.task.target.version
        if not run.runnable:
            return not_run(case, version, run.failure or "")
        if run.failure is not None:
            return broken(case, version, run.failure)
        return combine([_judged(case, version, observation) for observation in run.observations])


def _judged(case: Case, version: SparkVersion, observation: Observation) -> Verdict:
    """The verdict on one observation; on a violation, with what the reference model predicts."""
    if isinstance(case, VariedCase):
        # What differs by version may depend on the source.
        written = case.original.model_copy(update={"topics": case.topics})
        found = _judged(written, version, case.observation_of_original(observation))
        return replace(found, case=case.id)
    verdict = judge(case, version, observation)
    if verdict.status != "violates":
        return verdict
    if expects_nothing_yet(case):
        return replace(verdict, status="broken", notes=(NOTHING_YET.format(file=case.file), *verdict.notes))
    # The model is slow to import, and most runs never need it.
    from conformance.oracle.blame import notes_of_the_model

    return replace(verdict, notes=(*verdict.notes, *notes_of_the_model(case, verdict, observation)))
