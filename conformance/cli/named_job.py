"""The options that name one's own job, and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import get_args

import typer

from conformance.cli import job_options
from conformance.cli.console import errors_console
from conformance.cli.options import one_of, refuse
from conformance.cli.progress import EngineLines
from conformance.core.operations import OutputMode
from conformance.own_job.named_job import JobQueries, LacksSamples, NamedJob, QueryWithSamples, kind_of
from conformance.runner.resources import EngineUse
from harness.progress import ProgressCallback
from harness.targets.targets import Target

WHICH = "name a program, a file of SQL or a function, or --call a method or --main a class of --jar"
"""What to write if nothing names a job."""


@dataclass(frozen=True)
class JobOptions:
    """What names one's own job, beside a program, a file of SQL or a function, and what it gets."""

    main: job_options.Main = None
    output_mode: job_options.OutputMode = None
    watermark: job_options.Watermarks = None
    set_: job_options.Values = None

    def named(
        self,
        job: str | None,
        call: str | None,
        arguments: Sequence[str] | None,
        which: str = WHICH,
        *,
        run_sinks: bool = False,
    ) -> NamedJob:
        """Read the options that name a job; BadParameter if no option or several name it, or an option does not belong to its kind.

        Args:
            job: a program, a file of SQL or a function; beside a main method its first argument, which -- divides from the options.
            call: a method of a jar, or a function.
            which: what BadParameter says unless exactly one of these names the job.
        """
        is_class, given = self.main is not None, [*(arguments or ())]
        if is_class and job is not None:
            given.insert(0, job)
            job = None
        if [job, call, self.main].count(None) != 2:
            raise typer.BadParameter(which, param_hint="JOB")
        kind = "a program" if is_class else kind_of(job) if job is not None else "a function"
        program = kind == "a program"
        if self.output_mode is not None:
            one_of(get_args(OutputMode), self.output_mode, "--output-mode")
        refuse({"--output-mode": self.output_mode}, "the program says it itself: omit it", clashes=program)
        of_sql = {"--watermark": self.watermark}
        refuse(of_sql, "only for a file of SQL: your code says it itself", clashes=kind != "a file of SQL")
        refuse({"--run-sinks": run_sinks}, f"{kind} has no sink: omit it", clashes=not program)
        refuse({"--run-sinks": run_sinks}, "functions of a jar are not called: omit it", clashes=is_class)
        refuse({"ARGUMENT": given}, f"{kind} gets no arguments: omit them", clashes=not program)
        of_notebooks = "only a notebook has widgets and secrets: omit it"
        refuse({"--set": self.set_}, of_notebooks, clashes=not program or is_class)
        return NamedJob(
            job or call or self.main or "",
            kind,
            is_class=is_class,
            arguments=given,
            output_mode=self.output_mode or "append",
            watermarks=job_options.pairs(self.watermark, "--watermark"),
            run_sinks=run_sinks,
            values=job_options.values(self.set_ or ()),
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
