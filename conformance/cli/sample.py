"""``conformance sample``: templates of the samples that a program needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from conformance.cli import engine_options, job_options
from conformance.cli.console import errors_console
from conformance.cli.engine_options import JobCode
from conformance.cli.options import SELECT_VERSIONS, argument, grouped, option, output_option
from conformance.cli.progress import EngineLines
from conformance.core.errors import WrongUsage
from conformance.core.output_file import FileKind, write_file
from conformance.core.spark_types import parse_schema
from conformance.core.wording import counted
from conformance.own_job import program as programs
from conformance.own_job.program import KAFKA, Program, is_program
from conformance.own_job.sample_template import template
from harness.runtimes.own_code import OwnCode

EXAMPLES = """
Examples:

  # a file for each source that it reads; then replace their rows by yours
  conformance sample job.py --from 3.5 -o samples

  # of a table whose columns the program does not say
  conformance sample job.py --from 3.5 --schema 'sales=t TIMESTAMP' -- --day 1
"""


@grouped
def sample(
    job: str = argument(..., "Your program, a file or a module.", "PROGRAM"),
    arguments: list[str] | None = argument(None, "Arguments of the program, after --.", "ARGUMENT"),
    *,
    from_: str = option(..., "The version the job runs on.", "VERSION", SELECT_VERSIONS, "--from"),
    schema: job_options.Schemas = None,
    code: JobCode,
    engines: engine_options.Engines,
    settings: engine_options.Settings,
    speed: engine_options.Speed,
    output: Path = output_option(Path(), "Folder for the samples; a file that is there stays.", "FOLDER"),
) -> None:
    """Write a template of each sample that your program needs.

    Runs your program without rows, as `conformance check` does, and writes a file for each source that it reads: JSON lines with its
    columns and made-up values. Prints the options with which `check` reads them.
    """
    if not is_program(job):
        raise typer.BadParameter(
            "only a program says what it reads: a file ending in .py, or a module", param_hint="PROGRAM"
        )
    where = job_options.options_of_job(engines, settings, speed, code)
    files = job_options.SampleFiles.of((), schema, 1, where, allow_silent=True)
    target, notes = engine_options.one_target(from_, "--from")
    program, own_code = Program.named(job, arguments or (), where.runtime.own_code or OwnCode(()))
    where = replace(where, runtime=replace(where.runtime, own_code=own_code))
    errors = errors_console(notes, f"{job}: asking {target.version} what it reads")
    with where.keeping_engines() as kept:
        seen = programs.survey(program, target, kept, files, where.concurrency.step_timeout, EngineLines().says)
    options = []
    for source in seen.sources:
        columns = files.columns(source.name) or source.ddl
        if source.format != KAFKA and columns is None:
            raise WrongUsage(
                f"{job} reads {source.name}, and only the source itself says its columns: add --schema '{source.name}=t TIMESTAMP, …'"
            )
        file = output / f"{source.name}.jsonl"
        options.append(f"--sample {source.name}={file}")
        if file.exists():
            errors.print(f"{file} is there already, and stays", markup=False)
            continue
        text = template(None if source.format == KAFKA else parse_schema(str(columns)))
        write_file(file, text, FileKind("a sample", lambda _: False))
        errors.print(
            f"{file}: {counted(text.count(chr(10)), 'row')} with made-up values; replace them by yours", markup=False
        )
    typer.echo(" ".join(options))
