"""A case as PySpark: its query, and a script that needs only pyspark, with rows, query, sink, checkpoint and restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.core.case import (
    PYTHON_STATE,
    Add,
    Backlog,
    Case,
    Operation,
    Partitioned,
    Pipeline,
    Restart,
    Row,
    Trigger,
    sort_order,
)
from conformance.core.spark_types import Schema
from conformance.core.values import to_json_value
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
            lines.append(f"# from a source that supports real-time mode, such as Kafka: {schema.ddl}")
            lines += assigned(name_of(name), ['spark.readStream.format("kafka")', ".load()"])
            continue
        if name in case.topics:
            lines.append(f"# and then these columns of its records: {schema.ddl}")
            lines += assigned(
                name_of(name), ['spark.readStream.format("kafka")', f'.option("subscribe", {text_of(name)})', ".load()"]
            )
            continue
        if name in case.tables:
            lines += assigned(
                name_of(name), [f'spark.readStream.format("{case.tables[name]}").load({text_of(name + "/")})']
            )
            continue
        named = f".name({text_of(names[name])})" if name in names else ""
        source = [f"spark.readStream{named}.schema({text_of(schema.ddl)})", f".json({text_of(name + '/')})"]
        whole = assigned(name_of(name), ["".join(source)])
        lines += whole if len(whole[0]) <= LONGEST_LINE else assigned(name_of(name), source)
    lines += ["", *_settings(case.conf), *_query_lines(case.query)]
    trigger = f".trigger({_TRIGGERS[case.trigger].format(case.interval_ms)})" if case.trigger in _TRIGGERS else ""
    sink = ""
    start = "start()"
    if case.written is not None:
        sink, start = f'.format("{"parquet" if case.written == "files" else case.written}")', 'start("sink/")'
    elif case.sink is not None:
        module, _, function = case.sink.partition(":")
        lines.append(f"from {module} import {function}")
        sink = f".foreachBatch({function})"
    lines.append(f"query.writeStream.outputMode({text_of(case.output_mode)}){trigger}{sink}.{start}")
    return "\n".join(lines)


def source_names(pipeline: Pipeline) -> dict[str, str]:
    """Maps each stream that the query reads under a name to the name."""
    reads = (operation.arguments for operation in pipeline.walk() if operation.name == "from")
    return {str(of["from"]): str(of["name"]) for of in reads if "name" in of}


def _query_lines(pipeline: Pipeline) -> list[str]:
    writer = QueryWriter()
    frame = writer.chain(pipeline)
    return [*writer.statements, *assigned("query", frame)]


class QueryWriter:
    """Turns pipelines into chains of calls; everything else becomes a statement before the chain. Scala's are nearly the same."""

    def __init__(self, *, scala: bool = False) -> None:
        self.scala = scala
        self.statements: list[str] = []

    def chain(self, pipeline: Pipeline) -> list[str]:
        lines: list[str] = []
        for operation in pipeline.operations:
            match operation.name:
                case "from":
                    lines = [name_of(str(operation.arguments["from"]))]
                case "sql":
                    view = operation.arguments.get("as")
                    self.statements += _called_on(lines, f".createOrReplaceTempView({text_of(view)})")
                    for name, nested in zip(operation.arguments.get("views", ()), operation.nested, strict=True):
                        self.statements += _called_on(self.chain(nested), f".createOrReplaceTempView({text_of(name)})")
                    lines = [f"spark.sql({text_of(operation.arguments['sql'])})"]
                case "call":
                    module, _, function = str(operation.arguments["call"]).partition(":")
                    given = [name_of(str(stream)) for stream in operation.arguments.get("with", ())]
                    self.statements += [
                        f"from {module} import {function}",
                        *(assigned("frame", lines) if not given else ()),
                    ]
                    lines = [f"{function}({', '.join(['spark', *(given or ['frame'])])})"]
                case "join" | "union":
                    lines += self._with_other(operation, *operation.nested)
                case _:
                    lines += _calls(operation, scala=self.scala)
        return lines

    def _with_other(self, operation: Operation, nested: Pipeline) -> Iterator[str]:
        other = self.chain(nested)
        on = ""
        if operation.name == "join":
            how = operation.arguments.get("how")
            on = f", expr({text_of(operation.arguments['on'])})" + (f", {text_of(how)}" if how else "")
        if len(other) == 1:
            yield f".{operation.name}({other[0]}{on})"
            return
        yield f".{operation.name}("
        yield INDENT + other[0]
        yield from (INDENT * 2 + line for line in other[1:-1])
        yield f"{INDENT * 2}{other[-1]}{on}"
        yield ")"


def _calls(operation: Operation, *, scala: bool) -> Iterator[str]:
    arguments = operation.arguments
    value: Any = arguments.get(operation.name)
    match operation.name:
        case "select":
            yield f".selectExpr({_texts(value)})"
        case "groupBy":
            keys = ", ".join(map(_key, value))
            aggregates = ", ".join(f"expr({text_of(key)})" for key in arguments.get("agg", ()))
            yield f".groupBy({keys})"
            yield f".agg({aggregates})"
        case "withColumn":
            yield f".withColumn({text_of(value[0])}, expr({text_of(value[1])}))"
        case "orderBy":
            orders = ", ".join(map(_sort_order, value))
            yield f".orderBy({orders.replace('()', '') if scala else orders})"
        case "distinct":
            yield ".distinct()"
        case "dropDuplicates" | "dropDuplicatesWithinWatermark":
            columns = f"Seq({_texts(value)})" if scala else f"[{_texts(value)}]"
            yield f".{operation.name}({columns if value else ''})"
        case "applyInPandasWithState" if isinstance(value, dict):
            yield f".groupBy({_texts(value.get('by', ()))})"
            yield "# the function, what it emits and what it keeps: harness/driver/state_functions.py"
            rest = _texts((value.get("outputMode", "append"), value.get("timeout", "NoTimeout")))
            yield f".applyInPandasWithState({value.get('with')}, emits, keeps, {rest})"
        case "transformWithState" if isinstance(value, dict):
            yield f".groupBy({_texts(value.get('by', ()))})"
            in_pandas = value.get("inPandas", True)
            yield "# the processor and what it emits: harness/driver/stateful_processors.py"
            rest = _texts((value.get("outputMode", "append"), value.get("timeMode", "None")))
            named = {"initialState": "initialState", "eventTimeColumn": "eventTimeColumnName"}
            given = "".join(f", {named[key]}={text_of(item)}" for key, item in value.items() if key in named)
            yield f".transformWithState{'InPandas' if in_pandas else ''}({value.get('with')}(), emits, {rest}{given})"
        case _:
            yield f".{operation.name}({_texts(value) if isinstance(value, list | tuple) else text_of(value)})"


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


def assigned(name: str, chain: list[str]) -> list[str]:
    if len(chain) == 1:
        return [f"{name} = {chain[0]}"]
    return [f"{name} = (", *(INDENT + line for line in chain), ")"]


def _called_on(chain: list[str], call: str) -> list[str]:
    if len(chain) == 1:
        return [chain[0] + call]
    return ["(", *(INDENT + line for line in chain), INDENT + call, ")"]


def _texts(values: Any) -> str:
    return ", ".join(text_of(value) for value in values)


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
    time or by a clock of its own, read topics or tables, or call code that is not in the case.
    """
    restarts = [step.action for step in case.steps if isinstance(step.action, Restart)]
    if (
        case.sink
        or case.tables
        or case.topics
        or case.in_real_time
        or case.interval_ms is not None
        or any(operation.name in PYTHON_STATE or operation.name == "call" for operation in case.operations())
        or any(each.how == "kill" or each.damage or each.repartition or each.checkpoint for each in restarts)
        or any(each.change.trigger for each in restarts)
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
            title=" ".join(case.title.split()),
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
            yield f"# {step.name}" if step.name else f"# step {step.number}"
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
                schema = self._case.streams[stream]
                rows = [row for part in placed.partitions for row in part] if placed is not None else []
                inner = [f"{INDENT * 3}{_row(row, schema)}," for row in rows]
                head, end = f"{INDENT * 2}{text_of(stream)}: [", "],"
                yield from [head, *inner, INDENT * 2 + end] if inner else [head + end]
            yield f"{INDENT}}},"
        yield ")"


def _settings(conf: Mapping[str, str]) -> Iterator[str]:
    for key, value in conf.items():
        yield f"spark.conf.set({text_of(key)}, {text_of(value)})"
    if conf:
        yield ""


def _row(row: Row, schema: Schema) -> str:
    return repr(json.loads(json.dumps(to_json_value(row, schema.struct))))
