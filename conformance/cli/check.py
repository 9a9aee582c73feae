"""``conformance check``: whether one's own job behaves differently on another version."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread, get_native_id

import typer
from rich.text import Text

from conformance.cli import engine_options, job_options, options
from conformance.cli.console import command_line, errors_console, print_answer, seen_from_here, width
from conformance.cli.engine_options import JobCode, Sides
from conformance.cli.job_options import JobOptions, queries
from conformance.cli.options import SELECT_VERSIONS, argument, flag, grouped, option, output_option
from conformance.cli.progress import AnswerLine, Answers, EngineLines
from conformance.core.case import TABLE_FORMATS, Case, RunSource
from conformance.core.wording import counted
from conformance.core.wrapping import fitted
from conformance.language.streams import FILES, KAFKA
from conformance.own_job import job_case, job_run, pipeline_run
from conformance.own_job.answer_folder import PAGE, AnswerFolder
from conformance.own_job.conclusion import Answer
from conformance.own_job.many_rows import MOST_IN_A_CASE
from conformance.own_job.resumption import GivenCheckpoint
from conformance.own_job.sample import Sample
from conformance.own_job.trial import MOST_BATCHES, QueryAnswer, Trial
from conformance.own_job.verdict import JobVerdict
from conformance.runner.resources import EngineUse, check_packages
from harness.scheduling.cell_run import CellTask
from harness.targets.targets import Target
from reports.analysis.job_relevance import KnownOfJob, Published
from reports.results.checkpoint_status import OUTCOMES, combined
from reports.results.published import published_results
from reports.results.status import final_style

_AFTER_ENGINES = 10
"""How much less urgent (``nice``) the preparation of the answer is."""
_GLYPHS: Mapping[Answer, str] = {
    "same": "●",
    "differs": "✗",
    "refused": OUTCOMES["refused"].glyph,
    "lost": "▲",
    "fails": "!",
    "unknown": "?",
}


@grouped
def check(
    job: str | None = argument(
        None,
        "Your program or notebook, a file or a module; your SQL; or a function of the session and a DataFrame for each sample, in order.",
        "PROGRAM|FILE.sql|MODULE:FUNCTION",
    ),
    arguments: list[str] | None = argument(None, "Arguments of the program, after --.", "ARGUMENT"),
    *,
    call: job_options.Call = None,
    job_settings: JobOptions,
    from_: str = option(
        ..., "The version the job runs on: 3.5.9, or a line such as 3.5.", "VERSION", SELECT_VERSIONS, "--from"
    ),
    to: str = option(..., "The version it will run on.", "VERSION", SELECT_VERSIONS),
    sample_options: job_options.SampleOptions,
    accept_lost: bool = flag(
        "--accept-lost", "Do not fail because rows are late or have no event time.", job_options.INPUT
    ),
    batches: int = option(
        job_case.BATCHES, "Micro-batches to divide them into.", "N", job_options.INPUT, min=2, max=MOST_BATCHES
    ),
    silent_streams: bool = option(
        True, "Also let each stream be silent once after a restart, if there are several.", None, job_options.INPUT
    ),
    repeat_rows: bool = option(
        True,
        "Also send the latest row of each stream again, as a duplicate, and the earliest, late.",
        None,
        job_options.INPUT,
    ),
    source: RunSource = option(
        "files",
        "With kafka, silent streams are tried as topics too, on each version, and options such as startingOffsets take effect; with "
        "delta or iceberg, those of tables do, such as startingVersion.",
        "files|kafka|delta|iceberg",
        job_options.INPUT,
    ),
    checkpoint: str | None = option(
        None,
        "The query's checkpointLocation: run with the settings that it stores, and resume a copy of it on the later version.",
        "DIR",
        job_options.INPUT,
    ),
    run_sinks: bool = flag(
        "--run-sinks",
        "Also call the functions of foreachBatch and foreach of a program, in every run, one run after another: what they write is really "
        "written.",
        job_options.JOB,
    ),
    code: JobCode,
    engines: engine_options.EngineOptions,
    settings: engine_options.ClusterOptions,
    sides: Sides,
    speed: engine_options.Speed,
    output: Path = output_option(Path("check"), "Folder for the case, the results and the verdict.", "FOLDER"),
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare what your own job does on two Spark versions.

    Divides the samples into micro-batches in the order of their rows, with a restart, and runs the job on both versions, twice if they
    differ. Then the later version resumes checkpoints of the earlier one: of the restart, of the time before the last rows and, if these
    two end differently, of each step. Lists separately what repeated and late rows and silent streams change.
    Runs your code. A program or notebook runs unchanged: the samples take the place of its sources, and none of its queries starts.
    Of SQL, the last statement is the query. Writes the case, which you may keep, and the results.

    Exits with 0 if nothing changes; 1 if rows differ or are lost, a checkpoint does not resume, or only the later version ends your code
    or refuses the query; 2 if the earlier one ends your code, or neither takes the query; 3 without an answer.
    """
    where = job_options.options_of_job(engines, settings, speed, code, connect=sides.address)
    named = job_settings.named(job, call, arguments, run_sinks=run_sinks)
    files = sample_options.files(where, allow_silent=named.kind != "a function")
    before, notes_on_before = engine_options.one_target(from_, "--from")
    after, notes_on_after = engine_options.one_target(to, "--to")
    if before == after:
        raise typer.BadParameter(f"{from_} and {to} are both {before}: name two versions", param_hint="--to")
    before, after, where = sides.placed(before, after, where)
    if run_sinks:
        where = replace(where, concurrency=where.concurrency.one_by_one())
    notes = [*notes_on_before, *notes_on_after, *_without_effect(before, after, where, speed.jobs, sinks=run_sinks)]
    own = None
    for name, needs in {"--checkpoint": checkpoint is not None, f"--source {source}": source in TABLE_FORMATS}.items():
        if needs and (where.runtime.runtime == "container" or before.through_connect or after.through_connect):
            raise typer.BadParameter("only with engines of this machine, which take its settings", param_hint=name)
    for target in (before, after):
        check_packages(source, [target])
    if checkpoint is not None:
        own = GivenCheckpoint.at(checkpoint)
        where, no_effect = own.with_settings(where)
        notes += no_effect
    if files.most > MOST_IN_A_CASE and (where.runtime.elsewhere or source == KAFKA):
        what = f"more than {MOST_IN_A_CASE:,} rows are read as files of this machine, by engines in local mode"
        raise typer.BadParameter(what, param_hint="--rows")
    folder = AnswerFolder.looked_at(output, named.text)
    with ExitStack() as stack:
        asked = queries(named, before, where, files, stack, notes, later=after)
        if own is not None and len(asked.queries) > 1:
            titles = ", ".join(query.title for query, _ in asked.queries)
            raise typer.BadParameter(
                f"a checkpoint is of one query, and the job starts {titles}", param_hint="--checkpoint"
            )
        several = silent_streams and any(len(samples) > 1 for _, samples in asked.queries)
        acts = any(options.source == source for query, _ in asked.queries for options in query.options)
        if source != FILES and not acts and not (several and source == KAFKA):
            topics = "no query reads several streams, or has" if source == KAFKA else "no query has"
            errors_console([f"--source {source} has no effect: {topics} options of {source} that can act"])
        # Unless both are the newest of their lines, reading what is published takes seconds of one core, which the engines need.
        published: Future[Published | None] = Future()
        # A command that is stopped does not wait for it.
        Thread(target=_prepare_answer, args=(before, after, published), daemon=True).start()

        def known(verdict: JobVerdict) -> KnownOfJob | None:
            if (about := published.result()) is None:
                return None
            return about.known(verdict.features, verdict.conf, verdict.plan, verdict.planned_elsewhere)

        shown = _Shown(f"{before.version} → {after.version}", asked.notes)
        trial = Trial(
            before, after, asked.where, batches, silent_streams, repeat_rows, source, known, shown, accept_lost, own
        )
        answers, lines = [], list[Text]()
        for number, (query, samples) in enumerate(asked.queries, 1):
            alone = len(asked.queries) == 1
            answer = trial.answer(query, samples, output if alone else output / f"query-{number}", command_line())
            lines += _lines(answer, alone=alone)
            answers.append(answer)
            written = [file for answer in answers for file in answer.files]
            folder.keep(written, complete=number == len(asked.queries))
        if any(query.flow is not None for query, _ in asked.queries):
            ran = pipeline_run.run(
                *named.pipeline, asked.queries, batches, (before, after), asked.where, EngineLines().says
            )
            answers = [*pipeline_run.beside(answers, ran)]
            lines = [line for answer in answers for line in _lines(answer, alone=len(answers) == 1)]
            folder.keep([file for answer in answers for file in answer.files], complete=True)
        records = [answer.record() for answer in answers]
        ended = combined(answer.exit_code for answer in answers)
        if len(answers) > 1:
            worst = next(answer for answer in answers if answer.exit_code == ended)
            line = f"{len(answers)} queries; the worst is {worst.query.title}: {worst.conclusion.line}"
            lines = [Text(f"{_GLYPHS[worst.conclusion.answer]} {line}", style=final_style(ended)), *lines]
            whole = {"answer": worst.conclusion.answer, "summary": line, "queries": records}
        rows = fitted(
            lambda all_of_it: lines if all_of_it else _without_the_same(lines),
            (True,) if verbose else (True, False),
            width(),
        )
        # Before the engines end, which may take seconds.
        print_answer(rows, records[0] if len(records) == 1 else whole, as_json=as_json, verbose=True)
    raise typer.Exit(ended)


def _without_effect(before: Target, after: Target, where: EngineUse, jobs: int | None, *, sinks: bool) -> Iterator[str]:
    """Yield which options change nothing between these two versions; ``sinks``: whether functions of sinks are called."""
    a, b = before.version, after.version
    for package in where.runtime.packages:
        if not package.is_for(a) and not package.is_for(b):
            yield f"--package {package.spark}={package.coordinate} has no effect: it is for neither {a} nor {b}"
    most, why = (
        (1, "functions of sinks are called in one run after another") if sinks else (2, "each version has one engine")
    )
    if jobs is not None and jobs > most:
        yield f"--jobs {jobs} has no effect beyond {most}: {why}"


def _prepare_answer(before: Target, after: Target, into: Future[Published | None]) -> None:
    """Read what is published about two versions, then import what draws the page; nothing needs either before the cells are done."""
    if sys.platform == "linux":  # there, a thread has a priority of its own
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), _AFTER_ENGINES)
    try:
        known = Published.of_pair(before.version, after.version)
        if known is None:
            results = published_results((str(before.version), str(after.version)), origins=())
            known = Published.about(results, before.version, after.version)
        into.set_result(known)
    except Exception as error:
        into.set_exception(error)
    from reports.html import standalone as _  # noqa: F401 - `_lines` uses it


def _lines(answer: QueryAnswer, *, alone: bool) -> Iterator[Text]:
    """Write the page of an answer, and yield its lines; ``alone``: whether the job has no other query."""
    from reports.html.standalone import write_verdict  # slow to import: the engines start first

    verdict, statements = answer.verdict, [*answer.statements]
    line, page = answer.conclusion.line, answer.folder / PAGE
    titled = f"{answer.query.title}: {line}"
    write_verdict(page, titled, [*map(job_options.described, answer.samples)], statements)
    if not alone:
        yield Text()
    glyph = _GLYPHS[answer.conclusion.answer]
    yield Text(f"{glyph} {line if alone else titled}", style=final_style(answer.exit_code))
    yield from job_options.statement_lines(statements)
    path = seen_from_here(verdict.case.path)
    case = f"The case is in {path}" if not verdict.digests else "No case is kept of so many rows"
    yield Text(f"{case}, the verdict as a page in {page}.", style="dim")


def _without_the_same(lines: list[Text]) -> list[Text]:
    """Leave out conditions that change nothing, and say how many: what differs, is lost or was not tried stays."""
    kept = [line for line in lines if not line.plain.startswith(f"{_GLYPHS['same']} also ")]
    said = Text(
        f"{counted(len(lines) - len(kept), 'more condition')} with the same rows; --verbose prints all", style="dim"
    )
    return [*kept, said] if len(kept) < len(lines) else lines


class _Shown:
    """What a person sees on standard error: the notes before the first query, then each query with its samples and its cells."""

    def __init__(self, versions: str, notes: Sequence[str]) -> None:
        self._versions, self._notes = versions, notes

    def begins(self, query: job_case.OwnQuery, case: Case, samples: Sequence[Sample], folder: Path) -> None:
        plan = f"{query.title}: {counted(len(case.steps), 'step')}, {self._versions}; into {folder}"
        job_options.print_samples(samples, errors_console(self._notes, plan))
        self._notes = ()

    def begins_again(self, why: str) -> None:
        errors_console([why])

    def progress(self, *, many_rows: bool) -> Answers[job_run.CellAnswer]:
        return Answers("steps" if many_rows else "answers", 0, errors_console(), _answer_line)


def _answer_line(task: CellTask, _: job_run.CellAnswer, seconds: float) -> AnswerLine:
    silent = f", silent {'topics' if task.case.topics else 'streams'}" if job_case.is_silent(task.case) else ""
    versions = " → ".join(str(target.version) for target in task.targets) + silent
    settings = "".join(f", {key}={value}" for key, value in task.workaround.items())
    cell = versions if task.cut is None else f"{versions}, checkpoint before step {task.cut}{settings}"
    return AnswerLine(f"{cell}  {seconds:.1f} s", doing=cell)
