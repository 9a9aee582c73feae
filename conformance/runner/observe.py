"""What one case shows on one version: from an engine, or from results of an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from conformance.core.case import Case
from conformance.core.observation import Identity, Observation
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import Verdict
from conformance.runner.resources import STEP_TIMEOUT_S, open_runtime
from conformance.runner.run import JudgeCases, cells_of
from conformance.runner.run_cells import Display, Sink, run_cells
from harness.engine.engine import EngineLocation
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun, CellTask, Limits
from harness.targets.target import Target
from reports.analysis.gate import find
from reports.results.reading import Results


class NoObservation(RuntimeError):
    """There is no answer to a case."""

    exit_code: ClassVar[int] = 3

    def __init__(self, case: str, why: str) -> None:
        super().__init__(f"{case}: no answer from Spark ({why}); nothing was recorded")


def observe(case: Case, target: Target, options: RuntimeOptions, display: Display[Verdict]) -> Observation:
    """Run one case.

    Raises:
        NoObservation: the engine gave no answer.
    """
    sink = _OneAnswer()
    with open_runtime(options) as runtime:
        run_cells(
            cells_of([case], [target]),
            JudgeCases(),
            runtime,
            Limits(jobs=1, step_timeout=STEP_TIMEOUT_S),
            display=display,
            sink=sink,
            allow_code=options.own_code is not None,
        )
    if sink.observation is None:
        raise NoObservation(case.id, sink.why)
    return _of_spark(sink.observation)


def observation_in(path: Path, case: Case, spark: str) -> Observation:
    """The answer of Spark to a case in a results file.

    Raises:
        NoSuchVersion: the results lack the version.
        NoObservation: they lack the case, or have no answer to it, or a mistake in the author's code ended it.
    """
    return _of_spark(answer_in(path, case, spark)[1])


def answer_in(path: Path, case: Case, spark: str | None) -> tuple[SparkVersion, Observation]:
    """The version and what it did with a case, in a results file.

    Args:
        path: of the results.
        case: the case.
        spark: the version, or its line; None if the results have only one.

    Raises:
        NoSuchVersion: the results lack the version, or have several.
        NoObservation: they lack the case, or have no answer to it.
    """
    results = Results.read(path)
    names = [target.name for target in results.header.targets]
    target = find(results, spark or (names[0] if len(names) == 1 else "newest"))
    cell = next((cell for cell in results.cells if (cell.case, cell.target) == (case.id, target.name)), None)
    if cell is None or cell.observation is None:
        raise NoObservation(case.id, f"none in {path}")
    return SparkVersion.parse(target.spark), cell.observation


def _of_spark(observation: Observation) -> Observation:
    """The observation, unless a mistake in the author's code ended it: that must not become an expectation.

    Raises:
        NoObservation: one did.
    """
    mistake = observation.own_code_error
    if mistake is not None:
        raise NoObservation(observation.case, "\n  ".join(mistake.lines()))
    return observation


class _OneAnswer(Sink[Verdict]):
    """Keeps the one answer."""

    def __init__(self) -> None:
        self.observation: Observation | None = None
        self.why = "it did not run"

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        pass

    def keep(self, task: CellTask, verdict: Verdict, run: CellRun | None) -> None:  # noqa: ARG002
        self.observation = next(iter(run.observations), None) if run is not None else None
        self.why = "; ".join(verdict.notes) or verdict.status
