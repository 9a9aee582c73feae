"""Runs one's own job: its case on both versions, and its checkpoint handed over before each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.judging.handoff_verdict import cuts
from conformance.runner.execution import Collector, Display, Plan, execute, unseen
from conformance.runner.resources import Concurrency
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun, CellTask
from harness.targets.target import Target
from reports.results.records import Header
from reports.results.records import Target as TargetRecord


@dataclass(frozen=True)
class Outcome:
    """What became of one cell: a run, or why there was none."""

    task: CellTask
    run: CellRun | None
    unsupported: str | None = None
    """Why the runtime cannot run it; None if it ran."""

    @property
    def observation(self) -> Observation | None:
        """What the engines showed; None without an answer."""
        return next(iter(self.run.observations), None) if self.run is not None else None

    @property
    def lacking(self) -> str | None:
        """Why there is no answer; None if there is one."""
        return self.run.failure if self.run is not None else self.unsupported


class KeepOutcomes:
    """The judge of a plan whose outcomes are compared with each other only when all are there: it judges nothing."""

    def without_run(self, task: CellTask, lacking: str | None) -> Outcome | None:
        return Outcome(task, None, lacking) if lacking is not None else None

    def verdict(self, run: CellRun) -> Outcome:
        return Outcome(run.task, run)


@dataclass(frozen=True)
class JobOptions:
    """Where a job runs."""

    runtime: RuntimeOptions
    work: Path | None = None
    concurrency: Concurrency = field(default_factory=Concurrency)


@dataclass(frozen=True)
class JobRun:
    """Everything that both versions answered."""

    case: Case
    before: Target
    after: Target
    outcomes: tuple[Outcome, ...]
    engines: tuple[TargetRecord, ...]
    """Both targets; those whose engine started, as they introduced themselves."""
    started: datetime
    conf: Mapping[str, str]
    """The settings of the engines that are not those of the case."""

    def on(self, target: Target) -> Outcome:
        """What one version did with the whole case."""
        return next(outcome for outcome in self.outcomes if outcome.task.cut is None and outcome.task.target == target)

    @property
    def handoffs(self) -> tuple[Outcome, ...]:
        """What became of each checkpoint, by the step before which it was handed over."""
        handoffs = [outcome for outcome in self.outcomes if outcome.task.cut is not None]
        return tuple(sorted(handoffs, key=lambda outcome: outcome.task.cut or 0))

    def header(self, suite: str, command: str) -> Header:
        """Of a file with its results; ``suite``: the digest of the case."""
        return Header(suite=suite, cases=(self.case.id,), targets=self.engines, started=self.started, command=command)


def cells_of_job(case: Case, before: Target, after: Target) -> Iterator[CellTask]:
    """The case on each version; and before each step but the first its checkpoint, resumed where it was written and on the other."""
    yield CellTask(case, (before,))
    yield CellTask(case, (after,))
    for cut in cuts(case, each=True):
        yield CellTask(case, (before, before), cut)
        yield CellTask(case, (before, after), cut)


def run_job(case: Case, before: Target, after: Target, options: JobOptions, display: Display[Outcome]) -> JobRun:
    """Run a job.

    Raises:
        Interrupted, HarnessError: see `conformance.runner.execution.execute`.
    """
    started = datetime.now(UTC)
    collector = outcomes(tuple(cells_of_job(case, before, after)), options, display)
    engines = tuple(
        collector.engines.get(target.name) or unseen(target, options.runtime.runtime) for target in (before, after)
    )
    outcomes_kept = tuple(outcome for outcome, _ in collector.kept)
    return JobRun(case, before, after, outcomes_kept, engines, started, options.runtime.conf)


def outcomes(cells: Sequence[CellTask], options: JobOptions, display: Display[Outcome]) -> Collector[Outcome]:
    """Run cells and keep what becomes of each; nothing is taken from the cache, because the code of the job is not part of the case.

    Raises:
        Interrupted, HarnessError: see `conformance.runner.execution.execute`.
    """
    limits = options.concurrency.limits(len({target for cell in cells for target in cell.targets}))
    collector: Collector[Outcome] = Collector(len(cells))
    plan = Plan(tuple(cells), options.runtime, limits, options.work, allow_code=True)
    execute(plan, KeepOutcomes(), collector, display)
    return collector
