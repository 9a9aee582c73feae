"""``conformance check``: whether one's own job behaves differently on another version."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from conformance.cli import engine_options, job_options, options
from conformance.cli.console import command_line, errors_console, print_answer
from conformance.cli.engine_options import JobCode
from conformance.cli.named_job import NamedJob
from conformance.cli.options import SELECT_VERSIONS, argument, grouped, option, output_option
from conformance.cli.progress import AnswerLine, Answers
from conformance.cli.sides import Sides
from conformance.core.case import Case, SourceOption
from conformance.core.wording import counted
from conformance.own_job import job_run
from conformance.own_job import verdict as verdicts
from conformance.own_job.many_rows import MOST_IN_A_CASE
from conformance.own_job.sample import Sample
from conformance.runner.resources import EngineUse
from conformance.variants.catalogue import KAFKA
from harness.scheduling.cell_run import CellTask
from harness.targets.targets import Target
from reports.html.dossier import write_verdict
from reports.results.checkpoint_status import combined
from reports.results.published import published_results
from reports.results.status import final_style

PAGE = "verdict.html"
MOST_BATCHES = 50
_ROWS_OF_A_BATCH = 100_000
"""The most rows of one micro-batch, unless there would be more than `MOST_BATCHES`."""
_BATCHES_IF_SILENT = 2
"""The micro-batches of a sample whose streams are silent in turn; the one after the restart is then divided by stream."""
CONDITIONS = {
    "repeated_rows": "with repeated and late rows",
    "silent_streams": "with a silent stream after the restart, read from files",
    "silent_topics": "with a silent stream after the restart, read from a topic",
}
"""Stress, as in the JSON document → what it does."""


@grouped
def check(
    job: str | None = argument(
        None,
        "Your program, a file or a module; your SQL, a file; or your function of the session and a DataFrame for each sample, in order.",
        "PROGRAM|FILE.sql|MODULE:FUNCTION",
    ),
    arguments: list[str] | None = argument(None, "Arguments of the program, after --.", "ARGUMENT"),
    *,
    call: str | None = option(
        None,
        "In place of it: package.Class.method of --jar, static or of a Scala object, of the session and the DataFrames.",
        "CODE",
        job_options.JOB,
    ),
    main: job_options.Main = None,
    from_: str = option(
        ..., "The version the job runs on: 3.5.9, or a line such as 3.5.", "VERSION", SELECT_VERSIONS, "--from"
    ),
    to: str = option(..., "The version it will run on.", "VERSION", SELECT_VERSIONS),
    sample: job_options.Samples = [],  # noqa: B006 - typer copies it
    event_time: list[str] | None = option(
        None,
        "Column with the event time; by default the first TIMESTAMP. Repeatable.",
        "STREAM=COLUMN",
        job_options.INPUT,
    ),
    schema: job_options.Schemas = None,
    rows: job_options.Rows = 200,
    batches: int = option(
        job_run.BATCHES, "Micro-batches to divide them into.", "N", job_options.INPUT, min=2, max=MOST_BATCHES
    ),
    silent_streams: bool = option(
        True,
        "Also let each stream be silent once after a restart, if there are several.",
        None,
        job_options.INPUT,
        "--silent-streams/--no-silent-streams",
    ),
    repeat_rows: bool = option(
        True,
        "Also send the latest row of each stream again, as a duplicate, and the earliest, late.",
        None,
        job_options.INPUT,
        "--repeat-rows/--no-repeat-rows",
    ),
    source: SourceOption = option(
        "files",
        "With kafka, silent streams are tried as topics too, on each version, which Spark plans otherwise.",
        "files|kafka",
        job_options.INPUT,
    ),
    output_mode: job_options.OutputMode = None,
    run_sinks: bool = option(
        False,
        "Also call the functions of foreachBatch and foreach of a program, in every run: what they write is really written.",
        None,
        job_options.JOB,
        "--run-sinks",
    ),
    watermark: job_options.Watermarks = None,
    code: JobCode,
    engines: engine_options.Engines,
    settings: engine_options.Cluster,
    sides: Sides,
    speed: engine_options.Speed,
    output: Path = output_option(Path("check"), "Folder for the case, the results and the verdict.", "FOLDER"),
    as_json: options.AsJson = False,
) -> None:
    """Compare what your own job does on two Spark versions.

    Divides the samples into micro-batches by event time, with a restart; runs the job on both versions, again if they do not do the
    same; and hands the checkpoint of the first over to the second at the restart and before the last rows, if these do not end alike
    before each step. Says apart what repeated and late rows and silent streams change.
    Runs your code. A program runs unchanged: the samples take the place of its sources, and none of its queries starts. Of SQL, the
    last statement is the query. Writes the case, which you may keep, and the results.

    Exits with 0 if nothing changes, 1 if rows differ or a checkpoint does not resume, 2 if your code fails, 3 without
    an answer.
    """
    where = job_options.options_of_job(engines, settings, speed, code, connect=sides.address)
    job, arguments = job_options.with_arguments(job, arguments, main)
    named = NamedJob(
        job=job,
        call=call,
        main=main,
        which="name a program, a file of SQL or a function, or --call a method or --main a class of --jar",
        arguments=arguments,
        output_mode=output_mode,
        watermarks=watermark or (),
        run_sinks=run_sinks,
    )
    silent = named.kind != "a function"
    files = job_options.SampleFiles.of(sample, schema, rows, where, event_time=event_time, allow_silent=silent)
    before, notes_on_before = engine_options.one_target(from_, "--from")
    after, notes_on_after = engine_options.one_target(to, "--to")
    if before == after:
        raise typer.BadParameter(f"{from_} and {to} are both {before}: name two versions", param_hint="--to")
    before, after, where = sides.placed(before, after, where)
    if files.most > MOST_IN_A_CASE and (where.runtime.elsewhere or source == KAFKA):
        what = f"more than {MOST_IN_A_CASE:,} rows are read as files of this machine, by engines in local mode"
        raise typer.BadParameter(what, param_hint="--rows")
    with ExitStack() as stack:
        asked = named.queries(before, where, files, stack, [*notes_on_before, *notes_on_after])
        # Reading what is published takes seconds of one core, while the engines start.
        published = stack.enter_context(ThreadPoolExecutor(1)).submit(_published, before, after)
        notes, answers = asked.notes, []
        for number, (query, samples) in enumerate(asked.queries, 1):
            alone = len(asked.queries) == 1
            trial = _Trial(
                query,
                samples,
                before,
                after,
                asked.where,
                batches=batches,
                silent_streams=silent_streams,
                repeat_rows=repeat_rows,
                source=source,
                alone=alone,
                published=published,
            )
            answers.append(trial.answer(output if alone else output / f"query-{number}", notes))
            notes = ()
    lines = [line for answer in answers for line in answer.lines]
    records = [answer.record for answer in answers]
    print_answer(lines, records[0] if len(records) == 1 else {"queries": records}, as_json=as_json)
    raise typer.Exit(combined([answer.exit_code for answer in answers]))


@dataclass(frozen=True)
class _Answer:
    """The answer about one query."""

    lines: tuple[Text, ...]
    record: dict[str, Any]
    exit_code: int


def _published(before: Target, after: Target) -> verdicts.Published | None:
    results = published_results((str(before.version), str(after.version)), upgrades=False)
    return verdicts.Published.about(results, before.version, after.version)


@dataclass(frozen=True)
class _Trial:
    """One query with its samples, to be tried on two versions."""

    query: job_run.OwnQuery
    samples: tuple[Sample, ...]
    before: Target
    after: Target
    where: EngineUse
    _: KW_ONLY
    batches: int
    silent_streams: bool
    repeat_rows: bool
    source: SourceOption
    alone: bool
    """Whether the job has no other query."""
    published: Future[verdicts.Published | None]

    def answer(self, output: Path, notes: Sequence[str]) -> _Answer:
        """Compare; and write case, results and page into a folder."""
        title, sending = self.query.title, [sample for sample in self.samples if sample.rows]
        versions = f"{self.before.version} → {self.after.version}"
        stresses: list[verdicts.Stress] = []
        with TemporaryDirectory(prefix="conformance-") as folder:
            whole = self._case(Path(folder), again=self.repeat_rows)
            steps = counted(len(whole.steps), "step")
            errors = errors_console(notes, f"{title}: {steps}, {versions}; into {output}")
            job_options.print_samples(sending, errors)
            run, *silent = self._runs(whole, self._silent_cases(Path(folder), len(sending)), Path(folder), errors)
            kept = output if not run.files else Path(folder, "sample")
            verdict = verdicts.judge_job(run.as_far_as(self._case(kept)), kept, command_line())
            if verdict.answer in ("same", "differs"):
                stressed = {"repeated_rows": run} if self.repeat_rows else {}
                stressed |= zip(("silent_streams", "silent_topics"), silent, strict=False)
                for name, each in stressed.items():
                    judged = verdicts.judge_job(each, Path(folder), command_line())
                    stresses.append(verdicts.Stress(name, CONDITIONS[name], judged))
            if stresses and self.repeat_rows and not stresses[0].fails_before:
                verdict = replace(verdict, not_shown=stresses[0].verdict.not_shown)
        verdict.write(output / "results.jsonl")
        published, conf = self.published.result(), self.where.runtime.conf
        about = published.known(verdict.features, conf, verdict.plan) if published is not None else None
        answers = [*verdicts.statements(verdict, about), *self.query.statements]
        answers += [stress.statement(verdict) for stress in stresses]
        summary = f"{title}: {verdicts.summary(verdict)}"
        write_verdict(output / PAGE, summary, [*map(job_options.described, sending)], answers)
        exit_code = verdicts.combined_exit_code(verdict, stresses)
        case = f"The case is in {verdict.case.path}" if not verdict.digests else "No case is kept of so many rows"
        lines = (
            *job_options.statement_lines(answers),
            Text(f"{case}, the verdict as a page in {output / PAGE}.", style="dim"),
            Text(),
            Text(verdicts.summary(verdict) if self.alone else summary, style=final_style(exit_code)),
        )
        of_stresses: dict[str, Any] = dict.fromkeys(CONDITIONS)
        for stress in stresses:
            of_stresses[stress.name] = verdicts.record(stress.verdict, None)
            del of_stresses[stress.name]["case"]  # it is not kept
        return _Answer(lines, {**verdicts.record(verdict, about), **of_stresses}, exit_code)

    def _case(self, folder: Path, *, silent: bool = False, again: bool = False) -> Case:
        batches = self._batches(silent=silent)
        return job_run.write_job(self.query, self.samples, folder, batches=batches, silent=silent, again=again)

    def _batches(self, *, silent: bool) -> int:
        """Into how many micro-batches the sample is divided, of which each must fit into the memory of an engine."""
        needed = sum(len(sample.rows) for sample in self.samples) // _ROWS_OF_A_BATCH + 1
        return max(_BATCHES_IF_SILENT if silent else self.batches, min(needed, MOST_BATCHES))

    def _silent_cases(self, folder: Path, sending: int) -> tuple[Case, ...]:
        """The case whose streams are silent in turn and, if asked for, the same from topics."""
        if not self.silent_streams or sending < 2:
            return ()
        case = self._case(folder, silent=True)
        return (case, *(job_run.through_topics(case) if self.source == KAFKA else ()))

    def _runs(self, whole: Case, silent: Sequence[Case], folder: Path, errors: Console) -> Sequence[job_run.JobRun]:
        """Run the case on both versions and, once both have an answer for it, the cases with silent streams at the same time."""
        runs = []
        for case in (whole, *silent):
            is_silent = case is not whole
            files = job_run.rows_in_files(
                self.samples,
                folder,
                batches=self._batches(silent=is_silent),
                silent=is_silent,
                again=self.repeat_rows and not is_silent,
            )
            runs.append(job_run.JobRun.of(case, self.before, self.after, self.where, files))
        many_rows = bool(runs[0].files)
        with Answers("steps" if many_rows else "answers", 0, errors, _answer_line) as display:

            def announce(cells: Sequence[CellTask]) -> None:
                steps = sum(len(cell.case.steps) - (cell.cut or 1) + 1 for cell in cells) if many_rows else 0
                display.add(len(cells), steps)

            return job_run.JobRuns(runs, announce).complete(self.where, display)


def _answer_line(task: CellTask, _: job_run.Outcome, seconds: float) -> AnswerLine:
    silent = f", silent {'topics' if task.case.topics else 'streams'}" if job_run.is_silent(task.case) else ""
    versions = " → ".join(str(target.version) for target in task.targets) + silent
    settings = "".join(f", {key}={value}" for key, value in task.workaround.items())
    cell = versions if task.cut is None else f"{versions}, checkpoint before step {task.cut}{settings}"
    return AnswerLine(f"{cell}  {seconds:.1f} s", doing=cell)
