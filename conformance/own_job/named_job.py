"""Which queries a user means who names a program, a file of SQL, a function, or a method of a jar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from conformance.core.errors import WrongUsage
from conformance.core.wording import unknown
from conformance.own_job import program as programs
from conformance.own_job.job_case import OwnQuery, check_function
from conformance.own_job.jvm_method import function_or_method
from conformance.own_job.pipeline_folder import SPECS, read_folder
from conformance.own_job.program import FUNCTIONS, NamedProgram, SampleReader, is_program
from conformance.own_job.program_changes import changes
from conformance.own_job.sample import Sample
from conformance.own_job.sql_file import NoFlow, SqlFile, defines_pipeline, is_sql_file
from conformance.runner.resources import EngineUse
from harness.progress import ProgressCallback
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Target

JobKind: TypeAlias = Literal["a program", "a file of SQL", "a function", "a pipeline"]
QueryWithSamples: TypeAlias = tuple[OwnQuery, tuple[Sample, ...]]


def kind_of(text: str) -> JobKind:
    if Path(text).name in SPECS or Path(text).is_dir():
        return "a pipeline"
    if is_program(text) and not (is_sql_file(text) and defines_pipeline(text)):
        return "a program"
    return "a file of SQL" if is_sql_file(text) else "a function"


class LacksSamples(WrongUsage):
    """A function has no sample, so nothing says which streams it gets."""


@dataclass(frozen=True)
class JobQueries:
    queries: tuple[QueryWithSamples, ...]
    where: EngineUse
    """With the code of the job, and with engines that one run leaves to the next."""
    notes: tuple[str, ...] = ()
    """What the user should know before they run."""


@dataclass(frozen=True)
class NamedJob:
    text: str
    """A program, a file of SQL, a function, or a method or a class of a jar."""
    kind: JobKind
    _: KW_ONLY
    is_class: bool = False
    """Whether it is a class of a jar with a main method."""
    arguments: Sequence[str] = ()
    output_mode: str = "append"
    watermarks: Mapping[str, str] = field(default_factory=dict)
    """Stream → delay, for a file of SQL."""
    run_sinks: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    """Name → value, for a notebook."""
    part: bool = False
    """Whether it is a file of a pipeline, which may have no flow and leave samples to others."""

    @property
    def pipeline(self) -> tuple[tuple[Path, ...], str]:
        """The files of the pipeline that this is, and its database; no file if it is none. See `read_folder` for errors."""
        if self.kind == "a pipeline":
            files, _, database = read_folder(self.text)
            return files, database
        return (Path(self.text),) if Path(self.text).is_file() else (), "default"

    def program(self, where: EngineUse) -> tuple[NamedProgram, EngineUse]:
        """Find the program that is named, and where it runs, with its code. Raises WrongUsage if there is none."""
        own_code = where.runtime.own_code or OwnCode(())
        if self.is_class:
            program = NamedProgram.main(self.text, self.arguments, where.runtime.jars)
        else:
            program, own_code = NamedProgram.named(
                self.text, self.arguments, own_code, sinks=self.run_sinks, values=self.values
            )
        return program, replace(where, runtime=replace(where.runtime, own_code=own_code))

    def queries(
        self,
        target: Target,
        where: EngineUse,
        files: SampleReader,
        stack: ExitStack,
        asking: Callable[[Target], ProgressCallback],
        *,
        silent: bool = False,
        later: Target | None = None,
    ) -> JobQueries:
        """Find the queries of the job, each with its samples; a program is asked on a version which it starts.

        Args:
            stack: ends the engines.
            asking: called before an engine is asked; returns what shows the lines of the engine.
            silent: whether a source of a program whose columns are known needs no sample.
            later: a version on which a program may ask for something else.

        Raises WrongUsage: there is no such job, or its samples do not fit; LacksSamples for a function without; and as `open_runtime`.
        """
        if self.kind == "a pipeline":

            def of_file(file: NamedJob, use: EngineUse) -> JobQueries:
                return file.queries(target, use, files, stack, asking, silent=silent, later=later)

            return self._of_files(where, files, of_file)
        if self.kind == "a program":
            program, where = self.program(where)
            kept = where.kept or stack.enter_context(where.keeping_engines())
            survey = programs.Survey(program, kept, files, where.concurrency.step_timeout, asking)
            at_once = later is not None and where.concurrency.limits(2).jobs > 1
            seen = survey.made(target, next_target=later if at_once else None)
            tried = programs.queries(program, seen, files, silent=silent, part=self.part)
            if later is not None:
                otherwise = changes(seen, target, later, survey.ask)
                tried = tuple(
                    (replace(query, changes=of), own) for (query, own), of in zip(tried, otherwise, strict=True)
                )
            notes = program.notebook.notes if program.notebook is not None else ()
            no_function = self.run_sinks and not any(query.sink in FUNCTIONS for query in seen.queries)
            ignored = f"--run-sinks has no effect: no query has a function of {' or '.join(FUNCTIONS)}"
            notes = (*notes, ignored) if no_function else notes
            return JobQueries(tried, replace(where, kept=kept), notes)
        job, where = self._as_module(where)
        tried, notes = job._queries(where, files, where.runtime.own_code or OwnCode(()))
        kept = where.kept or stack.enter_context(where.keeping_engines())
        return JobQueries(tried, replace(where, kept=kept), notes)

    def _of_files(
        self, where: EngineUse, files: SampleReader, of_file: Callable[[NamedJob, EngineUse], JobQueries]
    ) -> JobQueries:
        """Find the queries of each file of a pipeline, with ``of_file``; see `queries`."""
        paths, conf, _ = read_folder(self.text)
        folders = (*(where.runtime.own_code or OwnCode(())).folders, *(path.parent for path in paths))
        runtime = replace(where.runtime, own_code=OwnCode.at(folders), conf={**conf, **where.runtime.conf})
        whole, problems = JobQueries((), replace(where, runtime=runtime)), list[str]()
        for path in paths:
            job = replace(self, text=str(path), kind=kind_of(str(path)), part=True)
            try:
                found = of_file(job, whole.where)
            except NoFlow:
                found = JobQueries((), whole.where, (f"{path}: no stream fills a table there, so it is not tried",))
            except WrongUsage as problem:
                problems.append(str(problem))
                continue
            whole = JobQueries((*whole.queries, *found.queries), found.where, (*whole.notes, *found.notes))
        if problems:
            raise WrongUsage("\n".join(problems))
        read = {sample.stream for _, samples in whole.queries for sample in samples}
        if not whole.queries:
            raise WrongUsage(
                f"{self.text}: no stream fills a table of this pipeline, so there is nothing to try: add a flow"
            )
        if strange := sorted(set(files.names) - read):
            raise WrongUsage(unknown("source", strange[0], read, where=f" of {self.text}"))
        return whole

    def _as_module(self, where: EngineUse) -> tuple[NamedJob, EngineUse]:
        """Name the function of a file, ``jobs/orders.py:revenue``, by its module, whose folder becomes part of the code.

        The module is the longest dotted name, as pytest finds it: folders with an ``__init__.py`` are packages.
        """
        path, _, function = self.text.rpartition(":")
        if not path.endswith(".py"):
            return self, where
        if not Path(path).is_file():
            raise WrongUsage(f"there is no file {path}")
        module = [Path(path).stem]
        folder = Path(path).resolve().parent
        while (folder / "__init__.py").is_file():
            module.insert(0, folder.name)
            folder = folder.parent
        folders = (folder, *(where.runtime.own_code or OwnCode(())).folders)
        named = replace(self, text=f"{'.'.join(module)}:{function}")
        return named, replace(where, runtime=replace(where.runtime, own_code=OwnCode.at(folders)))

    def _queries(
        self, where: EngineUse, files: SampleReader, own_code: OwnCode
    ) -> tuple[tuple[QueryWithSamples, ...], tuple[str, ...]]:
        if self.kind == "a file of SQL":
            queries, samples = SqlFile.read(self.text, self.output_mode), files.all()
            by_query = [sql.read_by_it(samples) if sql.flow else samples for sql in queries]
            read = {sample.stream for own in by_query for sample in own}
            unread = [sample.stream for sample in samples if sample.stream not in read]
            if unread and not self.part:
                raise WrongUsage(f"{self.text} does not read {unread[0]}")
            problems = list[str]()
            for sql, own in zip(queries, by_query, strict=True):
                try:
                    sql.check_streams([sample.stream for sample in own])
                except WrongUsage as problem:
                    problems.append(str(problem))
            if problems:
                raise WrongUsage("\n".join(dict.fromkeys(problems)))
            queries = tuple(
                sql.with_watermarks(self.watermarks, own) for sql, own in zip(queries, by_query, strict=True)
            )
            notes = tuple(note for sql in queries for note in sql.notes() if not self.part)
            return tuple(zip((sql.query for sql in queries), by_query, strict=True)), tuple(dict.fromkeys(notes))
        function = function_or_method(self.text, self.output_mode, where.runtime.jars)
        samples = files.all()
        if not samples:
            raise LacksSamples(
                "a function needs one of each stream, in the order of its parameters: --sample orders=orders.jsonl"
            )
        streams = [sample.stream for sample in samples]
        notes = check_function(self.text, streams, own_code.folders) if ":" in self.text else ()
        return ((function, samples),), notes
