"""A case as a suite of Spark's own tests: Scala for ``StreamTest``, inside Spark's build or with a release's test jars."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from conformance.core import operations
from conformance.core.case import Add, Case, Expectation, Idle, Partitioned, Restart, Start, Step, WrittenRow
from conformance.core.data import Json
from conformance.core.observation import Column
from conformance.core.spark_types import DataType, parse_schema
from conformance.core.values import canonical, instant_ms, struct_items
from reports.exports.pyspark_script import (
    INDENT,
    PLAIN,
    QueryWriter,
    name_of,
    on_one_line,
    rows_of,
    source_names,
    text_of,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {"tinyint": "{}.toByte", "smallint": "{}.toShort", "int": "{}", "bigint": "{}L", "boolean": "{}"}
_TEXTS = {"string": "{}", "date": "java.sql.Date.valueOf({})", "decimal": "new java.math.BigDecimal({})"}


def suite_name(case: Case) -> str:
    """Return the name of its class: ``WindowStillOpenSuite``."""
    return "".join(word.title() for word in re.split(r"\W+", case.id.rpartition("/")[2])) + "Suite"


def streamtest_suite(case: Case, columns: Sequence[Column]) -> str | None:
    """Return the source, with a final newline. ``columns``: what the query emits, which says the types of the expected rows.

    There is none if ``StreamTest`` cannot do what the case does, or does it otherwise: see `is_expressible`.
    """
    return "\n".join(_Suite(case, columns).lines()) + "\n" if is_expressible(case) else None


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

    def lines(self) -> Iterator[str]:
        case = self._case
        also = [name for name in ("watermark", "state") if any(name in _checked(step) for step in case.steps)]
        checked = f", and the {' and the '.join(also)} after it" if also else ""
        begins = PLAIN.get_template("streamtest.txt").render(id=case.id, suite=suite_name(case), checked=checked)
        yield from begins.splitlines()
        yield ""
        yield f"  test({text_of(on_one_line(case.title))}) {{"
        conf = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1", **case.conf}
        settings = [f"{text_of(key)} -> {text_of(value)}" for key, value in conf.items()]
        yield "    withSQLConf("
        yield from (f"      {setting}," for setting in settings[:-1])
        yield f"      {settings[-1]}) {{"
        for name, schema in case.streams.items():
            yield f"      val {name_of(name)}Rows = rowsOf({text_of(schema.ddl)})"
            yield f"      val {name_of(name)} = {name_of(name)}Rows.toDF()"
        writer = QueryWriter(scala=True)
        chain = writer.chain(case.query)
        yield from (f"      {line}" for line in writer.statements)
        yield f"      val query = {chain[0]}"
        yield from (f"        {line}" for line in chain[1:])
        yield f"      testStream(query, {case.output_mode.title()})("
        actions = [line for step in case.steps for line in self._step(step)]
        yield from (f"        {line}" for line in actions[:-1])
        yield f"        {actions[-1].removesuffix(',')}"
        yield "      )"
        yield "    }"
        yield "  }"
        yield "}"

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
