"""Runs one's own job: its case on both versions, and its checkpoint handed over before each step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Protocol, get_args

from conformance.checkpoints.state_difference import state_differences, state_workarounds
from conformance.core.case import Case, OutputMode
from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.observation import Observation
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import cuts, resumed_at
from conformance.language.printing import printed
from conformance.language.source import MAX_BYTES, unknown
from conformance.own_job.sample import Arrival, Sample, arrivals
from conformance.query.reading import PHYSICAL_PLAN
from conformance.runner.execution import Collector, Display, Plan, execute, unseen
from conformance.runner.resources import EngineUse
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations
from harness.scheduling.cell_run import CellRun, CellTask
from harness.targets.targets import Target
from reports.results.records import Target as TargetRecord
from reports.results.status import Statement


@dataclass(frozen=True)
class Outcome:
    """What became of one cell: a run, or why there was none."""

    task: CellTask
    run: CellRun | None
    unsupported: str | None = None
    """Says why the runtime cannot run it; None if it ran."""

    @property
    def observation(self) -> Observation | None:
        """What the engines showed, with the workaround if there is one; None without an answer."""
        if self.run is None or self.run.failure is not None:
            return None
        return self.run.observations[-1 if self.task.workaround else 0]

    @property
    def lacking(self) -> str | None:
        """Says why there is no answer; None if there is one."""
        return self.run.failure if self.run is not None else self.unsupported

    def as_far_as(self, case: Case) -> Outcome:
        """The outcome without what happened after the last step of this case."""
        task = replace(self.task, case=case)
        if self.run is None:
            return replace(self, task=task)
        seen = (
            each.model_copy(update={"case": case.id, "steps": each.steps[: len(case.steps)]})
            for each in self.run.observations
        )
        return replace(self, task=task, run=replace(self.run, task=task, observations=tuple(seen)))


class KeepOutcomes:
    """The judge of a plan whose outcomes are compared with each other only when all are there: it judges nothing."""

    def without_run(self, task: CellTask, lacking: str | None) -> Outcome | None:
        return Outcome(task, None, lacking) if lacking is not None else None

    def verdict(self, run: CellRun) -> Outcome:
        return Outcome(run.task, run)


@dataclass(frozen=True)
class JobRun:
    """Everything that both versions answered."""

    case: Case
    before: Target
    after: Target
    outcomes: tuple[Outcome, ...]
    engines: tuple[TargetRecord, ...]
    """The records of both targets, as their engines introduced themselves if they started."""
    started: datetime
    conf: Mapping[str, str]
    """The settings of the engines."""
    tried: tuple[Outcome, ...] = ()
    """What became of refused checkpoints that were handed over again, with the setting of a workaround."""

    def on(self, target: Target) -> Outcome:
        """What one version did with the whole case."""
        return next(outcome for outcome in self.outcomes if outcome.task.cut is None and outcome.task.target == target)

    @property
    def handoffs(self) -> tuple[Outcome, ...]:
        """What became of each checkpoint, in the order of the steps."""
        handoffs = [outcome for outcome in self.outcomes if outcome.task.cut is not None]
        return tuple(sorted(handoffs, key=lambda outcome: outcome.task.cut or 0))

    def as_far_as(self, case: Case) -> JobRun:
        """What the run shows of a case that ends earlier: its steps are the first ones of the case that ran."""

        def kept(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
            within = (outcome for outcome in outcomes if (outcome.task.cut or 1) <= len(case.steps))
            return tuple(outcome.as_far_as(case) for outcome in within)

        return replace(self, case=case, outcomes=kept(self.outcomes), tried=kept(self.tried))


def cells_of_job(case: Case, before: Target, after: Target) -> tuple[CellTask, ...]:
    """The case on each version; and before each step but the first the checkpoint of the earlier one, resumed on the later.

    Without the latter if its rows come from topics, which are not copied with a checkpoint.
    """
    handoffs = () if case.topics else cuts(case, each=True)
    return (
        CellTask(case, (before,)),
        CellTask(case, (after,)),
        *(CellTask(case, (before, after), cut) for cut in handoffs),
    )


def run_job(case: Case, before: Target, after: Target, options: EngineUse, display: Display[Outcome]) -> JobRun:
    """Run a job; see `conformance.runner.execution.execute` for errors."""
    started = datetime.now(UTC)
    # Twice, since what depends on the clock or on chance cannot be compared.
    collector = outcomes(cells_of_job(case, before, after), options, display, repeat=2)
    engines = tuple(
        collector.engines.get(target.name) or unseen(target, options.runtime.runtime) for target in (before, after)
    )
    outcomes_kept = tuple(outcome for outcome, _ in collector.kept)
    return JobRun(case, before, after, outcomes_kept, engines, started, options.runtime.conf)


def restart_cells(run: JobRun) -> tuple[CellTask, ...]:
    """The handoffs to resume on the earlier version, too: the later version did otherwise than the earlier did with the whole job.

    Where both did the same, what a restart alone changes does not matter. A handoff without an answer is not compared, nor is any if the
    whole job has no answer or its own code failed.
    """
    whole = run.on(run.before).observation
    if whole is None or whole.own_code_error is not None:
        return ()
    return tuple(
        replace(outcome.task, targets=(run.before, run.before))
        for outcome in run.handoffs
        if outcome.observation is not None
        and resumed_at(outcome.task.cut or 1, outcome.observation, whole).outcome != "resumed"
    )


def resume_where_written(
    run: JobRun, cells: Sequence[CellTask], options: EngineUse, display: Display[Outcome]
) -> JobRun:
    """The run with the outcomes of these cells of `restart_cells`; see `execute` for errors."""
    restarted = tuple(outcome for outcome, _ in outcomes(cells, options, display).kept)
    return replace(run, outcomes=(*run.outcomes, *restarted))


def workaround_cells(run: JobRun) -> tuple[CellTask, ...]:
    """Checkpoints that were refused because of the schema of their state, to be handed over again with each setting that may help."""
    cells = []
    fails_anyway = {
        outcome.task.cut
        for outcome in run.handoffs
        if outcome.task.target == run.before and (outcome.observation is None or outcome.observation.error is not None)
    }
    for outcome in run.handoffs:
        if outcome.task.cut in fails_anyway:
            continue
        error = outcome.observation.error if outcome.observation is not None else None
        differences = state_differences(error.message) if error is not None and outcome.task.target == run.after else ()
        cells += [
            replace(outcome.task, workaround={key: value})
            for key, value in state_workarounds(differences, run.before.version, run.after.version)
            if key not in run.conf
        ]
    return tuple(cells)


def try_workarounds(run: JobRun, cells: Sequence[CellTask], options: EngineUse, display: Display[Outcome]) -> JobRun:
    """The run with what became of these cells of `workaround_cells`; see `execute` for errors."""
    return replace(run, tried=tuple(outcome for outcome, _ in outcomes(cells, options, display).kept))


def outcomes(
    cells: Sequence[CellTask], options: EngineUse, display: Display[Outcome], *, repeat: int = 1
) -> Collector[Outcome]:
    """Run cells, those without a cut ``repeat`` times, and keep what becomes of each; see `execute` for errors.

    Nothing is taken from the cache, because the code of the job is not part of the case.
    """
    limits = options.concurrency.limits(len({target for cell in cells for target in cell.targets}), repeat=repeat)
    collector: Collector[Outcome] = Collector(len(cells))
    plan = Plan(tuple(cells), options.runtime, limits, options.work, allow_code=True, kept=options.kept)
    execute(plan, KeepOutcomes(), collector, display)
    return collector


FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
MODES: tuple[str, ...] = get_args(OutputMode)


class OwnQuery(Protocol):
    """A query of one's own, as a case writes it."""

    @property
    def title(self) -> str: ...

    @property
    def called(self) -> Json:
        """What `call` says."""

    @property
    def stem(self) -> str:
        """The name of its case's file, without the suffix."""

    @property
    def output_mode(self) -> str: ...

    @property
    def trigger(self) -> str:
        return "default"

    def statements(self) -> Iterable[Statement]:
        """What of it is not tried, for its verdict."""
        return ()

    def reads(self, streams: Sequence[str]) -> Sequence[str]:
        """The streams that it reads, of all that its job gets."""
        return streams


@dataclass(frozen=True)
class Job(OwnQuery):
    """A function; raises WrongUsage if the text does not name one."""

    function: str
    """``module:function``; it takes the session and a DataFrame for each sample, in order."""
    output_mode: str = "append"

    def __post_init__(self) -> None:
        if FUNCTION.fullmatch(self.function) is None:
            raise WrongUsage(
                f"{self.function!r} is not a function: write module:function, such as acme_jobs.totals:build"
            )

    @property
    def title(self) -> str:
        return self.function

    @property
    def called(self) -> Json:
        return self.function

    @property
    def stem(self) -> str:
        return self.function.replace(":", ".")


def check_function(job: Job, streams: Sequence[str], folders: Iterable[Path]) -> tuple[str, ...]:
    """Refuse a function that cannot be called with these streams, in their order, before an engine starts: raises WrongUsage.

    Reads the text of the module and runs nothing; what the text does not show, such as a module elsewhere, is left to Python.

    Returns:
        Which stream is which parameter, where their names differ.
    """
    module, _, name = job.function.partition(":")
    places = [folder.joinpath(*module.split(".")) for folder in folders]
    files = [at for place in places for at in (place.with_suffix(".py"), place / "__init__.py") if at.is_file()]
    try:
        body = ast.parse(files[0].read_bytes()).body if files else []
    except (SyntaxError, ValueError):
        return ()
    defined = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    if name not in defined:
        if body and all(_makes_no_other_name(node, name) for node in body):
            raise WrongUsage(f"{files[0]}: {unknown('function', name, defined)}")
        return ()
    given = defined[name].args
    parameters = [each.arg for each in (*given.posonlyargs, *given.args)]
    at, listed = f"{files[0]}:{defined[name].lineno}: {name}({', '.join(parameters)})", ", ".join(streams)
    if given.vararg is None and not len(parameters) - len(given.defaults) <= len(streams) + 1 <= len(parameters):
        takes = counted(max(len(parameters) - 1, 0), "DataFrame")
        raise WrongUsage(f"{at} takes the session and {takes}; {counted(len(streams), 'stream')} given: {listed}")
    named = parameters[1 : len(streams) + 1]
    if sorted(named) == sorted(streams) and named != [*streams]:
        raise WrongUsage(
            f"{at}: the streams are given in another order, {listed}, and each goes to the parameter in its place"
        )
    return tuple(
        f"{stream} is the parameter {other}" for stream, other in zip(streams, named, strict=False) if stream != other
    )


def _makes_no_other_name(node: ast.stmt, name: str) -> bool:
    """Whether a statement of a module certainly does not define the name."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return node.name not in (name, "__getattr__")
        case ast.Import() | ast.ImportFrom():
            return not {"*", name}.intersection((each.asname or each.name).partition(".")[0] for each in node.names)
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Name) and target.id != name for target in targets)
        case _:
            return isinstance(node, ast.Expr)


def write_job(
    job: OwnQuery,
    samples: Sequence[Sample],
    folder: Path,
    *,
    batches: int = 4,
    silent: bool = False,
    again: bool = False,
) -> Case:
    """Write the case that tries a job with these samples, without expectations.

    Args:
        samples: of all its streams; one without rows sends nothing.
        folder: where its file is written, named after the function or program.
        batches: micro-batches of the sample, at least 2.
        silent: whether each stream is silent once, after the restart.
        again: whether the latest and the earliest row of each stream arrive again, after everything else.

    Raises:
        CannotWriteFile: see `conformance.core.output_file`.
        InvalidCase: a sample has values that no case may have.
    """
    sending = [sample for sample in samples if sample.rows]
    steps = map(_step, count(), arrivals(sending, batches, silent=silent, again=again))
    return _write(job, samples, steps, folder)


def write_resumption(job: OwnQuery, samples: Sequence[Sample], folder: Path) -> Case:
    """Write the case of a query that resumes a checkpoint: a micro-batch without rows reads its state, then the samples arrive.

    The samples stand in the order of the sources; one without rows is a silent stream. See `write_job` for errors.
    """
    # Without a micro-batch the query would start and never look at its state.
    read = job.reads([sample.stream for sample in samples])
    steps: list[Json] = [{"name": "it reads its state", "add": {stream: [] for stream in read}}]
    if rows := {sample.stream: [*map(list, sample.rows)] for sample in samples if sample.rows}:
        steps.append({"name": "the sample arrives", "add": rows})
    return _write(job, samples, steps, folder)


def with_expectations(case: Case, folder: Path, observation: Observation) -> Case:
    """The same case, in the same file, expecting what was observed; see `fill_in_expectations` for errors."""
    file = folder / f"{case.id.rpartition('/')[2]}.yaml"
    text = fill_in_expectations(file.read_text(encoding="utf-8"), case, observation, replace=True)
    # That its rows come from topics is not in the file.
    return _written(file, text).model_copy(update={"topics": case.topics})


def _write(job: OwnQuery, samples: Sequence[Sample], steps: Iterable[Json], folder: Path) -> Case:
    streams = {sample.stream: sample.schema.ddl for sample in samples}
    written = {
        "title": f"{job.title} gives the same rows",
        "strength": "observed",
        "streams": streams,
        "query": [{"call": job.called, "with": list(streams)}],
        "outputMode": job.output_mode,
        **({"trigger": job.trigger} if job.trigger != "default" else {}),
        "steps": [*steps],
    }
    text = printed(written)
    if len(text.encode()) > MAX_BYTES:
        raise WrongUsage(
            f"these rows make a case of more than {MAX_BYTES:,} bytes: take fewer with --rows, or shorter ones"
        )
    return _written(folder / f"{job.stem}.yaml", text)


def _step(number: int, arrival: Arrival) -> dict[str, Json]:
    if not arrival.rows:
        return {"name": arrival.name, "restart": "graceful"}
    rows = {stream: [list(row) for row in rows] for stream, rows in arrival.rows.items()}
    # The engine tells the plan of a step that expects something of it.
    plan = {} if number else {"expect": {"plan": [PHYSICAL_PLAN]}}
    return {"name": arrival.name, "add": rows, **plan}


def _written(file: Path, text: str) -> Case:
    """Write a file, and read its only case."""
    write_file(file, text, FileKind("a case", any_content))
    loaded = discovery.load([file])
    loaded.raise_for_problems()
    (case,) = loaded.cases
    return case
