"""Runs every case on every target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import Verdict, beyond, broken, combine, judge, not_applicable, not_run
from conformance.runner.run_cells import Display, Sink, run_cells
from conformance.variants.variant import VariedCase
from harness.engine.engine import Runtime
from harness.scheduling.answer_cache import AnswerCache
from harness.scheduling.cell_run import CellRun, CellTask, Limits
from harness.targets.target import Target


def cells_of(cases: Iterable[Case], targets: Sequence[Target]) -> tuple[CellTask, ...]:
    """Every case on every target."""
    cases = tuple(cases)
    return tuple(CellTask(case, (target,)) for target in targets for case in cases)


def run_cases(
    cases: Iterable[Case],
    targets: Sequence[Target],
    runtime: Runtime,
    limits: Limits,
    *,
    display: Display[Verdict],
    sink: Sink[Verdict],
    allow_code: bool = False,
    cache: AnswerCache | None = None,
) -> int:
    """Run every case on every target: ``run_cells``."""
    cells = cells_of(cases, targets)
    return run_cells(cells, _Judge(), runtime, limits, display=display, sink=sink, allow_code=allow_code, cache=cache)


class _Judge:
    def without_run(self, task: CellTask, lacking: str | None) -> Verdict | None:
        verdict = not_applicable(task.case, task.target.version)
        if verdict is None and lacking is not None:
            verdict = beyond(task.case, task.target.version, lacking)
        return verdict

    def verdict(self, run: CellRun) -> Verdict:
        return verdict_on(run)


def verdict_on(run: CellRun) -> Verdict:
    """The verdict on the run of a cell without a cut, repetitions combined."""
    case, version = run.case, run.task.target.version
    if not run.runnable:
        return not_run(case, version, run.failure or "")
    if run.failure is not None:
        return broken(case, version, run.failure)
    return combine([_judged(case, version, observation) for observation in run.observations])


def _judged(case: Case, version: SparkVersion, observation: Observation) -> Verdict:
    """The verdict on one observation; on a violation, with what the reference model predicts."""
    if isinstance(case, VariedCase):
        found = _judged(case.original, version, case.observation_of_original(observation))
        return replace(found, case=case.id)
    verdict = judge(case, version, observation)
    if verdict.status != "violates":
        return verdict
    # The model is slow to import, and most runs never need it.
    from conformance.oracle.blame import notes_of_the_model

    return replace(verdict, notes=(*verdict.notes, *notes_of_the_model(case, verdict, observation)))


class Tagged(Protocol):
    """Anything with tags: a case for Spark or on a policy."""

    @property
    def tags(self) -> Sequence[str]: ...


SomeCase = TypeVar("SomeCase", bound=Tagged)


def only_tagged(cases: Iterable[SomeCase], tags: Sequence[str]) -> tuple[SomeCase, ...]:
    """The cases that have one of the tags; all cases if no tag is given."""
    return tuple(case for case in cases if not tags or set(tags) & set(case.tags))
