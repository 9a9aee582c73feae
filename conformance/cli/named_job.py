"""Which queries a user means who names a program, a file of SQL, a function, or a method of a jar."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, TypeAlias

import typer

from conformance.cli import job_options
from conformance.cli.console import errors_console
from conformance.cli.options import one_of
from conformance.cli.progress import EngineLines
from conformance.own_job import program as programs
from conformance.own_job.job_run import MODES, OwnQuery, check_function
from conformance.own_job.jvm_method import function_or_method
from conformance.own_job.program import Program, is_program
from conformance.own_job.sample import Sample
from conformance.own_job.sql_file import SqlFile, is_sql_file
from conformance.runner.resources import EngineUse
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Target

Kind: TypeAlias = Literal["a program", "a file of SQL", "a function"]
QueryWithSamples: TypeAlias = tuple[OwnQuery, tuple[Sample, ...]]


@dataclass(frozen=True)
class JobQueries:
    """The queries of a job, and where they run."""

    queries: tuple[QueryWithSamples, ...]
    where: EngineUse
    """With the code of the job, and with engines that one run leaves to the next."""
    notes: tuple[str, ...]
    """What the user should know before they run."""

    def query(self, number: int | None) -> QueryWithSamples:
        """The query with this number, from 1, or the only query. Raises BadParameter without such a query, or a number for several."""
        if number is None and len(self.queries) == 1:
            return self.queries[0]
        if number is None or number > len(self.queries):
            titles = "\n".join(f"  --query {at}   # {query.title}" for at, (query, _) in enumerate(self.queries, 1))
            raise typer.BadParameter(f"name one of these queries:\n{titles}", param_hint="--query")
        return self.queries[number - 1]


@dataclass(frozen=True)
class NamedJob:
    """A job as the user names it; raises BadParameter if no option or several name one, or an option does not belong to its kind."""

    _: KW_ONLY
    job: str | None = None
    """A program, a file of SQL or a function."""
    call: str | None = None
    """A method of a jar, or a function."""
    main: str | None = None
    """A class of a jar with a main method."""
    which: str
    """What BadParameter says unless exactly one of these names the job."""
    arguments: Sequence[str] = ()
    output_mode: str | None = None
    watermarks: Sequence[str] = ()
    """``STREAM=DELAY``"""
    run_sinks: bool = False

    def __post_init__(self) -> None:
        if [self.job, self.call, self.main].count(None) != 2:
            raise typer.BadParameter(self.which, param_hint="JOB")
        if self.output_mode is not None:
            one_of(MODES, self.output_mode, "--output-mode")
            if self.kind == "a program":
                raise typer.BadParameter("the program says it itself: omit it", param_hint="--output-mode")
        if self.watermarks and self.kind != "a file of SQL":
            raise typer.BadParameter("only for a file of SQL: your code says it itself", param_hint="--watermark")
        if self.run_sinks and self.kind != "a program":
            raise typer.BadParameter(f"{self.kind} has no sink: omit it", param_hint="--run-sinks")
        if self.run_sinks and self.main is not None:
            raise typer.BadParameter("functions of a jar are not called: omit it", param_hint="--run-sinks")
        if self.arguments and self.kind != "a program":
            raise typer.BadParameter(f"{self.kind} gets no arguments: omit them", param_hint="ARGUMENT")

    @property
    def text(self) -> str:
        return self.job or self.call or self.main or ""

    @property
    def kind(self) -> Kind:
        if self.main is not None:
            return "a program"
        if self.job is not None and is_sql_file(self.job):
            return "a file of SQL"
        return "a program" if self.job is not None and is_program(self.job) else "a function"

    def program(self, where: EngineUse) -> tuple[Program, EngineUse]:
        """The program that is named, and where it runs, with its code. Raises WrongUsage if there is none."""
        own_code = where.runtime.own_code or OwnCode(())
        if self.main is not None:
            program = Program.main(self.main, self.arguments, where.runtime.jars)
        else:
            program, own_code = Program.named(self.text, self.arguments, own_code, sinks=self.run_sinks)
        return program, replace(where, runtime=replace(where.runtime, own_code=own_code))

    def queries(
        self,
        target: Target,
        where: EngineUse,
        files: job_options.SampleFiles,
        stack: ExitStack,
        notes: Sequence[str],
        *,
        silent: bool = False,
    ) -> JobQueries:
        """The queries of the job, each with its samples; a program is asked on a version which it starts.

        Args:
            stack: ends the engines.
            notes: shown before a program is asked.
            silent: whether a source of a program whose columns are known needs no sample.

        Raises:
            WrongUsage: the job does not exist, or its samples do not fit.
            HarnessError: see `conformance.runner.resources.open_runtime`.
        """
        if self.kind == "a program":
            program, where = self.program(where)
            kept = stack.enter_context(where.keeping_engines())
            errors_console(notes, f"{self.text}: asking {target.version} what it reads and starts")
            timeout = where.concurrency.step_timeout
            seen = programs.survey(program, target, kept, files, timeout, EngineLines().says)
            return JobQueries(programs.queries(program, seen, files, silent=silent), replace(where, kept=kept), ())
        query, samples, more = self._query(where, files, where.runtime.own_code or OwnCode(()))
        kept = stack.enter_context(where.keeping_engines())
        return JobQueries(((query, samples),), replace(where, kept=kept), (*notes, *more))

    def _query(
        self, where: EngineUse, files: job_options.SampleFiles, own_code: OwnCode
    ) -> tuple[OwnQuery, tuple[Sample, ...], tuple[str, ...]]:
        mode = self.output_mode or "append"
        if self.kind == "a file of SQL":
            sql, samples = SqlFile.read(self.text, mode), files.all()
            sql.check_streams([each.stream for each in samples])
            sql = sql.with_watermarks(job_options.pairs(self.watermarks, "--watermark"), samples)
            return sql.query, samples, sql.notes()
        function = function_or_method(self.text, mode, where.runtime.jars)
        if not files.names and not files.ddl:
            what = "a function needs one of each stream, in the order of its parameters: --sample orders=orders.jsonl"
            raise typer.BadParameter(what, param_hint="--sample")
        samples = files.all()
        if ":" in self.text:
            return function, samples, check_function(self.text, [each.stream for each in samples], own_code.folders)
        return function, samples, ()
