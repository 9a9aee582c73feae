"""Pipelines: lists of operations, each named after its DataFrame method."""

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from conformance.core import operations
from conformance.core.data import Json
from conformance.core.operations import CALLED, OPERATIONS, Operation, Pipeline, WrittenFields, read_pipeline
from conformance.core.roles import PIPELINES, Part, Role
from conformance.language import shape as shapes
from conformance.language.shape import Definitions, Key, ListOf, MapOf, Record, Shape, Text
from conformance.language.source import Entries, Items, Node, ProblemReport, changed, child, entries_of, items_of
from conformance.language.streams import IDENTIFIER, NAME, Ddl

MAX_OPERATIONS = 1_000
FUNCTION = Text("module:function", r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$")
_EXPRESSION = Text("a Spark SQL expression")
_VIEW = Text("a view name", IDENTIFIER)


class _Pipeline(Shape):
    """Operations in order; the first, and no other, reads streams: ``from``, or ``call`` with ``with``. A mapping is the pipeline of this
    single operation: ``with_lists`` has replaced it before."""

    kind = "a pipeline: a list of operations that starts with `from: <stream>`"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Items):
            return self.reject(node, report)
        if not node.items:
            return self.reject(node, report, f"must not be empty: expected {self.kind}")
        if len(node.items) > MAX_OPERATIONS:
            message = f"a pipeline has at most {MAX_OPERATIONS} operations, not {len(node.items)}"
            return self.reject(node, report, message)
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
        call = shapes.Definition(_CALL_WITH_STREAMS, "callWithStreams").schema(definitions)
        listed = {
            "type": "array",
            "minItems": 1,
            "items": [{"anyOf": [RECORDS[operations.From.name].schema(definitions), call]}],
            "additionalItems": shapes.Definition(_LATER, "operation").schema(definitions),
        }
        what = "A pipeline: operations, each named after its DataFrame method; or one call of your own function."
        return {"description": what, "anyOf": [listed, call]}

    def value(self, written: list[dict[str, Json]]) -> Pipeline:
        return read_pipeline(written)


PIPELINE = shapes.Definition(_Pipeline(), "pipeline")


def _shape(part: Part) -> Shape:
    """Give the grammar of a field."""
    match part.role:
        case Role.STREAM:
            return NAME
        case Role.STREAMS:
            return ListOf(NAME, "a list of streams", at_least=1)
        case Role.COLUMN | Role.NEW_COLUMN:
            return Text("a column name", empty=not part.least)
        case Role.COLUMNS:
            return ListOf(Text("a column name"), "a list of column names", at_least=part.least)
        case Role.DELAY:
            # Cases test that `withWatermark` rejects an empty column and an empty delay.
            return Text("a delay such as '10 minutes'", empty=True)
        case Role.EXPRESSION:
            return _EXPRESSION
        case Role.EXPRESSIONS:
            return ListOf(_EXPRESSION, "a list of Spark SQL expressions", at_least=part.least)
        case Role.SORT_ORDERS:
            item = Text("a Spark SQL expression, such as total DESC")
            return ListOf(item, "a list of Spark SQL expressions, each with ASC or DESC if wanted", at_least=1)
        case Role.STATEMENT | Role.INITIAL_STATE:
            return Text("a SQL query")
        case Role.ALIAS:
            return Text("an alias", IDENTIFIER)
        case Role.VIEW:
            return _VIEW
        case Role.OTHER_PIPELINE:
            return PIPELINE
        case Role.VIEWS:
            kind = "a mapping from view name to pipeline: {payments: [{from: payments}]}"
            return MapOf(_VIEW, PIPELINE, kind, at_least=1)
        case Role.CHOICE:
            return shapes.Choice(part.kind, part.words)
        case Role.NUMBER:
            return shapes.integer(1)
        case Role.ONLY:
            return shapes.constant(part.value)
        case Role.SCHEMA_OF_STATE:
            return Ddl()
        case Role.TEXT:
            return Text(part.kind, part.pattern)
        case Role.TEXTS:
            plural = f"a list of {part.kind.partition(' ')[2]}s"
            return ListOf(Text(part.kind, empty=not part.least), plural, at_least=part.least)
        case Role.JARS:
            jar = Text("a jar, such as target/jobs.jar or 2.12=target/jobs.jar", r"^(?:\d+\.\d+=)?[^=]+$")
            return shapes.one_or_many(jar, "a jar or a list of jars, such as target/jobs.jar or 2.12=target/jobs.jar")
        case Role.WATERMARKS:
            return MapOf(
                NAME, _listed_parts(operations.WithWatermark), "a mapping from stream to [column, delay]", at_least=1
            )
        case Role.CELLS:
            cells = ListOf(Text("the text of a cell"), "a list of cells", at_least=1)
            return MapOf(Text("the name of a notebook"), cells, "a mapping from notebook to its cells", at_least=1)
        case Role.VALUES:
            return MapOf(Text("a name"), Text("a text", empty=True), "a mapping from name to value", at_least=1)
        case Role.CALLED:
            called = {kind.parts()[0].key: kind for kind in CALLED}
            kinds = {key: Record("`call`", _keys(kind), description=kind.description()) for key, kind in called.items()}
            return shapes.ByKind(
                "`module:function`, or a mapping with the key `program`, `main`, `sql` or `jvm`",
                scalar=FUNCTION,
                entries=shapes.Alternatives("`call`", "key", kinds, listed=False),
            )
        case _:
            assert_never(part.role)


def _keys(kind: type[WrittenFields]) -> dict[str, Key]:
    return {part.key: Key(_shape(part), part.description, part.required) for part in kind.parts()}


def _listed_parts(kind: type[WrittenFields]) -> shapes.TupleOf:
    parts = kind.parts()
    return shapes.TupleOf(tuple(_shape(part) for part in parts), f"[{', '.join(part.key for part in parts)}]")


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
            shape = others.pop(name).shape if others else shapes.constant(True)
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
OPERATION = shapes.Alternatives(
    "operation",
    "operation",
    RECORDS,
    identified_by_first_key=True,
    synonyms=_SYNONYMS,
    elsewhere={
        name: f"say it in SQL, `{{sql: SELECT * FROM view {clause}, as: view}}`" for name, clause in _IN_SQL.items()
    },
)
_CALL = RECORDS[operations.Call.name]
_LATER = shapes.Alternatives(
    "operation",
    "operation",
    {
        **{name: operation for name, operation in RECORDS.items() if name != operations.From.name},
        operations.Call.name: replace(_CALL, keys={"call": replace(_CALL.keys["call"], shape=FUNCTION)}),
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
    """Make each pipeline that is a mapping, a call of a function, a list of this operation."""
    case = changed(case, ("query",), _listed)
    return changed(case, ("steps", "*", "restart", "change", "query"), _listed)


def _listed(pipeline: Node) -> Node:
    if isinstance(pipeline, Entries) and pipeline.get("call") is not None:
        return Items(pipeline.line, pipeline.column, (pipeline,))
    if isinstance(pipeline, Items):
        for key, role in _PIPELINES.items():
            pipeline = changed(pipeline, ("*", key, "*") if role is Role.VIEWS else ("*", key), _listed)
    return pipeline


_PIPELINES = {part.key: part.role for kind in OPERATIONS.values() for part in kind.parts(*PIPELINES)}
"""Under which keys an operation has other pipelines."""


def settings_of(case: Node, key: str) -> Iterator[Node]:
    """Return the values of a key of the query: that of the case, then those of later restarts."""
    changes = (child(step, "restart", "change", key) for step in items_of(case, "steps"))
    return (value for value in (child(case, key), *changes) if value is not None)


def queries_of(case: Node) -> Iterator[tuple[Node | None, Node | None]]:
    """Yield the query of a case, then those of later restarts, each with the step that starts it."""
    steps = items_of(case, "steps")
    yield child(case, "query"), steps[0] if steps else None
    for step in steps:
        if (query := child(step, "restart", "change", "query")) is not None:
            yield query, step


def operations_in(pipeline: Node | None) -> Iterator[Node]:
    """Yield the operations of a pipeline, and those of the pipelines in them."""
    for operation in items_of(pipeline):
        yield operation
        for nested in nested_pipelines(operation):
            yield from operations_in(nested)


def nested_pipelines(operation: Node) -> Iterator[Node]:
    """Yield the other pipelines of an operation as written: the other side of a join or union, and the views of SQL."""
    for entry in entries_of(operation):
        match _PIPELINES.get(str(entry.key.value)):
            case Role.OTHER_PIPELINE:
                yield entry.value
            case Role.VIEWS:
                yield from (view.value for view in entries_of(entry.value))


def kind_of(operation: Node | None) -> type[Operation] | None:
    """Return the class of an operation as written; None if it has no name of one."""
    for entry in entries_of(operation):
        if (kind := OPERATIONS.get(str(entry.key.value))) is not None:
            return kind
    return None


def parts_of(operation: Node | None, *roles: Role) -> Iterator[tuple[Part, Node]]:
    """Yield the fields of an operation that are written, or those in some roles, each with its node."""
    kind = kind_of(operation)
    if kind is None or not (parts := kind.parts(*roles)):
        return
    if kind.form == "list":
        items = zip(kind.parts(), items_of(operation, kind.name), strict=False)
        yield from ((part, node) for part, node in items if part in parts)
        return
    keys = child(operation, kind.name) if kind.form == "mapping" else operation
    for part in parts:
        if (node := child(keys, part.key)) is not None:
            yield part, node
