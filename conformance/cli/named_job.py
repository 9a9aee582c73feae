"""The options that name one's own job, and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import get_args

import typer

from conformance.cli import job_options
from conformance.cli.console import errors_console
from conformance.cli.options import one_of
from conformance.cli.progress import EngineLines
from conformance.core.operations import OutputMode
from conformance.own_job.named_job import JobQueries, LacksSamples, NamedJob, QueryWithSamples, kind_of
from conformance.runner.resources import EngineUse
from harness.progress import ProgressCallback
from harness.targets.targets import Target

WHICH = "name a program, a file of SQL or a function, or --call a method or --main a class of --jar"
"""What to write if nothing names a job."""


def named_job(
    *,
    job: str | None = None,
    call: str | None = None,
    main: str | None = None,
    which: str,
    arguments: Sequence[str] = (),
    output_mode: str | None = None,
    watermarks: Sequence[str] = (),
    run_sinks: bool = False,
    values: Sequence[str] = (),
) -> NamedJob:
    """Read the options that name a job; BadParameter if no option or several name it, or an option does not belong to its kind.

    Args:
        job: a program, a file of SQL or a function.
        call: a method of a jar, or a function.
        main: a class of a jar with a main method.
        which: what BadParameter says unless exactly one of these names the job.
        watermarks: ``STREAM=DELAY``.
        values: ``NAME=VALUE``.
    """
    if [job, call, main].count(None) != 2:
        raise typer.BadParameter(which, param_hint="JOB")
    kind = "a program" if main is not None else kind_of(job) if job is not None else "a function"
    if output_mode is not None:
        one_of(get_args(OutputMode), output_mode, "--output-mode")
        if kind == "a program":
            raise typer.BadParameter("the program says it itself: omit it", param_hint="--output-mode")
    if watermarks and kind != "a file of SQL":
        raise typer.BadParameter("only for a file of SQL: your code says it itself", param_hint="--watermark")
    if run_sinks and kind != "a program":
        raise typer.BadParameter(f"{kind} has no sink: omit it", param_hint="--run-sinks")
    if run_sinks and main is not None:
        raise typer.BadParameter("functions of a jar are not called: omit it", param_hint="--run-sinks")
    if arguments and kind != "a program":
        raise typer.BadParameter(f"{kind} gets no arguments: omit them", param_hint="ARGUMENT")
    if values and (kind != "a program" or main is not None):
        raise typer.BadParameter("only a notebook has widgets and secrets: omit it", param_hint="--set")
    return NamedJob(
        job or call or main or "",
        kind,
        is_class=main is not None,
        arguments=arguments,
        output_mode=output_mode or "append",
        watermarks=job_options.pairs(watermarks, "--watermark"),
        run_sinks=run_sinks,
        values=job_options.values(values),
    )


def queries(
    named: NamedJob,
    target: Target,
    where: EngineUse,
    files: job_options.SampleFiles,
    stack: ExitStack,
    notes: Sequence[str],
    *,
    silent: bool = False,
    later: Target | None = None,
) -> JobQueries:
    """Find the queries of a job, with all notes that are not shown yet; see `NamedJob.queries`."""
    left = [*notes]
    if named.kind == "a program":
        files.check()  # the samples of other jobs are read before an engine starts anyway

    def asking(asked: Target) -> ProgressCallback:
        errors_console(left, f"{named.text}: asking {asked.version} what it reads and starts")
        left.clear()
        return EngineLines().says

    try:
        asked = named.queries(target, where, files, stack, asking, silent=silent, later=later)
    except LacksSamples as problem:
        raise typer.BadParameter(str(problem), param_hint="--sample") from None
    return replace(asked, notes=(*left, *asked.notes))


def one_query(asked: JobQueries, number: int | None) -> QueryWithSamples:
    """The query with this number, from 1, or the only query; BadParameter without such a query, or a number for several."""
    if number is None and len(asked.queries) == 1:
        return asked.queries[0]
    if number is None or number > len(asked.queries):
        titles = "\n".join(f"  --query {at}   # {query.title}" for at, (query, _) in enumerate(asked.queries, 1))
        raise typer.BadParameter(f"name one of these queries:\n{titles}", param_hint="--query")
    return asked.queries[number - 1]
