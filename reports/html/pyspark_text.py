"""The query of a case as PySpark code, to read and copy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conformance.core.case import Case
from conformance.core.query import Operation, Pipeline, sort_order

INDENT = "    "
LONGEST_LINE = 64
"""Characters that a page shows without scrolling."""


def pyspark(case: Case) -> str:
    """The streams, the query and its start, without a final newline."""
    lines = ["from pyspark.sql.functions import expr", ""]
    for name, schema in case.streams.items():
        source = [f"spark.readStream.schema({_text(schema.ddl)})", f".json({_text(name + '/')})"]
        whole = _assigned(_name(name), ["".join(source)])
        lines += whole if len(whole[0]) <= LONGEST_LINE else _assigned(_name(name), source)
    lines.append("")
    settings = [f"spark.conf.set({_text(key)}, {_text(value)})" for key, value in case.conf.items()]
    lines += [*settings, ""] if settings else []
    writer = _Writer()
    frame = writer.chain(case.query)
    lines += [*writer.statements, *_assigned("query", frame)]
    trigger = {"once": ".trigger(once=True)", "availableNow": ".trigger(availableNow=True)"}.get(case.trigger, "")
    lines.append(f"query.writeStream.outputMode({_text(case.output_mode)}){trigger}.start()")
    return "\n".join(lines)


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
                    lines = [_name(str(operation.arguments["from"]))]
                case "sql":
                    view = operation.arguments.get("as")
                    self.statements += _called_on(lines, f".createOrReplaceTempView({_text(view)})")
                    for name, nested in zip(operation.arguments.get("views", ()), operation.nested, strict=True):
                        self.statements += _called_on(self.chain(nested), f".createOrReplaceTempView({_text(name)})")
                    lines = [f"spark.sql({_text(operation.arguments['sql'])})"]
                case "call":
                    module, _, function = str(operation.arguments["call"]).partition(":")
                    self.statements += [f"from {module} import {function}", *_assigned("frame", lines)]
                    lines = [f"{function}(spark, frame)"]
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
            on = f", expr({_text(operation.arguments['on'])})" + (f", {_text(how)}" if how else "")
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
            keys = ", ".join(f"expr({_text(key)})" for key in value)
            aggregates = ", ".join(f"expr({_text(key)})" for key in arguments.get("agg", ()))
            yield f".groupBy({keys})"
            yield f".agg({aggregates})"
        case "withColumn":
            yield f".withColumn({_text(value[0])}, expr({_text(value[1])}))"
        case "orderBy":
            yield f".orderBy({', '.join(map(_sort_order, value))})"
        case "distinct":
            yield ".distinct()"
        case "dropDuplicates" | "dropDuplicatesWithinWatermark":
            yield f".{operation.name}({f'[{_texts(value)}]' if value else ''})"
        case "applyInPandasWithState" | "transformWithState" if isinstance(value, dict):
            yield f".groupBy({_texts(value.get('by', ()))})"
            rest = ", ".join(f"{key}={_text(item)}" for key, item in value.items() if key not in ("by", "with"))
            yield f".{operation.name}({value.get('with')}, …{', ' + rest if rest else ''})"
        case _:
            yield f".{operation.name}({_texts(value) if isinstance(value, list | tuple) else _text(value)})"


def _sort_order(text: str) -> str:
    """Without the direction of nulls that Spark takes anyway."""
    order = sort_order(text)
    nulls = "" if order.nulls_first == order.ascending else f"_nulls_{'first' if order.nulls_first else 'last'}"
    called = f".{'asc' if order.ascending else 'desc'}{nulls}()"
    return f"expr({_text(order.expression)})" + ("" if called == ".asc()" else called)


def _assigned(name: str, chain: list[str]) -> list[str]:
    if len(chain) == 1:
        return [f"{name} = {chain[0]}"]
    return [f"{name} = (", *(INDENT + line for line in chain), ")"]


def _called_on(chain: list[str], call: str) -> list[str]:
    if len(chain) == 1:
        return [chain[0] + call]
    return ["(", *(INDENT + line for line in chain), INDENT + call, ")"]


def _texts(values: Any) -> str:
    return ", ".join(_text(value) for value in values)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _name(stream: str) -> str:
    return stream if stream.isidentifier() else "stream_" + "".join(c if c.isalnum() else "_" for c in stream)
