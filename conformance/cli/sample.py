"""``conformance sample``: templates or recorded rows of the samples that a program needs."""

import shlex
from pathlib import Path

import typer

from conformance.cli import engine_options, job_options
from conformance.cli.console import errors_console
from conformance.cli.engine_options import JobCode
from conformance.cli.job_options import JobOptions
from conformance.cli.options import SELECT_VERSIONS, argument, grouped, option, output_option
from conformance.cli.progress import EngineLines
from conformance.core.errors import WrongUsage
from conformance.core.output_file import FileKind, write_file
from conformance.core.spark_types import parse_schema
from conformance.core.wording import counted, unknown
from conformance.language.streams import KAFKA
from conformance.own_job import program as programs
from conformance.own_job.recorded_sample import Mask
from conformance.own_job.sample_template import template


@grouped
def sample(
    job: str | None = argument(None, "Your program or notebook, a file or a module.", "PROGRAM"),
    arguments: list[str] | None = argument(None, "Arguments of the program, after --.", "ARGUMENT"),
    *,
    main: job_options.Main = None,
    from_: str = option(..., "The version the job runs on.", "VERSION", SELECT_VERSIONS, "--from"),
    schema: job_options.Schemas = None,
    set_: job_options.Values = None,
    record: int = option(
        0,
        "Record so many rows of each source, in place of made-up ones.",
        "N",
        job_options.INPUT,
        min=0,
        max=10_000,
    ),
    mask: list[str] | None = option(
        None,
        "Replace the values of a column that is recorded, equal ones by equal ones. Repeatable.",
        "STREAM=COLUMN",
        job_options.INPUT,
    ),
    code: JobCode,
    engines: engine_options.EngineOptions,
    settings: engine_options.Settings,
    speed: engine_options.Speed,
    output: Path = output_option(Path(), "Folder for the samples; an existing file stays.", "FOLDER"),
) -> None:
    """Write or record the samples that your program needs.

    Runs your program without rows, as `conformance check` does, and writes a file for each source that it reads: JSON lines with its
    columns and made-up values, or with --record its first rows, which Spark reads from the source as a batch DataFrame.
    Prints the options with which `check` reads them.
    """
    which = "only a program says what it reads: a file ending in .py, a module, or --main a class of --jar"
    named = JobOptions(main, set_=set_).named(job, None, arguments, which)
    if named.kind != "a program":
        raise typer.BadParameter(which, param_hint="PROGRAM")
    if mask and not record:
        raise typer.BadParameter("only what is recorded can be replaced: add --record N", param_hint="--mask")
    masked = [(stream, column) for stream, _, column in (text.partition("=") for text in mask or ())]
    where = job_options.options_of_job(engines, settings, speed, code)
    files = job_options.SampleOptions(schema=schema, rows=1).files(where, allow_silent=True)
    target, notes = engine_options.one_target(from_, "--from")
    program, where = named.program(where)
    errors = errors_console(notes, f"{named.text}: asking {target.version} what it reads")
    with where.keeping_engines() as kept:
        timeout, says = where.concurrency.step_timeout, EngineLines().says
        seen = programs.Survey(program, kept, files, timeout, lambda _: says, record).made(target)
    if strange := sorted({stream for stream, _ in masked} - {source.name for source in seen.sources}):
        raise WrongUsage(f"--mask: {unknown('source', strange[0], [source.name for source in seen.sources])}")
    masking, options = Mask(), []
    for source in seen.sources:
        columns = files.columns(source.name) or source.ddl
        if source.format != KAFKA and columns is None:
            add = f"add --schema '{source.name}=t TIMESTAMP, …'"
            raise WrongUsage(f"{named.text} reads {source.name}, and only the source itself says its columns: {add}")
        file = output / f"{source.name}.jsonl"
        options.append(f"--sample {source.name}={file}")
        if source.rows and source.format != KAFKA:
            # The rows alone would not say every type.
            options.append(f"--schema {shlex.quote(f'{source.name}={columns}')}")
        if file.exists():
            errors.print(f"{file} exists already, and stays", markup=False)
            continue
        if source.rows:
            what, of_source = "of the source", [column for stream, column in masked if stream == source.name]
            text = masking.rows(source.name, source.rows, of_source)
        else:
            what = "with made-up values; replace them by yours"
            text = template(None if source.format == KAFKA else parse_schema(str(columns)))
            if record:
                errors.print(f"{source.name}: {source.unread or 'it has no rows'}", markup=False)
        write_file(file, text, FileKind("a sample", lambda _: False))
        errors.print(f"{file}: {counted(text.count(chr(10)), 'row')} {what}", markup=False)
    typer.echo(" ".join(options))
