"""Pipelines: lists of operations, each named after its DataFrame method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from conformance.core import roles
from conformance.core.data import Json
from conformance.core.operations import (
    CALLED,
    OPERATIONS,
    Call,
    From,
    Operation,
    Part,
    Pipeline,
    WithWatermark,
    Written,
    read_pipeline,
)
from conformance.core.roles import Role
from conformance.language.shape import (
    Alternatives,
    ByKind,
    Choice,
    Definition,
    Definitions,
    Key,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    TupleOf,
    constant,
    integer,
    one_or_many,
)
from conformance.language.source import Entries, Items, Node, Report, changed, child, entries_of, items_of
from conformance.language.streams import IDENTIFIER, NAME, Ddl

MAX_OPERATIONS = 1_000
FUNCTION = Text("module:function", r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$")
_EXPRESSION = Text("a Spark SQL expression")


class _Pipeline(Shape):
    """Operations in order; the first, and no other, reads streams: ``from``, or ``call`` with ``with``. A mapping is the pipeline of this
    single operation: ``with_lists`` has replaced it before."""

    kind = "a pipeline: a list of operations that starts with `from: <stream>`"

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Items):
            return self.reject(node, report)
        if not node.items:
            return self.reject(node, report, f"must not be empty: expected {self.kind}")
        if len(node.items) > MAX_OPERATIONS:
            return self.reject(
                node, report, f"a pipeline has at most {MAX_OPERATIONS} operations, not {len(node.items)}"
            )
        valid = [OPERATION.check(item, report) for item in node.items]
        if valid[0] and child(node.items[0], "from") is None and child(node.items[0], "with") is None:
            hint = ": write `with: [<stream>, …]` beside `call` for a function that gets streams"
            message = f"a pipeline starts with `from: <stream>`{hint if child(node.items[0], 'call') else ''}"
            valid.append(self.reject(node.items[0], report, message))
        for item in node.items[1:]:
            called = child(item, "call")
            if isinstance(called, Entries):
                valid.append(self.reject(called, report, _STARTS))
            valid += [not report.forbid(item, key, message) for key, message in _FIRST_ONLY.items()]
        return all(valid)

    def schema(self, definitions: Definitions) -> Json:
        call = Definition(_CALL_WITH_STREAMS, "callWithStreams").schema(definitions)
        operations = {
            "type": "array",
            "minItems": 1,
            "items": [{"anyOf": [RECORDS[From.name].schema(definitions), call]}],
            "additionalItems": Definition(_LATER, "operation").schema(definitions),
        }
        what = "A pipeline: operations, each named after its DataFrame method; or one call of your own function."
        return {"description": what, "anyOf": [operations, call]}

    def value(self, written: list[dict[str, Json]]) -> Pipeline:
        return read_pipeline(written)


PIPELINE = Definition(_Pipeline(), "pipeline")


def _shape(role: Role) -> Shape:
    """Give the grammar of a field."""
    match role:
        case roles.Stream():
            return NAME
        case roles.Streams():
            return ListOf(NAME, "a list of streams", at_least=1)
        case roles.Column(may_be_empty=empty):
            return Text("a column name", empty=empty)
        case roles.Columns(at_least=least):
            return ListOf(Text("a column name"), "a list of column names", at_least=least)
        case roles.NewColumn():
            return Text("a column name")
        case roles.Delay():
            # Cases test that `withWatermark` rejects an empty column and an empty delay.
            return Text("a delay such as '10 minutes'", empty=True)
        case roles.Expression():
            return _EXPRESSION
        case roles.Expressions(at_least=least):
            return ListOf(_EXPRESSION, "a list of Spark SQL expressions", at_least=least)
        case roles.SortOrders():
            item = Text("a Spark SQL expression, such as total DESC")
            return ListOf(item, "a list of Spark SQL expressions, each with ASC or DESC if wanted", at_least=1)
        case roles.Statement():
            return Text("a SQL query")
        case roles.Alias(kind=kind):
            return Text(kind, IDENTIFIER)
        case roles.OtherPipeline():
            return PIPELINE
        case roles.Views():
            kind = "a mapping from view name to pipeline: {payments: [{from: payments}]}"
            return MapOf(Text("a view name", IDENTIFIER), PIPELINE, kind, at_least=1)
        case roles.Choice(kind=kind, words=words):
            return Choice(kind, words)
        case roles.Number():
            return integer(1)
        case roles.Only(value=value):
            return constant(value)
        case roles.SchemaOfState():
            return Ddl()
        case roles.Text(kind=kind, pattern=pattern, may_be_empty=empty):
            return Text(kind, pattern, empty=empty)
        case roles.Texts(kind=kind, item=text, at_least=least):
            return ListOf(_shape(text), kind, at_least=least)
        case roles.Jars():
            jar = Text("a jar, such as target/jobs.jar or 2.12=target/jobs.jar", r"^(?:\d+\.\d+=)?[^=]+$")
            return one_or_many(jar, "a jar or a list of jars, such as target/jobs.jar or 2.12=target/jobs.jar")
        case roles.Watermarks():
            return MapOf(NAME, _listed_parts(WithWatermark), "a mapping from stream to [column, delay]", at_least=1)
        case roles.Called():
            kinds = {
                kind.parts()[0].key: Record("`call`", _keys(kind), description=kind.description()) for kind in CALLED
            }
            return ByKind(
                "`module:function`, or a mapping with the key `program`, `main`, `sql` or `jvm`",
                scalar=FUNCTION,
                entries=Alternatives("`call`", "key", kinds, listed=False),
            )
        case _:
            assert_never(role)


def _keys(kind: type[Written]) -> dict[str, Key]:
    return {part.key: Key(_shape(part.role), part.role.description, part.required) for part in kind.parts()}


def _listed_parts(kind: type[Written]) -> TupleOf:
    parts = kind.parts()
    return TupleOf(tuple(_shape(part.role) for part in parts), f"[{', '.join(part.key for part in parts)}]")


def _record(kind: type[Operation]) -> Record:
    """Give the grammar of an operation."""
    name, description = kind.name, kind.description()
    others = {}
    shape: Shape
    match kind.form:
        case "list":
            shape = _listed_parts(kind)
        case "mapping":
            shape = Record(f"`{name}`", _keys(kind), description=description)
        case "keys":
            others = _keys(kind)
            shape = others.pop(name).shape if others else constant(True)
    keys = {name: Key(shape, description, required=True), **others}
    return Record(f"`{name}`", keys, description=description)


RECORDS = {name: _record(kind) for name, kind in OPERATIONS.items()}
"""Name of an operation → its grammar."""
_SYNONYMS = {
    "filter": "where",
    "selectExpr": "select",
    "unionAll": "union",
    "unionByName": "union",
    "agg": "groupBy",
    "sort": "orderBy",
}
_IN_SQL = {
    "having": "GROUP BY key HAVING count(*) > 1",
    "intersect": "INTERSECT SELECT * FROM other",
    "except": "EXCEPT SELECT * FROM other",
    "exceptAll": "EXCEPT ALL SELECT * FROM other",
}
"""Operations that the language does not have → how a SQL query says them."""
OPERATION = Alternatives(
    "operation",
    "operation",
    RECORDS,
    identified_by_first_key=True,
    synonyms=_SYNONYMS,
    elsewhere={
        name: f"say it in SQL, `{{sql: SELECT * FROM view {clause}, as: view}}`" for name, clause in _IN_SQL.items()
    },
)
_CALL = RECORDS[Call.name]
_LATER = Alternatives(
    "operation",
    "operation",
    {
        **{name: operation for name, operation in RECORDS.items() if name != From.name},
        Call.name: replace(_CALL, keys={"call": replace(_CALL.keys["call"], shape=FUNCTION)}),
    },
)
"""The operations after the first, for the schema: they read no stream."""
_CALL_WITH_STREAMS = replace(_CALL, keys={**_CALL.keys, "with": replace(_CALL.keys["with"], required=True)})
"""A call that starts a pipeline, for the schema."""
_STARTS = "only the first operation may call a program, SQL or a method of a jar, which get the streams of `with`"
_FIRST_ONLY = {
    "from": "only the first operation may be `from`: use `join` or `union` to read another stream",
    "with": "only the first operation may have `with`: a later `call` gets the DataFrame so far",
}


def with_lists(case: Node) -> Node:
    """The case as written, where each pipeline that is a mapping, a call of a function, is a list of this operation."""
    case = changed(case, ("query",), _listed)
    return changed(case, ("steps", "*", "restart", "change", "query"), _listed)


def _listed(pipeline: Node) -> Node:
    if isinstance(pipeline, Entries) and pipeline.get("call") is not None:
        return Items(pipeline.line, pipeline.column, (pipeline,))
    if isinstance(pipeline, Items):
        for path in _NESTED:
            pipeline = changed(pipeline, ("*", *path), _listed)
    return pipeline


_NESTED = [
    (part.key, *(("*",) if isinstance(part.role, roles.Views) else ()))
    for kind in OPERATIONS.values()
    for part in kind.parts()
    if isinstance(part.role, roles.OtherPipeline | roles.Views)
]
"""Where an operation has other pipelines."""


def queries_of(case: Node) -> Iterator[tuple[Node | None, Node | None]]:
    """The query of a case, then those of later restarts, each with the step that starts it."""
    steps = items_of(child(case, "steps"))
    yield child(case, "query"), steps[0] if steps else None
    for step in steps:
        if (query := child(step, "restart", "change", "query")) is not None:
            yield query, step


def operations_in(pipeline: Node | None) -> Iterator[Node]:
    """The operations of a pipeline, and those of the pipelines in them."""
    for operation in items_of(pipeline):
        yield operation
        for nested in nested_pipelines(operation):
            yield from operations_in(nested)


def nested_pipelines(operation: Node) -> Iterator[Node]:
    """The other pipelines of an operation as written: the other side of a join or union, and the views of SQL."""
    for part, node in parts_of(operation):
        if isinstance(part.role, roles.OtherPipeline):
            yield node
        elif isinstance(part.role, roles.Views):
            yield from (view.value for view in entries_of(node))


def kind_of(operation: Node | None) -> type[Operation] | None:
    """The class of an operation as written; None if it has no name of one."""
    names = (entry.key.value for entry in entries_of(operation))
    return next((OPERATIONS[name] for name in names if isinstance(name, str) and name in OPERATIONS), None)


def parts_of(operation: Node | None) -> Iterator[tuple[Part, Node]]:
    """The fields of an operation that are written, each with its node."""
    if (kind := kind_of(operation)) is None:
        return
    value = child(operation, kind.name)
    if kind.form == "list":
        yield from zip(kind.parts(), items_of(value), strict=False)
        return
    for part in kind.parts():
        if (node := child(value if kind.form == "mapping" else operation, part.key)) is not None:
            yield part, node
