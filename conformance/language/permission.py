"""What in a case runs only with ``--allow-code``: code of its author, and SQL or settings that could run code or read files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from conformance.core.case import NeedsCode
from conformance.language.confs import refusal_of
from conformance.language.node import Entries, Node, Scalar, SourceLocation, child, inside, items_of
from conformance.language.pipelines import OTHER_SIDES, nested_pipelines
from conformance.language.shape import ConfValue
from conformance.language.sql_permission import HIDDEN_COLUMN, refusals

Json: TypeAlias = Any
Path: TypeAlias = tuple[str | int, ...]

EXPRESSIONS = ("where", "select", "withColumn", "groupBy", "agg", "on", "orderBy")
"""Keys of operations that reach Spark as expressions."""


@dataclass(frozen=True)
class SqlText:
    """A text of a pipeline that Spark parses."""

    path: Path
    """From the pipeline."""
    text: str
    views: tuple[str, ...]
    """The views that exist when Spark parses it."""
    statement: bool


def needs_code(case: Node) -> tuple[NeedsCode, ...]:
    """Everything in a valid case that needs ``--allow-code``, in the order of the file."""
    found = [*_in_conf(child(case, "conf")), *_in_pipeline(child(case, "query"))]
    if isinstance(case, Entries) and case.get("sink") is not None:
        found.append(_needs(case.key("sink"), "`sink` runs Python code of the case's author"))
    for step in items_of(child(case, "steps")):
        change = child(child(step, "restart"), "change")
        found += [*_in_conf(child(change, "conf")), *_in_pipeline(child(change, "query"))]
    return tuple(sorted(set(found), key=lambda one: (one.line, one.column, one.reason)))


def sql_texts(pipeline: Node) -> Iterator[SqlText]:
    """Every text of a valid pipeline that Spark parses, in the order in which the driver passes them on."""
    operations: Json = pipeline.plain()
    yield from _texts(operations, (), [])


def _texts(pipeline: Sequence[Mapping[str, Json]], path: Path, views: list[str]) -> Iterator[SqlText]:
    for number, operation in enumerate(pipeline):
        at = (*path, number)
        for key in OTHER_SIDES:
            if key in operation:
                yield from _texts(operation[key], (*at, key), views)
        for name, nested in operation.get("views", {}).items():
            yield from _texts(nested, (*at, "views", name), views)
        for key in EXPRESSIONS:
            written = operation.get(key, ())
            if isinstance(written, str):
                yield SqlText((*at, key), written, tuple(views), statement=False)
                continue
            for index, text in enumerate(written):
                if key != "withColumn" or index == 1:
                    yield SqlText((*at, key, index), text, tuple(views), statement=False)
        if "sql" in operation:
            views += [*operation.get("views", ()), operation["as"]]
            yield SqlText((*at, "sql"), operation["sql"], tuple(views), statement=True)
        if initial := operation.get("transformWithState", {}).get("initialState"):
            yield SqlText((*at, "transformWithState", "initialState"), initial, tuple(views), statement=True)


def _in_pipeline(pipeline: Node | None) -> Iterator[NeedsCode]:
    if pipeline is None:
        return
    for one in sql_texts(pipeline):
        place = inside(pipeline, one.path)
        for refusal in refusals(one.text, one.views, statement=one.statement):
            at = place.at(refusal.offset) if isinstance(place, Scalar) else place
            yield _needs(at, refusal.reason)
    yield from _calls(pipeline)
    yield from _hidden_columns(pipeline)


def _hidden_columns(node: Node) -> Iterator[NeedsCode]:
    """Columns that operations name, such as ``dropDuplicates: [_metadata.file_path]``."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str) and HIDDEN_COLUMN in [
            part.strip(" `").lower() for part in node.value.split(".")
        ]:
            yield _needs(node.at(0), f"{HIDDEN_COLUMN} shows paths of the engine's machine")
        return
    for below in [entry.value for entry in node.entries] if isinstance(node, Entries) else items_of(node):
        yield from _hidden_columns(below)


def _calls(pipeline: Node) -> Iterator[NeedsCode]:
    for operation in items_of(pipeline):
        if isinstance(operation, Entries) and operation.get("call") is not None:
            yield _needs(operation.key("call"), "`call` runs Python code of the case's author")
        for nested in nested_pipelines(operation):
            yield from _calls(nested)


def _in_conf(conf: Node | None) -> Iterator[NeedsCode]:
    if not isinstance(conf, Entries):
        return
    for entry in conf.entries:
        reason = refusal_of(str(entry.key.value), ConfValue().value(entry.value.plain()))
        if reason is not None:
            yield _needs(entry.key, reason)


def _needs(place: SourceLocation, reason: str) -> NeedsCode:
    return NeedsCode(line=place.line, column=place.column, reason=reason)
