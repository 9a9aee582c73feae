"""The query of a case as PySpark code, to read and copy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conformance.core.case import Case, Operation, Pipeline, sort_order
from conformance.query.syntax import NotReadable, expression, window_call

INDENT = "    "
_TRIGGERS = {
    "once": ".trigger(once=True)",
    "availableNow": ".trigger(availableNow=True)",
    "realTime": '.trigger(realTime="5 minutes")',
}
LONGEST_LINE = 64
"""Characters that a page shows without scrolling."""


def pyspark(case: Case) -> str:
    """The streams, the query and its start, without a final newline."""
    lines = ["from pyspark.sql.functions import expr", ""]
    names = source_names(case.query)
    for name, schema in case.streams.items():
        if name in case.in_memory:
            lines.append(f"# from a source that supports real-time mode, such as Kafka: {schema.ddl}")
            lines += assigned(name_of(name), ['spark.readStream.format("kafka")', ".load()"])
            continue
        named = f".name({text_of(names[name])})" if name in names else ""
        source = [f"spark.readStream{named}.schema({text_of(schema.ddl)})", f".json({text_of(name + '/')})"]
        whole = assigned(name_of(name), ["".join(source)])
        lines += whole if len(whole[0]) <= LONGEST_LINE else assigned(name_of(name), source)
    lines.append("")
    settings = [f"spark.conf.set({text_of(key)}, {text_of(value)})" for key, value in case.conf.items()]
    lines += [*settings, ""] if settings else []
    writer = _Writer()
    frame = writer.chain(case.query)
    lines += [*writer.statements, *assigned("query", frame)]
    trigger = _TRIGGERS.get(case.trigger, "")
    sink = ""
    if case.sink is not None:
        module, _, function = case.sink.partition(":")
        lines.append(f"from {module} import {function}")
        sink = f".foreachBatch({function})"
    lines.append(f"query.writeStream.outputMode({text_of(case.output_mode)}){trigger}{sink}.start()")
    return "\n".join(lines)


def source_names(pipeline: Pipeline) -> dict[str, str]:
    """Stream → the name of its source, for streams that the query reads under one."""
    reads = (operation.arguments for operation in pipeline.walk() if operation.name == "from")
    return {str(of["from"]): str(of["name"]) for of in reads if "name" in of}


def query_lines(pipeline: Pipeline) -> tuple[list[str], list[str]]:
    """The statements that a query needs before it, and the lines of its expression."""
    writer = _Writer()
    frame = writer.chain(pipeline)
    return writer.statements, frame


class _Writer:
    """Turns pipelines into chains of calls; everything else becomes a statement before the chain."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def chain(self, pipeline: Pipeline) -> list[str]:
        """The lines of an expression: a name, then one call a line."""
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
                    lines += _calls(operation)
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


def _calls(operation: Operation) -> Iterator[str]:
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
            yield f".orderBy({', '.join(map(_sort_order, value))})"
        case "distinct":
            yield ".distinct()"
        case "dropDuplicates" | "dropDuplicatesWithinWatermark":
            yield f".{operation.name}({f'[{_texts(value)}]' if value else ''})"
        case "applyInPandasWithState" if isinstance(value, dict):
            yield f".groupBy({_texts(value.get('by', ()))})"
            yield "# the function, what it emits and what it keeps: harness/driver/state_functions.py"
            rest = _texts((value.get("outputMode", "append"), value.get("timeout", "NoTimeout")))
            yield f".applyInPandasWithState({value.get('with')}, emits, keeps, {rest})"
        case "transformWithState" if isinstance(value, dict):
            yield f".groupBy({_texts(value.get('by', ()))})"
            in_pandas = value.get("inPandas", True)
            module = "stateful_processors" if in_pandas else "row_processors"
            yield f"# the processor and what it emits: harness/driver/{module}.py"
            rest = _texts((value.get("outputMode", "append"), value.get("timeMode", "None")))
            named = {"initialState": "initialState", "eventTimeColumn": "eventTimeColumnName"}
            given = "".join(f", {named[key]}={text_of(item)}" for key, item in value.items() if key in named)
            yield f".transformWithState{'InPandas' if in_pandas else ''}({value.get('with')}(), emits, {rest}{given})"
        case _:
            yield f".{operation.name}({_texts(value) if isinstance(value, list | tuple) else text_of(value)})"


def _sort_order(text: str) -> str:
    """Without the direction of nulls that Spark takes anyway."""
    order = sort_order(text)
    nulls = "" if order.nulls_first == order.ascending else f"_nulls_{'first' if order.nulls_first else 'last'}"
    called = f".{'asc' if order.ascending else 'desc'}{nulls}()"
    return f"expr({text_of(order.expression)})" + ("" if called == ".asc()" else called)


def _key(text: str) -> str:
    """A key; a window gets that name on every version (Spark itself names it from 3.4 on)."""
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
