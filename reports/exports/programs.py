"""A case as a program of its own: a script of PySpark, and a suite of Spark's own tests.

The script needs only pyspark, and has rows, query, sink, checkpoint and restarts. The suite is Scala for ``StreamTest``, inside Spark's
build or with a release's test jars.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.core import operations
from conformance.core.case import (
    Add,
    Backlog,
    Case,
    Expectation,
    Idle,
    Partitioned,
    Restart,
    Start,
    Step,
    Trigger,
    WrittenRow,
)
from conformance.core.data import Json
from conformance.core.observation import Column
from conformance.core.operations import Operation, Pipeline, sort_order
from conformance.core.spark_types import DataType, Schema, parse_schema
from conformance.core.values import canonical, instant_ms, struct_items, to_json_value
from conformance.query.syntax import NotReadable, expression, window_call

PLAIN = Environment(
    loader=PackageLoader("reports.exports"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
"""The templates of programs: nothing that they print is escaped."""
INDENT = "    "
_TRIGGERS = {
    "once": "once=True",
    "availableNow": "availableNow=True",
    "realTime": 'realTime="5 minutes"',
    "processingTime": 'processingTime="{} milliseconds"',
}
"""The argument of ``trigger``, with a place for its interval; the default trigger has none."""
assert {"default", *_TRIGGERS} == set(get_args(Trigger))
LONGEST_LINE = 64
"""Characters that a page shows without scrolling."""


def pyspark(case: Case) -> str:
    """Return the streams, the query and its start, without a final newline."""
    lines = ["from pyspark.sql.functions import expr", ""]
    names = source_names(case.query)
    for name, schema in case.streams.items():
        if name in case.in_memory:
            lines.append(f"# from a source that supports real-time mode, such as Kafka: {on_one_line(schema.ddl)}")
            source = ['spark.readStream.format("kafka")', ".load()"]
        elif name in case.topics:
            lines.append(f"# and then these columns of its records: {on_one_line(schema.ddl)}")
            source = ['spark.readStream.format("kafka")', f'.option("subscribe", {text_of(name)})', ".load()"]
        elif name in case.tables:
            source = [f'spark.readStream.format("{case.tables[name]}").load({text_of(name + "/")})']
        else:
            named = f".name({text_of(names[name])})" if name in names else ""
            chosen = case.files[name].options() if name in case.files else {}
            options = [f".option({text_of(key)}, {text_of(value)})" for key, value in chosen.items()]
            source = [
                f"spark.readStream{named}.schema({text_of(schema.ddl)})",
                *options,
                f".json({text_of(name + '/')})",
            ]
            if len(f"{name_of(name)} = {''.join(source)}") <= LONGEST_LINE:
                source = ["".join(source)]
        lines += _assigned(name_of(name), source)
    lines += ["", *_settings(case.conf), *_query_lines(case.query)]
    trigger = f".trigger({_TRIGGERS[case.trigger].format(case.interval_ms)})" if case.trigger in _TRIGGERS else ""
    sink, start = "", "start()"
    if case.written is not None:
        sink, start = f'.format("{"parquet" if case.written == "files" else case.written}")', 'start("sink/")'
    elif case.sink is not None:
        module, _, function = case.sink.partition(":")
        lines.append(f"from {module} import {function}")
        sink = f".foreachBatch({function})"
    lines.append(f"query.writeStream.outputMode({text_of(case.output_mode)}){trigger}{sink}.{start}")
    return "\n".join(lines)


def source_names(pipeline: Pipeline) -> dict[str, str]:
    """Map each stream that the query reads under a name to the name."""
    reads = (operation for operation in pipeline.walk() if isinstance(operation, operations.From))
    return {read.stream: read.source_name for read in reads if read.source_name is not None}


def _query_lines(pipeline: Pipeline) -> list[str]:
    writer = QueryWriter()
    frame = writer.chain(pipeline)
    return [*writer.statements, *_assigned("query", frame)]


class QueryWriter:
    """Turns pipelines into chains of calls; everything else becomes a statement before the chain. Scala's are nearly the same."""

    def __init__(self, *, scala: bool = False) -> None:
        self.scala = scala
        self.statements: list[str] = []

    def chain(self, pipeline: Pipeline) -> list[str]:
        lines: list[str] = []
        for operation in pipeline.operations:
            lines = self._followed(lines, operation)
        return lines

    def _followed(self, lines: list[str], operation: Operation) -> list[str]:
        """Write the chain with one more operation."""
        match operation:
            case operations.From(stream=stream):
                return [name_of(stream)]
            case operations.Sql(statement=statement, as_=view, views=views):
                self.statements += _called_on(lines, f".createOrReplaceTempView({text_of(view)})")
                for name, nested in views.items():
                    self.statements += _called_on(self.chain(nested), f".createOrReplaceTempView({text_of(name)})")
                return [f"spark.sql({text_of(statement)})"]
            case operations.Call(called=called, with_=streams):
                module, _, function = str(called).partition(":")
                given = [name_of(stream) for stream in streams]
                self.statements += [f"from {module} import {function}", *(() if given else _assigned("frame", lines))]
                return [f"{function}({', '.join(['spark', *(given or ['frame'])])})"]
            case operations.Join(other=other, on=on, how=how):
                condition = f", expr({text_of(on)})" + (f", {text_of(how)}" if how else "")
                calls = self._with_other("join", other, condition)
            case operations.Union(other=other):
                calls = self._with_other("union", other)
            case operations.Select(columns=columns):
                calls = [f".selectExpr({_texts(columns)})"]
            case operations.GroupBy(by=by, agg=agg):
                aggregates = ", ".join(f"expr({text_of(aggregate)})" for aggregate in agg)
                calls = [f".groupBy({', '.join(map(_key, by))})", f".agg({aggregates})"]
            case operations.WithWatermark(column=column, delay=delay):
                calls = [f".withWatermark({_texts((column, delay))})"]
            case operations.WithColumn(column=column, expression=expression):
                calls = [f".withColumn({text_of(column)}, expr({text_of(expression)}))"]
            case operations.Where(condition=condition):
                calls = [f".where({text_of(condition)})"]
            case operations.Dropna(how=check, thresh=thresh, subset=subset):
                written = text_of(check) if thresh is None else repr(thresh) if self.scala else f"thresh={thresh}"
                among = f", {'' if self.scala else 'subset='}{self._list(subset)}" if subset else ""
                calls = [f".{'na.drop' if self.scala else 'dropna'}({written}{among})"]
            case operations.Drop(columns=columns):
                calls = [f".drop({_texts(columns)})"]
            case operations.Alias(alias=alias):
                calls = [f".alias({text_of(alias)})"]
            case operations.Limit(rows=rows):
                calls = [f".limit({rows})"]
            case operations.OrderBy(orders=orders):
                directed = ", ".join(map(_sort_order, orders))
                calls = [f".orderBy({directed.replace('()', '') if self.scala else directed})"]
            case operations.Deduplication(columns=columns):
                calls = [f".{operation.name}({self._list(columns) if columns else ''})"]
            case operations.ApplyInPandasWithState(with_=function):
                calls = [
                    f".groupBy({_texts(operation.by)})",
                    "# the function, what it emits and what it keeps: harness/driver/state_functions.py",
                    f".applyInPandasWithState({function}, emits, keeps, {_texts((operation.output_mode, operation.timeout))})",
                ]
            case operations.TransformWithState(with_=processor):
                rest = _texts((operation.output_mode, operation.time_mode))
                if operation.event_time_column is not None:
                    rest += f", eventTimeColumnName={text_of(operation.event_time_column)}"
                if operation.initial_state is not None:
                    rest += f", initialState={text_of(operation.initial_state)}"
                calls = [
                    f".groupBy({_texts(operation.by)})",
                    "# the processor and what it emits: harness/driver/state_functions.py",
                    f".transformWithState{'InPandas' if operation.in_pandas else ''}({processor}(), emits, {rest})",
                ]
            case _:
                assert_never(operation)
        return [*lines, *calls]

    def _list(self, columns: Sequence[str]) -> str:
        return f"Seq({_texts(columns)})" if self.scala else f"[{_texts(columns)}]"

    def _with_other(self, method: str, nested: Pipeline, on: str = "") -> list[str]:
        other = self.chain(nested)
        if len(other) == 1:
            return [f".{method}({other[0]}{on})"]
        inner = [INDENT + other[0], *(INDENT * 2 + line for line in other[1:])]
        return [f".{method}(", *inner[:-1], inner[-1] + on, ")"]


def _sort_order(text: str) -> str:
    order = sort_order(text)
    nulls = "" if order.nulls_first == order.ascending else f"_nulls_{'first' if order.nulls_first else 'last'}"
    called = f".{'asc' if order.ascending else 'desc'}{nulls}()"
    return f"expr({text_of(order.expression)})" + ("" if called == ".asc()" else called)


def _key(text: str) -> str:
    """Write a key; a window gets that name on every version (Spark itself names it from 3.4 on)."""
    try:
        bare = window_call(expression(text))
    except NotReadable:
        bare = None
    return f"expr({text_of(text)})" + (f".alias({text_of(bare.name.lower())})" if bare else "")


def _assigned(name: str, chain: list[str]) -> list[str]:
    return [f"{name} = {chain[0]}"] if len(chain) == 1 else [f"{name} = (", *(INDENT + line for line in chain), ")"]


def _called_on(chain: list[str], call: str) -> list[str]:
    return [chain[0] + call] if len(chain) == 1 else ["(", *(INDENT + line for line in (*chain, call)), ")"]


def _texts(values: Any) -> str:
    return ", ".join(text_of(value) for value in values)


def on_one_line(text: str) -> str:
    """Return a text for a comment: what ended the line would make code of its rest."""
    return " ".join(text.split())


def text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def name_of(stream: str) -> str:
    return stream if stream.isidentifier() else "stream_" + "".join(c if c.isalnum() else "_" for c in stream)


_CRASH = """\
commits = f"{work}/checkpoint/commits"
newest = max(int(name) for name in os.listdir(commits) if name.isdigit())
for name in (f"{newest}", f".{newest}.crc"):
    if os.path.exists(f"{commits}/{name}"):
        os.remove(f"{commits}/{name}")"""


def pyspark_script(case: Case) -> str | None:
    """Return the script, without a final newline; it leaves the rows it emitted in ``emitted``, each with its step and micro-batch.

    There is none if a script cannot do what the case does: kill the engine, damage or move the checkpoint, change the trigger, run in real
    time or by a clock of its own, read topics or tables, choose among files, or call code that is not in the case.
    """
    restarts = [step.action for step in case.steps if isinstance(step.action, Restart)]
    if (
        case.sink
        or case.tables
        or case.topics
        or case.files
        or case.in_real_time
        or case.interval_ms is not None
        or any(isinstance(operation, operations.PythonState | operations.Call) for operation in case.operations())
        or any(restart.how == "kill" or restart.damage or restart.repartition for restart in restarts)
        or any(restart.checkpoint or restart.change.trigger for restart in restarts)
    ):
        return None
    return "\n".join(_Script(case).lines()).rstrip()


class _Script:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._mode = case.output_mode
        self._runs_on = case.trigger == "default"

    def lines(self) -> Iterator[str]:
        case = self._case
        several = len(case.streams) > 1 and self._runs_on
        begins = PLAIN.get_template("script.txt").render(
            title=on_one_line(case.title),
            id=case.id,
            several=several,
            trigger=_TRIGGERS.get(case.trigger, 'processingTime="1 second"' if several else ""),
        )
        yield from begins.splitlines()
        yield ""
        named = {name for pipeline in case.pipelines() for name in source_names(pipeline)}
        unnamed = [name for name in case.streams if name not in named]
        yield from (self._source(name) for name in unnamed)
        yield from [""] if unnamed else []
        yield from _settings(case.conf)
        yield from self._query(case.query)
        yield from self._steps()

    def _source(self, stream: str, name: str | None = None) -> str:
        named = f", {text_of(name)}" if name else ""
        return f"{name_of(stream)} = source({text_of(stream)}, {text_of(self._case.streams[stream].ddl)}{named})"

    def _query(self, pipeline: Pipeline) -> Iterator[str]:
        yield from (self._source(stream, name) for stream, name in source_names(pipeline).items())
        yield from _query_lines(pipeline)
        yield ""

    def _steps(self) -> Iterator[str]:
        begun = False
        for step in self._case.steps:
            yield f"# {on_one_line(step.name)}" if step.name else f"# step {step.number}"
            yield f"step = {step.number}"
            if isinstance(step.action, Restart):
                yield from self._restart(step.action, begun=begun)
                continue
            if self._runs_on and not begun:
                yield from self._start()
            begun = True
            match step.action:
                case Add(streams=arrival):
                    yield from self._arrive([arrival])
                case Backlog(entries=entries):
                    streams = self._case.streams
                    yield from self._arrive([{name: entry.get(name) for name in streams} for entry in entries])
            if self._runs_on:
                yield "running.processAllAvailable()"
            else:
                yield from self._start()
            yield from ("show_progress()", "")
        yield "running.stop()"

    def _start(self) -> Iterator[str]:
        yield f"running = start(query, {text_of(self._mode)})"
        yield "running.processAllAvailable()" if self._runs_on else "running.awaitTermination()"

    def _restart(self, action: Restart, *, begun: bool) -> Iterator[str]:
        if begun:
            yield "running.stop()"
        if action.how == "crash-before-commit":
            yield from _CRASH.splitlines()
        yield from _settings(action.change.conf or {})
        if action.change.query is not None:
            yield from self._query(action.change.query)
        self._mode = action.change.output_mode or self._mode
        if self._runs_on:
            yield from self._start()
        yield ""

    def _arrive(self, batches: Sequence[Mapping[str, Partitioned | None]]) -> Iterator[str]:
        yield "arrive("
        for batch in batches:
            yield f"{INDENT}{{"
            for stream, placed in batch.items():
                inner = [f"{INDENT * 3}{_row(row, self._case.streams[stream])}," for row in rows_of(placed)]
                head, end = f"{INDENT * 2}{text_of(stream)}: [", "],"
                yield from [head, *inner, INDENT * 2 + end] if inner else [head + end]
            yield f"{INDENT}}},"
        yield ")"


def _settings(conf: Mapping[str, str]) -> Iterator[str]:
    for key, value in conf.items():
        yield f"spark.conf.set({text_of(key)}, {text_of(value)})"
    if conf:
        yield ""


def rows_of(placed: Partitioned | None) -> list[WrittenRow]:
    return [row for part in placed.partitions for row in part] if placed is not None else []


def _row(row: WrittenRow, schema: Schema) -> str:
    return repr(json.loads(json.dumps(to_json_value(row, schema.struct))))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {"tinyint": "{}.toByte", "smallint": "{}.toShort", "int": "{}", "bigint": "{}L", "boolean": "{}"}
_TEXTS = {"string": "{}", "date": "java.sql.Date.valueOf({})", "decimal": "new java.math.BigDecimal({})"}


def suite_name(case: Case) -> str:
    """Return the name of the class of a suite of Spark's own tests: ``WindowStillOpenSuite``."""
    return "".join(word.title() for word in re.split(r"\W+", case.id.rpartition("/")[2])) + "Suite"


def streamtest_suite(case: Case, columns: Sequence[Column]) -> str | None:
    """Return the source, with a final newline. ``columns``: what the query emits, which says the types of the expected rows.

    There is none if ``StreamTest`` cannot do what the case does, or does it otherwise: see `is_expressible`.
    """
    return _Suite(case, columns).text() if is_expressible(case) else None


def is_expressible(case: Case) -> bool:
    """Tell whether rows arrive one micro-batch at a time in memory, and the query is started again as it was, if at all."""
    restarts = [step.action for step in case.steps if isinstance(step.action, Restart)]
    named = any(source_names(pipeline) for pipeline in case.pipelines())
    foreign = (
        case.sink or case.tables or case.topics or case.in_memory or case.files or named or case.trigger != "default"
    )
    return not (
        foreign
        or any(isinstance(operation, operations.PythonState | operations.Call) for operation in case.operations())
        or any(restart.how != "graceful" or restart.model_fields_set - {"how"} for restart in restarts)
        or any(not isinstance(step.action, Start | Add | Idle | Restart) for step in case.steps)
        or any(step.expect is not None and step.expect.error is not None for step in case.steps)
        or any(_rows(step) is None for step in case.steps)
    )


class _Suite:
    def __init__(self, case: Case, columns: Sequence[Column]) -> None:
        self._case = case
        self._types = [parse_schema(f"a {column.type}").fields[0].type for column in columns]

    def text(self) -> str:
        case = self._case
        also = [name for name in ("watermark", "state") if any(name in _checked(step) for step in case.steps)]
        conf = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1", **case.conf}
        writer = QueryWriter(scala=True)
        *actions, last = (line for step in case.steps for line in self._step(step))
        return PLAIN.get_template("streamtest.txt").render(
            id=case.id,
            suite=suite_name(case),
            checked=f", and the {' and the '.join(also)} after it" if also else "",
            title=text_of(on_one_line(case.title)),
            settings=[f"{text_of(key)} -> {text_of(value)}" for key, value in conf.items()],
            streams=[(name_of(name), text_of(schema.ddl)) for name, schema in case.streams.items()],
            query=writer.chain(case.query),
            statements=writer.statements,
            mode=case.output_mode.title(),
            actions=[*actions, last.removesuffix(",")],
        )

    def _step(self, step: Step) -> Iterator[str]:
        # Scala 2.12 makes a line end of \u000a in a comment, unless a second backslash stands before it.
        name = on_one_line(step.name or "").replace("\\", "\\\\")
        yield f"// step {step.number}" + (f": {name}" if name else "")
        match step.action:
            case Restart():
                yield "StopStream,"
                yield "StartStream(),"
            case Add(streams=arrival):
                adds = [self._add(stream, arrival.get(stream)) for stream in self._case.streams if stream in arrival]
                if len(adds) == 1:
                    yield f"{adds[0]},"
                else:
                    yield "StreamProgressLockedActions(Seq("
                    yield from (f"{INDENT}{added}," for added in adds[:-1])
                    yield from (f"{INDENT}{added}" for added in adds[-1:])
                    yield ")),"
        rows = ", ".join(self._row(row) for row in _rows(step) or ())
        yield f"CheckNewAnswerRows(Seq({rows})),"
        checked = _checked(step)
        if "watermark" in checked:
            yield f"watermark({instant_ms(checked['watermark'])}L),"
        if "state" in checked:
            counts = checked["state"] if isinstance(checked["state"], tuple) else (checked["state"],)
            yield f"state({', '.join(f'{count}L' for count in counts)}),"

    def _add(self, stream: str, placed: Partitioned | None) -> str:
        schema = self._case.streams[stream]
        written = [literal(row, schema.struct) for row in rows_of(placed)]
        return f"AddData({', '.join([f'{name_of(stream)}Rows', *written])})"

    def _row(self, row: WrittenRow) -> str:
        values = row.values() if isinstance(row, Mapping) else row
        return f"Row({', '.join(literal(value, type) for value, type in zip(values, self._types, strict=True))})"


def _rows(step: Step) -> tuple[WrittenRow, ...] | None:
    """Return the rows of a step, as it says them or as all of its micro-batches do; None if it leaves them open."""
    expect = step.expect or Expectation()
    if expect.batches is None or "rows" in expect.model_fields_set:
        return expect.rows
    if any(batch.rows is None for batch in expect.batches):
        return None
    return tuple(row for batch in expect.batches for row in batch.rows or ())


def _checked(step: Step) -> Mapping[str, Any]:
    """Return what the suite checks after a step, beside its rows: the watermark, and the rows of the state by the step or its last batch.

    Before the first micro-batch there is neither.
    """
    if step.expect is None or isinstance(step.action, Start):
        return {}
    last = step.expect.batches[-1].state if step.expect.batches else None
    given = {"watermark": step.expect.watermark, "state": step.expect.state if step.expect.state is not None else last}
    return {name: value for name, value in given.items() if value is not None}


def literal(value: Json, type: DataType) -> str:
    """Return a value of a case in Scala, as it stands in a ``Row``."""
    if value is None:
        return "null"
    exact = canonical(value, type)
    match type.name:
        case "timestamp" | "timestamp_ntz":
            moment = _EPOCH + timedelta(microseconds=exact)
            text = moment.replace(tzinfo=None).isoformat()
            return f'at("{text}Z")' if type.name == "timestamp" else f'LocalDateTime.parse("{text}")'
        case "struct":
            items = zip(struct_items(value, type), type.fields, strict=True)
            return f"Row({', '.join(literal(item, field.type) for item, field in items)})"
        case "array":
            return f"Seq({', '.join(literal(item, type.elements[0]) for item in value)})"
        case "float" | "double":
            number = f'"{exact}".toDouble' if isinstance(exact, str) else repr(float(exact))
            return f"{number}.toFloat" if type.name == "float" else number
        case name if name in _NUMBERS:
            return _NUMBERS[name].format(json.dumps(exact))
        case name if name in _TEXTS:
            return _TEXTS[name].format(text_of(str(exact)))
        case name:
            raise NoLiteral(name)


class NoLiteral(ValueError):
    """Values of this type have no literal here."""
