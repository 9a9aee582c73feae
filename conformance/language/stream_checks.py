"""Streams that are declared, read and added to: the three must agree, and rows must have the types of their stream."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.language.node import Entries, Entry, Node, SourceLocation, child, entries_of, items_of, text_of
from conformance.language.problem import Report
from conformance.language.rows import check_values
from conformance.language.streams import schemas
from conformance.language.suggest import unknown

_NESTED = ("join", "union")


def check_streams(case: Node, report: Report) -> None:
    declared = child(case, "streams")
    if not isinstance(declared, Entries):
        return
    names = [str(entry.key.value) for entry in declared.entries]
    read: set[str] = set()
    for place, name in _read(case):
        read.add(name)
        if name not in names:
            report.add(place, unknown("stream", name, names))
    # Where the query is not in shape, or reads what is not declared, the streams it means are not known.
    knows_all = all(report.sound(pipeline) for pipeline in _pipelines(case)) and read <= set(names)
    for entry in declared.entries:
        if knows_all and report.sound(entry.key) and entry.key.value not in read:
            report.add(entry.key, f"unused stream {entry.key.value!r}: the query does not read it")
    known = schemas(declared, report)
    for entry in _arrivals(case):
        name = str(entry.key.value)
        if name not in names:
            report.add(entry.key, unknown("stream", name, names))
        elif name in known and report.sound(entry.value):
            check_values(entry.value, known[name], report)


def _read(case: Node) -> Iterator[tuple[SourceLocation, str]]:
    """The streams that the query and the queries of later restarts read."""
    for pipeline in _pipelines(case):
        yield from _in_pipeline(pipeline)


def _pipelines(case: Node) -> Iterator[Node | None]:
    yield child(case, "query")
    for step in items_of(child(case, "steps")):
        changed = child(child(child(step, "restart"), "change"), "query")
        if changed is not None:
            yield changed


def _in_pipeline(pipeline: Node | None) -> Iterator[tuple[SourceLocation, str]]:
    for operation in items_of(pipeline):
        stream = child(operation, "from")
        name = text_of(stream)
        if stream is not None and name is not None:
            yield stream, name
        for key in _NESTED:
            yield from _in_pipeline(child(operation, key))


def _arrivals(case: Node) -> Iterator[Entry]:
    for step in items_of(child(case, "steps")):
        yield from entries_of(child(step, "add"))
        yield from entries_of(child(child(step, "restart"), "add"))
        for entry in items_of(child(step, "backlog")):
            yield from entries_of(entry)
