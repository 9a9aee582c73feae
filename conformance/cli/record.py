"""``conformance record``: what a real Spark does, as the expectations of a case."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from conformance.cli import options, running
from conformance.cli.progress import PlainDisplay
from conformance.core.case import Case
from conformance.core.observation import Identity, Observation
from conformance.judging.verdict import Verdict
from conformance.runner.run import run_cases
from conformance.runner.run_cells import Sink
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations
from harness.engine.engine import EngineLocation
from harness.scheduling.cell_run import CellRun, CellTask, Limits
from harness.targets.target import Target
from reports.analysis.gate import find
from reports.results.reading import Results

EXAMPLES = """
Examples:

  conformance record my/cases/late-order.yaml --spark 3.5             run it, fill in what is not expected yet

  conformance record my/cases/late-order.yaml --spark 3.5 --anew      replace what it expects

  conformance record my/cases/job.yaml --spark 3.5 --allow-code       of one's own function

  conformance record my/cases/late-order.yaml --spark 3.5 --results results.jsonl     from a run that there is already
"""


class NothingSeen(RuntimeError):
    """The engine gave no answer."""

    exit_code: ClassVar[int] = 3

    def __init__(self, case: str, why: str) -> None:
        super().__init__(f"{case}: the engine showed nothing ({why}); nothing was recorded")


def record(
    case: Annotated[Path, typer.Argument(help="The case to fill in.", show_default=False)],
    spark: Annotated[str, typer.Option(help="The version that answers: 3.5.9, 3.5, newest, installed.")] = "newest",
    anew: Annotated[bool, typer.Option("--anew", help="Replace what steps expect already, too.")] = False,
    results: Annotated[
        Path | None, typer.Option(help="Take the answer from these results, and run nothing.", metavar="FILE")
    ] = None,
    runtime: options.RuntimeName = "local",
    allow_code: options.AllowCode = False,
) -> None:
    """Fill in the expectations of a case from what a real Spark does with it, marked ``observed``.

    Comments and order stay. Look at what was filled in: it is what this version does, not what it should do.
    """
    loaded = discovery.load([case])
    loaded.raise_for_problems()
    if len(loaded.cases) != 1:
        raise typer.BadParameter("it must be one case for Spark", param_hint="CASE")
    (read,) = loaded.cases
    if read.expansion:
        raise typer.BadParameter(
            f"{case} has a `matrix`: what one of its cases shows is not what the others do; record a case of its own",
            param_hint="CASE",
        )
    observation = _from(results, read, spark) if results is not None else _run(read, spark, runtime, allow_code)
    case.write_text(
        fill_in_expectations(case.read_text(encoding="utf-8"), read, observation, replace=anew), encoding="utf-8"
    )
    typer.echo(str(case))


def _from(results: Path, case: Case, spark: str) -> Observation:
    found = Results.read(results)
    target = find(found, spark)
    cell = next((cell for cell in found.cells if (cell.case, cell.target) == (case.id, target.name)), None)
    if cell is None or cell.observation is None:
        raise NothingSeen(case.id, f"it is not in {results}")
    return cell.observation


def _run(case: Case, spark: str, runtime: str, allow_code: bool) -> Observation:
    (target, *_) = running.chosen([spark], running.errors_console())
    seen, display, limits = _Seen(), _Quiet(1), Limits(jobs=1, step_timeout=options.STEP_TIMEOUT_S)
    with running.engines(running.wishes(runtime, allow_code=allow_code)) as engines:
        run_cases([case], [target], engines, limits, display=display, sink=seen, allow_code=allow_code)
    if seen.observation is None:
        raise NothingSeen(case.id, seen.why)
    return seen.observation


class _Quiet(PlainDisplay):
    """Says which engine starts, and nothing of the verdict: there is nothing to be judged by yet."""

    def judged(self, task: CellTask, verdict: Verdict, seconds: float) -> None:
        pass


class _Seen(Sink[Verdict]):
    """Keeps the one answer."""

    def __init__(self) -> None:
        self.observation: Observation | None = None
        self.why = "it did not run"

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        pass

    def keep(self, task: CellTask, verdict: Verdict, run: CellRun | None) -> None:  # noqa: ARG002
        self.observation = next(iter(run.observations), None) if run is not None else None
        self.why = "; ".join(verdict.notes) or verdict.status
