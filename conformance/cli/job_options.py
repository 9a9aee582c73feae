"""Options of the commands that run one's own job, and how they print their results."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.text import Text

from conformance.cli import engine_options
from conformance.cli.console import errors_console
from conformance.cli.engine_options import OWN_CODE, JobCode
from conformance.cli.options import one_of, refuse, shared
from conformance.cli.progress import EngineLines, FileRead
from conformance.core.operations import OutputMode
from conformance.core.wording import counted
from conformance.judging.verdict import Status
from conformance.own_job.named_job import JobQueries, LacksSamples, NamedJob, QueryWithSamples, kind_of
from conformance.own_job.sample import ArrivalOrder, Sample, WithoutColumn, read_sample, silent
from conformance.own_job.written_time import WrittenTime
from conformance.runner.resources import EngineUse
from harness.progress import ProgressCallback
from harness.targets.targets import Target
from reports.results.status import Statement

INPUT, JOB = "The input", OWN_CODE

Samples = Annotated[
    list[str] | None,
    shared(
        "Rows of a stream: a file ending in .jsonl, .csv or .parquet. Repeatable.", "STREAM=FILE", INPUT, "--sample"
    ),
]
Schemas = Annotated[
    list[str] | None,
    shared("Schema of a stream, in DDL; by default inferred from its rows. Repeatable.", "STREAM=DDL", INPUT),
]
EventTimes = Annotated[
    list[str] | None,
    shared(
        "Event time, else the first TIMESTAMP: column, value.key of JSON, value.1 of 'a;b'; pattern or unit: 't=ts as ms'. Repeatable.",
        "STREAM=COLUMN",
        INPUT,
    ),
]
Arrival = Annotated[
    str,
    shared(
        "The order in which rows arrive: that of their file, that of their event time, or a random one.",
        "file|time|random:SEED",
        INPUT,
    ),
]
Rows = Annotated[int, shared("Rows to take from each sample.", "N", INPUT, min=1)]
Missing = Annotated[
    WithoutColumn,
    shared("A column of the schema that no row of a sample has: refused, or null.", "refuse|null", INPUT),
]
OutputModeOption = Annotated[str | None, shared("append, update or complete; a program sets its own.", "MODE", JOB)]
Call = Annotated[
    str | None,
    shared(
        "In place of it: package.Class.method of --jar, static or of a Scala object, of the session and the DataFrames.",
        "CODE",
        JOB,
        "--call",
    ),
]
Main = Annotated[
    str | None,
    shared("In place of it: a class of --jar with a main method, a program of Java or Scala.", "CLASS", JOB, "--main"),
]
Watermarks = Annotated[
    list[str] | None,
    shared(
        "Delay of a stream's watermark for SQL, such as orders='10 minutes'; on its event time. Repeatable.",
        "STREAM=DELAY",
        JOB,
        "--watermark",
    ),
]
Values = Annotated[
    list[str] | None,
    shared(
        "A widget of a notebook, or a secret as scope/key; others can read the value, so make one up for a secret. Repeatable.",
        "NAME=VALUE",
        JOB,
        "--set",
    ),
]

_STYLES: Mapping[Status, str] = {
    "conforms": "green",
    "differs": "cyan",
    "bug": "yellow",
    "unsupported": "blue",
    "violates": "bold red",
    "broken": "bold yellow",
}


@dataclass(frozen=True)
class SampleFiles:
    """What the options say of samples, each by stream."""

    files: Mapping[str, str]
    times: Mapping[str, str]
    """The columns of event times."""
    ddl: Mapping[str, str]
    most: int
    zone: str | None
    arrival: ArrivalOrder = "file"
    missing: WithoutColumn = "refuse"
    arrived: Mapping[str, str] = field(default_factory=dict)
    """The columns of the times of arrival."""

    @property
    def names(self) -> Collection[str]:
        return self.files.keys()

    def check(self) -> None:
        """Refuse, before an engine starts, a sample that does not fit the schema that its options give."""
        for stream in self.files.keys() & self.ddl.keys():
            self.read(stream)

    def read(self, stream: str, ddl: str | None = None, *, records: bool = False, texts: bool = False) -> Sample:
        path = Path(self.files[stream])
        with FileRead(path, errors_console()) as bar:
            time, ddl = self.times.get(stream), self.ddl.get(stream, ddl)
            return read_sample(
                stream,
                path,
                event_time=time,
                ddl=ddl,
                most=self.most,
                zone=self.zone,
                watched=bar.watched,
                arrival=self.arrival,
                missing=self.missing,
                records=records,
                texts=texts,
                arrived=self.arrived.get(stream),
            )

    def all(self) -> tuple[Sample, ...]:
        silent_streams = (silent(stream, ddl) for stream, ddl in self.ddl.items() if stream not in self.files)
        return (*map(self.read, self.files), *silent_streams)

    def columns(self, stream: str, *, texts: bool = False) -> str | None:
        if stream in self.ddl:
            return self.ddl[stream]
        return self.read(stream, texts=texts).schema.ddl if stream in self.files else None


@dataclass(frozen=True)
class SampleOptions:
    """The samples of a job, and how their rows arrive."""

    sample: Samples = None
    event_time: EventTimes = None
    schema: Schemas = None
    rows: Rows = 200
    arrival: Arrival = "file"
    missing: Missing = "refuse"

    def files(self, use: EngineUse, *, allow_silent: bool, arrival_time: Sequence[str] | None = None) -> SampleFiles:
        """Read the options and no file; BadParameter if one is wrong.

        Args:
            allow_silent: whether a stream with a schema needs no sample.
            arrival_time: what ``--arrival-time`` says.
        """
        given, arrived = pairs(self.sample, "--sample"), pairs(arrival_time, "--arrival-time")
        times, ddl = pairs(self.event_time, "--event-time"), pairs(self.schema, "--schema")
        of_samples = (("--event-time", times), ("--arrival-time", arrived), ("--schema", {} if allow_silent else ddl))
        for name, named in of_samples:
            if strange := sorted(named.keys() - given.keys()):
                what = f"there is no sample {strange[0]}; samples are {', '.join(given)}"
                raise typer.BadParameter(what, param_hint=name)
        for file in given.values():
            if not Path(file).exists():
                raise typer.BadParameter(f"{file}: No such file or directory", param_hint="--sample")
        if arrived and (without := sorted(given.keys() - arrived.keys())):
            raise typer.BadParameter(
                f"{without[0]} has none: name the column of each sample", param_hint="--arrival-time"
            )
        if re.fullmatch(r"file|time|random:\d+", self.arrival) is None:
            what = f"{self.arrival!r} is not file, time or random with a seed, such as random:7"
            raise typer.BadParameter(what, param_hint="--arrival")
        zone = use.runtime.conf.get("spark.sql.session.timeZone")
        return SampleFiles(given, times, ddl, self.rows, zone, self.arrival, self.missing, arrived)


def described(sample: Sample) -> str:
    """``orders: 40 rows, by order_time: order_time TIMESTAMP, …``"""
    match sample.event_time:
        case None:
            by = ", no event time"
        case int(column):
            by = f", by {sample.schema.fields[column].name}"
        case WrittenTime((place, *_)):
            by = f", by {'.'.join((sample.schema.fields[place.column].name, *place.keys))} as {place.format}"
    more = f" (the file has {sample.skipped} more: --rows)" if sample.skipped else ""
    lacking = f"; null, since no row has them: {', '.join(sample.lacking)}" if sample.lacking else ""
    unread = f"; in the file, and not read: {', '.join(sample.unread)}" if sample.unread else ""
    return f"{sample.stream}: {counted(len(sample.rows), 'row')}{more}{by}; {sample.schema.ddl}{lacking}{unread}"


def print_samples(samples: Iterable[Sample], errors: Console) -> None:
    for sample in samples:
        errors.print(described(sample), markup=False)


def options_of_job(
    engines: engine_options.EngineOptions,
    settings: engine_options.Settings,
    speed: engine_options.Speed,
    code: JobCode,
    connect: str | None = None,
) -> EngineUse:
    """Where the job runs; that it may is what the command is for. See `engine_options.runtime_options` for errors."""
    where = engine_options.runtime_options(engines, settings, connect=connect, code=code)
    return EngineUse(runtime=where, work=engines.work, concurrency=speed)


def statement_lines(statements: Iterable[Statement], indent: str = "") -> Iterator[Text]:
    for statement in statements:
        yield Text(f"{indent}{statement.glyph} {statement.text}", style=_STYLES[statement.kind])
        yield from (Text(f"    {detail}") for detail in statement.details)


def values(given: Sequence[str]) -> dict[str, str]:
    """Name → value of ``--set``; BadParameter if a text is not NAME=VALUE."""
    split = [text.partition("=") for text in given]
    for name, sign, _ in split:
        if not sign or not name:
            raise typer.BadParameter(f"{name!r} must be NAME=VALUE, such as target=gold.orders", param_hint="--set")
    return {name: value for name, _, value in split}


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """Stream → what an option says of it; BadParameter if a text is not STREAM=VALUE, or a stream is there twice."""
    values: dict[str, str] = {}
    for text in given or ():
        stream, sign, value = text.partition("=")
        if sign and value and re.search(r"\w[^\w=]+\w", stream):
            name = re.sub(r"\W+", "_", stream, flags=re.ASCII)
            raise typer.BadParameter(f"{stream!r} is called {name} here: write {name}={value}", param_hint=option)
        if not sign or not stream.isidentifier() or not value:
            raise typer.BadParameter(f"{text!r} must be STREAM=VALUE, such as orders=…", param_hint=option)
        if stream in values:
            raise typer.BadParameter(f"{stream} is there twice", param_hint=option)
        values[stream] = value
    return values


WHICH = "name a program, a file of SQL or a function, or --call a method or --main a class of --jar"
"""What to write if nothing names a job."""


@dataclass(frozen=True)
class JobOptions:
    """What names one's own job, beside a program, a file of SQL or a function, and what it gets."""

    main: Main = None
    output_mode: OutputModeOption = None
    watermark: Watermarks = None
    set_: Values = None

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
            watermarks=pairs(self.watermark, "--watermark"),
            run_sinks=run_sinks,
            values=values(self.set_ or ()),
        )


def queries(
    named: NamedJob,
    target: Target,
    where: EngineUse,
    files: SampleFiles,
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
