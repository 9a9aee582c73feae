"""A whole run: the harness runs the cells, each answer is judged as it comes, and every cell is handed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import Verdict, beyond, broken, combine, judge, not_applicable, not_run
from conformance.runner.cached_answers import CachedAnswers, CacheQuery
from conformance.runner.listener import EngineDisplay, EngineSink, RunListener
from conformance.variants.variant import VariedCase
from harness.engine.engine import Runtime
from harness.scheduling.answer_cache import AnswerCache, CachedAnswer
from harness.scheduling.scheduler import CellRun, Limits, Scheduler, TargetQueue
from harness.targets.target import Target


class Display(EngineDisplay, Protocol):
    """What a person sees while it runs. Calls never overlap."""

    def started(self, case: Case, target: Target) -> None: ...

    def judged(self, target: Target, verdict: Verdict, seconds: float) -> None: ...


class Sink(EngineSink, Protocol):
    """Where cells are kept. Calls never overlap."""

    def keep(self, target: Target, case: Case, verdict: Verdict, run: CellRun | None) -> None:
        """A judged cell; ``run`` is None where nothing had to run."""


def run_cases(
    cases: Sequence[Case],
    targets: Sequence[Target],
    runtime: Runtime,
    limits: Limits,
    *,
    display: Display,
    sink: Sink,
    allow_code: bool = False,
    known: AnswerCache | None = None,
) -> None:
    """Run every case on every target and hand each judged cell to the sink; returns when all are in.

    Args:
        cases: what runs.
        targets: on which versions.
        runtime: where engines come from.
        limits: budget.
        display: shows it.
        sink: keeps it.
        allow_code: whether cases may call Python code of their authors.
        known: answers of earlier runs, which are not asked for again, and where new ones are kept; None for neither.

    Raises:
        KeyboardInterrupt: the user stopped it; every engine has ended.
    """
    reuse = CachedAnswers(known, runtime, limits.conf) if known is not None else None
    judging = _Judging(display, sink, reuse)
    queues = []
    for target in targets:
        left = {
            case.id: case
            for case in cases
            if not judging.without_running(case, target, runtime.unsupported(case, target))
        }
        asked = [CacheQuery(case, (target,)) for case in left.values()]
        for question, answer in reuse.among(asked) if reuse else ():
            judging.known(question.case, target, answer)
            del left[question.case.id]
        if left:
            queues.append(TargetQueue(target, tuple(left.values())))
    Scheduler(runtime, limits, judging, allow_code=allow_code).run(queues)


class _Judging(RunListener[Display, Sink]):
    """The scheduler's listener."""

    def without_running(self, case: Case, target: Target, lacking: str | None) -> bool:
        """Whether there is nothing to run; then the cell is judged. ``lacking``: why nobody could run it."""
        verdict = not_applicable(case, target.version)
        if verdict is None and lacking is not None:
            verdict = beyond(case, target.version, lacking)
        if verdict is not None:
            self._keep(case, target, verdict, None)
        return verdict is not None

    def known(self, case: Case, target: Target, answer: CachedAnswer) -> None:
        """The cell has been answered before."""
        for identity, place in answer.engines:
            self._sink.introduce(target, identity, place)
        run = CellRun(case, target, (answer.observation,), None, runnable=True, seconds=answer.seconds, reused=True)
        self._keep(case, target, verdict_on(run), run)

    def cell_started(self, case: Case, target: Target) -> None:
        with self._lock:
            self._display.started(case, target)

    def cell_done(self, run: CellRun) -> None:
        if self._reuse is not None and run.failure is None:
            self._reuse.keep(CacheQuery(run.case, (run.target,)), run.observations[0], run.seconds)
        with self._lock:
            self._keep(run.case, run.target, verdict_on(run), run)

    def _keep(self, case: Case, target: Target, verdict: Verdict, run: CellRun | None) -> None:
        self._sink.keep(target, case, verdict, run)
        self._display.judged(target, verdict, run.seconds if run else 0.0)


def verdict_on(run: CellRun) -> Verdict:
    """The verdict on what running a cell gave, repetitions combined."""
    version = run.target.version
    if not run.runnable:
        return not_run(run.case, version, run.failure or "")
    if run.failure is not None:
        return broken(run.case, version, run.failure)
    return combine([_judged(run.case, version, observation) for observation in run.observations])


def _judged(case: Case, version: SparkVersion, observation: Observation) -> Verdict:
    """The verdict on one run, with what the reference model says beside it where it is a violation."""
    if isinstance(case, VariedCase):
        found = _judged(case.original, version, case.observation_of_original(observation))
        return replace(found, case=case.id)
    verdict = judge(case, version, observation)
    if verdict.status != "violates":
        return verdict
    # Most runs never ask the model, and it is slow to import.
    from conformance.oracle.blame import opinion

    return replace(verdict, notes=(*verdict.notes, *opinion(case, verdict, observation)))


class Tagged(Protocol):
    """Whatever carries tags: a case, for Spark or on a policy."""

    @property
    def tags(self) -> Sequence[str]: ...


SomeCase = TypeVar("SomeCase", bound=Tagged)


def only_tagged(cases: Iterable[SomeCase], tags: Sequence[str]) -> tuple[SomeCase, ...]:
    """The cases that have one of the tags; all of them where none is asked for."""
    return tuple(case for case in cases if not tags or set(tags) & set(case.tags))
