"""``conformance checkpoint``: what a checkpoint says and what another version does with it, without Spark; or whether it resumes there."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from conformance.checkpoints.awaiting import awaiting
from conformance.checkpoints.checkpoint import read
from conformance.checkpoints.files import open_files
from conformance.cli import engine_options, job_options, options
from conformance.cli.commands import Command, CommandGroup
from conformance.cli.console import errors_console, print_answer
from conformance.cli.engine_options import JobCode
from conformance.cli.job_options import JobOptions, one_query, queries
from conformance.cli.options import SELECT_VERSIONS, argument, flag, grouped, option
from conformance.cli.progress import NoAnswers
from conformance.core.wording import counted
from conformance.own_job import resumption
from conformance.own_job.statements import awaiting_statements
from conformance.runner.state_reader import COPY_IS_HERE
from reports.results.status import Statement
from reports.terminal.checkpoint import lines, record

REFUSED = 1
"""The exit code if the version refuses the checkpoint, or may refuse it."""

WHICH = "--call a program, a file of SQL, a function or a method of --jar, or --main a class of --jar"
"""What to write if nothing names a job."""

Where = Annotated[str, argument(..., "The query's checkpointLocation: a folder, or a URL that fsspec reads.", "DIR")]

app = typer.Typer(add_completion=False, cls=CommandGroup, no_args_is_help=True)


@app.callback()
def checkpoint() -> None:
    """Inspect a query's checkpoint, or resume a copy of it.

    Only reads: nothing in the checkpoint is ever written.
    """


@app.command(cls=Command)
def inspect(
    where: Where,
    to: str | None = option(None, "Say whether this version or line refuses it, and what changes.", "VERSION", None),
    sink: str | None = option(None, "The folder that its file sink writes: check the log in it, too.", "DIR", None),
    verbose: bool = flag("--verbose", "Show the stores of the state, its settings and the cases, too."),
    as_json: options.AsJson = False,
) -> None:
    """Show where a query stands, what it reads and keeps, and what another version does with its checkpoint.

    Exits with 1 if a file is missing or damaged that the state or a log needs; with --to, also if that version refuses the
    checkpoint or may refuse it.
    """
    target = engine_options.one_target(to, "--to", runs=False)[0] if to is not None else None
    checkpoint = read(open_files(where), open_files(sink) if sink is not None else None)
    changes = awaiting(checkpoint, target.version) if target is not None else ()
    shown = [Text(checkpoint.where, style="bold")]
    if target is not None:
        statements = [*awaiting_statements(changes if verbose else (replace(each, case=None) for each in changes))]
        if not checkpoint.missing and all(change.effect == "changes" for change in changes):
            statements.append(Statement("conforms", "●", "no known reason to refuse it"))
        if checkpoint.unchecked:
            content = f"not checked: the content of {counted(checkpoint.unchecked, 'file')}, large or without checksums"
            statements.append(Statement("unsupported", "–", content))
        if checkpoint.operators:
            fits = "no file says whether the state fits the query: run `conformance checkpoint resume`"
            statements.append(Statement("unsupported", "–", fits))
        shown = [Text(f"{checkpoint.where} on Spark {target.version}", style="bold")]
        shown += [*job_options.statement_lines(statements, indent="  "), Text()]
    shown += lines(checkpoint, datetime.now(UTC), verbose=verbose)
    to_version = str(target.version) if target is not None else None
    print_answer(shown, record(checkpoint, changes, to_version), as_json=as_json, verbose=verbose)
    if checkpoint.missing or any(change.effect != "changes" for change in changes):
        raise typer.Exit(REFUSED)


@app.command(cls=Command)
@grouped
def resume(
    where: Where,
    arguments: list[str] | None = argument(None, "Arguments of your program, after --.", "ARGUMENT"),
    *,
    call: str | None = option(
        None,
        "Your program, a file of SQL, or a function of the session and a DataFrame per source, in order; with --jar, package.Class.method.",
        "CODE",
        job_options.JOB,
    ),
    job_settings: JobOptions,
    query: int | None = option(
        None, "Which of the queries that your program starts, from 1.", "N", job_options.JOB, min=1
    ),
    to: str = option(..., "The version or line that resumes it.", "VERSION", SELECT_VERSIONS),
    sample: job_options.Samples = None,
    schema: job_options.Schemas = None,
    missing: job_options.Missing = "refuse",
    rows: job_options.Rows = 200,
    code: JobCode,
    engines: engine_options.EngineOptions,
    settings: engine_options.ClusterOptions,
    speed: engine_options.Speed,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Resume a copy of a checkpoint with your own query, and show what its micro-batches do.

    The copy keeps state and watermark; its sources have read nothing, so no source of yours is needed. Name the streams of a function in
    the order in which the query reads them: first those with a sample, which arrives in one micro-batch, then silent ones by their
    schema. Runs your code; the sink of the query is not used.

    Exits with 0 if the checkpoint resumes, 1 if it does not, 2 if your code fails, 3 without an answer.
    """
    where_to_run = job_options.options_of_job(engines, settings, speed, code)
    if where_to_run.runtime.runtime == "container":
        raise typer.BadParameter(f"{COPY_IS_HERE}: omit it", param_hint="--runtime")
    # A program of Python and SQL may need a jar, too.
    of_jar = call is not None and bool(where_to_run.runtime.jars) and not Path(call).is_file()
    # With --main, --call is not an argument of the class: both name the job, which is refused.
    program, method = (None, call) if of_jar or job_settings.main is not None else (call, None)
    named = job_settings.named(program, method, arguments, WHICH)
    sample_options = job_options.SampleOptions(sample, schema=schema, rows=rows, missing=missing)
    sample_files = sample_options.files(where_to_run, allow_silent=True)
    target, notes = engine_options.one_target(to, "--to")
    given = resumption.GivenCheckpoint.at(where)  # refuses a folder that is no checkpoint before an engine starts
    with ExitStack() as stack:
        asked = queries(named, target, where_to_run, sample_files, stack, notes, silent=True)
        job, samples = one_query(asked, query)
        job_options.print_samples(samples, errors_console(asked.notes))
        resumed = resumption.resume(given, job, samples, target, asked.where, NoAnswers())
    lines = job_options.statement_lines(resumption.statements(resumed))
    print_answer(lines, resumption.record(resumed), as_json=as_json, verbose=verbose)
    raise typer.Exit(resumed.exit_code)
