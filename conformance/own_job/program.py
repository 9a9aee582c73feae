"""One's own program, unchanged: what it reads and starts, as an engine sees it, and the query of each start with its samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import starmap
from pathlib import Path
from typing import Protocol

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.spark_types import Schema, parse_schema
from conformance.core.wording import counted, unknown
from conformance.language.streams import KAFKA
from conformance.own_job import source_options
from conformance.own_job.job_case import Flow, OwnQuery, of_flow
from conformance.own_job.jvm_method import check_class
from conformance.own_job.many_rows import SampleRow, kept
from conformance.own_job.notebook import NOTEBOOKS, Notebook, is_notebook
from conformance.own_job.sample import Sample, UnusableSample
from conformance.own_job.sample import silent as silent_sample
from conformance.own_job.sql_file import NoFlow
from harness.engine.engine import DriverFailed, Engine, EngineDied, EngineNeeds, EngineSilent
from harness.engine.protocol import ProgramRequest, ProgramSeen, QuerySeen, SourceSeen
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.missing import how_to_mend, not_given, what_ended
from harness.runtimes.own_code import Jar, OwnCode
from harness.scheduling.kept_engines import KeptEngines
from harness.targets.targets import Target
from reports.results.status import Statement

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
_CHANGES = "changes"
"""The format of the changes of a table, ``DataStreamReader.changes``."""
_RECORD = {"topic": "STRING", "partition": "INT", "offset": "BIGINT", "timestampType": "INT"}
"""The columns of a record of Kafka that a sample need not have, with their types."""
_ASKS_A_PLATFORM = re.compile(rb"\b(dbutils|DBUtils|mssparkutils|notebookutils)\b")
_TRIGGERS = ("default", "once", "availableNow")
"""The triggers with which a program can be tried; one by processing time is the default."""


def is_program(text: str) -> bool:
    """Whether this names a program, a file ending in .py, a notebook or a dotted module, and not a function or a file of SQL."""
    if text.endswith((".py", *NOTEBOOKS)) or is_notebook(text):
        return True
    return _MODULE.fullmatch(text) is not None and not text.endswith(".sql")


@dataclass(frozen=True)
class NamedProgram:
    path: str
    """The file, relative to the first folder of the code that holds it, or the module; or the class with a main method."""
    arguments: tuple[str, ...] = ()
    sinks: bool = False
    """Whether its functions of ``foreachBatch`` and ``foreach`` are called."""
    is_class: bool = False
    notebook: Notebook | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    """What its platform gives a notebook."""

    @classmethod
    def main(cls, name: str, arguments: Sequence[str], jars: Sequence[Jar]) -> NamedProgram:
        """The main method of a class. Raises WrongUsage if no jar has it."""
        if not jars:
            raise WrongUsage(f"{name} is a class of a jar: --jar is missing")
        check_class(name, jars)
        return cls(name, tuple(arguments), is_class=True)

    @classmethod
    def named(
        cls,
        text: str,
        arguments: Sequence[str],
        code: OwnCode,
        *,
        sinks: bool = False,
        values: Mapping[str, str] | None = None,
    ) -> tuple[NamedProgram, OwnCode]:
        """The program that a text names, and the code with the folder of its file, for its neighbours; WrongUsage if there is none."""
        in_cells = is_notebook(text)
        if values and not in_cells and not (Path(text).is_file() and _ASKS_A_PLATFORM.search(Path(text).read_bytes())):
            raise WrongUsage(f"--set: {text} is not a notebook, and asks no dbutils for widgets or secrets: omit it")
        if not in_cells and not text.endswith(".py"):
            parts = text.split(".")
            files = [folder.joinpath(*parts) for folder in code.folders]
            if not any(file.with_suffix(".py").is_file() or (file / "__main__.py").is_file() for file in files):
                where = ", ".join(map(str, code.folders))
                raise WrongUsage(
                    f"{text!r} is neither a program (.py, .ipynb, .sql), nor module:function, nor a module in {where}: is --code missing?"
                )
            return cls(text, tuple(arguments), sinks), code
        file = Path(text).resolve()
        if not file.is_file():
            raise WrongUsage(f"there is no file {text}")
        if not in_cells and (functions := _only_functions(file)):
            # A pipeline may have such a file beside its flows.
            raise NoFlow(
                f"{text} starts no query, it only defines {', '.join(functions)}: name a function, as {text}:{functions[0]}"
            )
        whole = OwnCode.at([*code.folders, file.parent])
        folder = next(folder for folder in whole.folders if file.is_relative_to(folder))
        path = file.relative_to(folder)
        # Another folder, in which Python looks first, may have a program of the same name.
        if any((first / path).is_file() for first in whole.folders[: whole.folders.index(folder)]):
            whole = OwnCode.at([folder, *whole.folders])
        # The driver names the cells as files in the first folder.
        whole = OwnCode.at([folder, *whole.folders]) if in_cells else whole
        notebook = Notebook.read(file, path.as_posix()) if in_cells else None
        return cls(path.as_posix(), tuple(arguments), sinks, notebook=notebook, values=values or {}), whole

    @property
    def called(self) -> dict[str, Json]:
        """What `call` says of it."""
        arguments = {"arguments": [*self.arguments]} if self.arguments else {}
        kind = "main" if self.is_class else "program"
        called: dict[str, Json] = {kind: self.path, **arguments, **({"sinks": True} if self.sinks else {})}
        if self.notebook is not None:
            called["cells"] = {name: [*cells] for name, cells in self.notebook.cells.items()}
        return called | ({"set": {**self.values}} if self.values else {})


def _only_functions(file: Path) -> list[str]:
    """The functions of a module that does nothing but define them; none of one that may do more, as by a decorator."""
    with suppress(SyntaxError, ValueError):
        body = ast.parse(file.read_bytes()).body
        functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.args.args]
        if not any(map(_does_more, body)):
            return [function.name for function in functions]
    return []


def _does_more(statement: ast.stmt) -> bool:
    """Whether a statement of a module may do more than define a name."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            return False
        case ast.FunctionDef() | ast.ClassDef():
            return bool(statement.decorator_list)
        case ast.Assign() | ast.AnnAssign() | ast.Expr():
            return any(isinstance(part, ast.Call) for part in ast.walk(statement))
    return True


class SampleReader(Protocol):
    """The files of samples, by source."""

    @property
    def names(self) -> Collection[str]: ...

    def read(self, stream: str, ddl: str | None = None, *, records: bool = False, texts: bool = False) -> Sample:
        """The sample of a source, read with these columns unless the user gives others; see `read_sample` for errors and the rest."""

    def all(self) -> tuple[Sample, ...]:
        """Every sample, then the streams of which the user gives only columns; see `read_sample` for errors."""

    def columns(self, stream: str, *, texts: bool = False) -> str | None:
        """The columns of a source, as the user gives them or by its sample; None without both."""


@dataclass(frozen=True)
class Survey:
    """Asks what a program does with streams that have no rows, in an engine that is left to the next run."""

    program: NamedProgram
    kept: KeptEngines
    files: SampleReader
    """The samples, for sources whose columns the program does not say."""
    timeout: float
    """Seconds that it may take."""
    asking: Callable[[Target], ProgressCallback]
    """Called before an engine is asked; returns what shows the lines of the engine."""
    record: int = 0
    """How many rows of each source to read from the source itself."""

    def made(self, target: Target, *, next_target: Target | None = None) -> ProgramSeen:
        """What the program does on a version, while the engine of ``next_target`` starts, which `ask` then uses.

        Raises WrongUsage: the program fails, starts no query, or does not end; HarnessError: no engine starts or answers.
        """
        program, on_progress = self.program, self.asking(target)
        if next_target is not None:
            self.kept.begin(next_target, self._needs, on_progress)
        seen = self._ask(target, on_progress)
        if seen.error is not None:
            if (feed := self._lacking_columns_of_a_feed(seen)) is not None:
                raise WrongUsage(
                    f"{program.path}: {feed} is a change feed, whose rows have _change_type (insert, update_preimage, update_postimage or "
                    "delete), _commit_version and _commit_timestamp, too: add those that the job reads to the rows of its sample"
                )
            where = "" if not_given(seen.error, target.version) else f" on {target.version}"
            raise WrongUsage(f"{program.path}{where}: {what_ended(seen.error, target.version)}")
        last = seen.sources[-1] if seen.sources else None
        lacks_columns = last is not None and last.ddl is None and self.files.columns(last.name) is None
        if not seen.queries and not lacks_columns:
            how = "do its arguments, after --, make it do so? Of a pipeline, let a table read a stream"
            if program.notebook is not None:
                how = "do values, --set NAME=VALUE, make it do so? display(…) starts none here"
            raise NoFlow(f"{program.path} ended and started no query, so there is nothing to try: {how}")
        over = {at: said and (how_to_mend(said, target.version) or said) for at, said in seen.passed_over.items()}
        return seen.model_copy(update={"passed_over": over})

    def _lacking_columns_of_a_feed(self, seen: ProgramSeen) -> str | None:
        """The name of a source whose change feed lacks columns in its sample, where the program fails without them."""
        if seen.error is None or re.search(r"\b_(change_type|commit_(version|timestamp))\b", seen.error.raised) is None:
            return None
        feeds = (each for each in seen.sources if _lowered(each.options).get("readchangefeed") == "true")
        return next((feed.name for feed in feeds if "_change_type" not in (self.files.columns(feed.name) or "")), None)

    def ask(self, target: Target) -> ProgramSeen:
        """What the program does, also if it fails or starts no query; see `made`."""
        return self._ask(target, self.asking(target))

    @property
    def _needs(self) -> EngineNeeds:
        return EngineNeeds(main=self.program.is_class, code=True)

    def _ask(self, target: Target, on_progress: ProgressCallback) -> ProgramSeen:
        engine = self.kept.take(target, self._needs) or self.kept.runtime.start(
            target, on_progress=on_progress, needs=self._needs
        )
        try:
            seen = self._answer(engine)
        except BaseException:
            engine.close()
            raise
        self.kept.leave(target, self._needs, engine)
        return seen

    def _answer(self, engine: Engine) -> ProgramSeen:
        path, schemas = self.program.path, dict[str, str]()
        while True:
            request = ProgramRequest(
                case=path,
                directory=engine.new_directory(path),
                program=self.program.called,
                schemas=schemas,
                code=engine.code or (),
                record=self.record,
            )
            try:
                seen = engine.survey(request, timeout=self.timeout)
            except EngineSilent:
                raise WrongUsage(
                    f"{path} did not end within {self.timeout:g} s: here its queries end at once, so it must end when they do, or when "
                    "awaitTermination returns"
                ) from None
            except EngineDied as failed:
                raise WrongUsage(f"{path} cannot be run: {failed}") from None
            except DriverFailed as failed:
                raise HarnessError(f"{path} cannot be tried: {failed}") from None
            last = seen.sources[-1] if seen.sources else None
            if seen.error is not None or seen.queries or last is None or last.ddl is not None or last.name in schemas:
                return seen
            if (columns := self.files.columns(last.name, texts=_leaves_times_as_text(last))) is None:
                return seen
            schemas = {**schemas, last.name: columns}


def queries(
    program: NamedProgram, seen: ProgramSeen, files: SampleReader, *, silent: bool = False, part: bool = False
) -> tuple[tuple[OwnQuery, tuple[Sample, ...]], ...]:
    """Each query that a program starts, with a sample of each source of the program; those that the query does not read have no rows.

    ``silent``: whether a source whose columns are known needs no sample; ``part``: whether others have sources, too.

    Raises:
        WrongUsage: a source lacks its sample, a sample has no source, or a query cannot be tried.
    """
    sources = {source.name: source for source in seen.sources}
    source_options.check(program.path, seen.sources)
    if not part and (strange := sorted(set(files.names) - sources.keys())):
        raise WrongUsage(
            f"{unknown('source', strange[0], sources, where=f' of {program.path}')}\n{_listed(program, seen)}"
        )
    reads = [query.reads or tuple(sources) for query in seen.queries]
    needed = set().union(*reads) if reads else sources.keys()
    known = {name for name, source in sources.items() if silent and (source.ddl or files.columns(name))}
    if needed - set(files.names) - known:
        raise WrongUsage(_listed(program, seen))
    for query in seen.queries:
        if query.trigger not in _TRIGGERS:
            raise WrongUsage(f"{query.at}: a query with the trigger {query.trigger} cannot be tried")
    samples = {name: _sample(source, files) for name, source in sources.items()}
    by_query = (
        tuple(sample if name in names else replace(sample, rows=()) for name, sample in samples.items())
        for names in reads
    )
    return tuple((_query(program, number, seen), own) for number, own in enumerate(by_query, 1))


def _sample(source: SourceSeen, files: SampleReader) -> Sample:
    if source.name not in files.names:
        return silent_sample(source.name, source.ddl or files.columns(source.name) or "")
    return (
        as_records(files.read(source.name, records=True))
        if source.format == KAFKA
        else files.read(source.name, source.ddl, texts=_leaves_times_as_text(source))
    )


def _lowered(options: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value.lower() for name, value in options.items()}


def _leaves_times_as_text(source: SourceSeen) -> bool:
    """Whether the columns of a source, without a schema, are those that Spark infers from JSON."""
    said = _lowered(source.options)
    of_files = said.get("cloudfiles.format") == "json" and "cloudfiles.schemahints" not in said
    return source.format.startswith("glue-") or (source.format == "cloudfiles" and of_files)


FUNCTIONS = ("foreachBatch", "foreach")
"""The sinks that are a function of the author's."""


def _query(program: NamedProgram, number: int, started: ProgramSeen) -> OwnQuery:
    """The query with this number, from 1, among those that a program starts."""
    seen, several = started.queries[number - 1], len(started.queries) > 1
    named = f" ({seen.name})" if seen.name else ""
    stem = re.sub(r"\.(py|ipynb|sql)$", "", program.path).replace("/", ".")
    read = [source for source in started.sources if source.name in (seen.reads or (source.name,))]
    return OwnQuery(
        title=f"{program.path}, query {number} of {len(started.queries)}{named}" if several else program.path,
        called={**program.called, **({"query": number} if several else {})},
        stem=f"{stem}-{number}" if several else stem,
        output_mode=seen.output_mode,
        trigger=seen.trigger,
        only=seen.reads,
        statements=(*_not_tried(program, seen, read), *_passed_over(program, started)),
        # The trigger once reads all that is there, whatever limits say.
        options=tuple(source_options.acting(read)) if seen.trigger != "once" else (),
        sink=seen.sink,
        flow=Flow(seen.name or target, target, started.sources) if (target := seen.options.get("flow")) else None,
    )


def _not_tried(program: NamedProgram, seen: QuerySeen, sources: Sequence[SourceSeen]) -> Iterator[Statement]:
    for source in sources:
        yield from source_options.not_tried(source, but=seen.trigger != "once")
        if source.format == _CHANGES:
            what = "are those of its sample: what Spark does to find them, with state of its own perhaps, is not tried"
            yield Statement("unsupported", "–", f"the changes of {source.name} {what}")
    if "flow" in seen.options:
        yield from of_flow(seen.name or seen.options["flow"], seen.options.get("batch", ""))
    if seen.sink in FUNCTIONS:
        at = f" at {seen.at}" if seen.at else ""
        what = "is not called: the rows that it would get are compared, not what it does"
        if program.sinks:
            what = (
                "ran in every run of the trial: the rows of the partitions it read are compared, not what it wrote, nor how often; no "
                "micro-batch comes again, as after an exception or a kill, so its retry is not tried"
            )
        yield Statement("unsupported", "–", f"the function of {seen.sink}{at} {what}")


def _passed_over(program: NamedProgram, seen: ProgramSeen) -> Iterator[Statement]:
    where = "the rest of its cell is" if program.notebook is not None else "what follows is"
    whats = [f"{at}: {said}" for at, said in seen.passed_over.items() if said]
    if unwritten := [at for at, said in seen.passed_over.items() if not said]:
        whats.append(f"{', '.join(unwritten)} reads what a query has not written in a trial")
    for what in whats:
        yield Statement("unsupported", "–", f"{what}: {where} not tried")


def as_records(sample: Sample) -> Sample:
    """The sample of a source of Kafka with all columns of a record.

    Raises UnusableSample: ``value`` is neither text nor bytes.
    """
    types = {field.name: field.type for field in sample.schema.fields}
    if "value" in types and types["value"].name not in ("string", "binary"):
        raise UnusableSample(
            Path(sample.stream),
            f"value is {types['value']}: the value of a record is text; without it, the columns are a JSON object",
        )
    lacking = {name: type for name, type in _RECORD.items() if name not in types}
    ddl = ", ".join([sample.schema.ddl, *(f"{name} {type}" for name, type in lacking.items())])
    schema = Schema(ddl, parse_schema(ddl).fields)

    def record(number: int, row: SampleRow) -> SampleRow:
        values: Mapping[str, Json] = {"topic": sample.stream, "partition": 0, "offset": number, "timestampType": 0}
        return (*row, *(values[name] for name in lacking))

    return replace(sample, schema=schema, rows=kept(starmap(record, enumerate(sample.rows)), schema, sample.event_time))


def _listed(program: NamedProgram, seen: ProgramSeen) -> str:
    """Which sources the program reads, with their columns, and what to write."""
    lines = [
        f"{program.path} reads {counted(len(seen.sources), 'source')}; give a sample of each (`conformance sample` writes some):"
    ]
    for source in seen.sources:
        lines.append(f"  --sample {source.name}={source.name}.jsonl   # {source.format}: {_shown(source)}")
    if not seen.queries:
        lines.append("  it reads more, perhaps: it cannot go on before the columns of the last one are known")
    return "\n".join(lines)


def _shown(source: SourceSeen) -> str:
    if source.format == KAFKA:
        return "value (text), or lines that are its text; if they matter, key, timestamp, topic, partition, offset"
    return source.ddl.replace("`", "") if source.ddl else "its columns, which only the source itself says"
