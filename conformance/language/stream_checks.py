"""What the streams of a case must agree on: declared, read and added to, with rows of their schema; and what memory can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.core.data import Json
from conformance.core.spark_types import DataType, Schema
from conformance.core.values import NotAValue, canonical
from conformance.core.wording import counted
from conformance.language.pipelines import operations_in, queries_of
from conformance.language.source import (
    Entries,
    Entry,
    Items,
    Node,
    Report,
    Scalar,
    SourceLocation,
    child,
    entries_of,
    inside,
    items_of,
    text_of,
    unknown,
)
from conformance.language.steps import triggers_of
from conformance.language.streams import KAFKA, MEMORY, rows_of, schemas

REAL_TIME = "realTime"


def check_memory(case: Node, report: Report) -> None:
    """Report memory streams without a real-time trigger, and actions that they do not support."""
    streams = entries_of(child(case, "streams"))
    in_memory = {str(one.key.value): one.value for one in streams if text_of(child(one.value, "source")) == MEMORY}
    triggers = triggers_of(case)
    if in_memory and REAL_TIME not in triggers:
        for stream in in_memory.values():
            report.add(
                child(stream, "source") or stream, "`source: memory` is for a case with `trigger: realTime`: add it"
            )
    if REAL_TIME in triggers and isinstance(case, Entries) and case.get("sink") is not None:
        report.add(case.key("sink"), "real-time mode has no `foreachBatch`, which `sink` is: remove it")
    for step in items_of(child(case, "steps")):
        for entry in entries_of(child(step, "add")):
            placed = child(entry.value, "partitions")
            if str(entry.key.value) in in_memory and placed is not None:
                report.add(placed, "a stream in memory has one partition: write its rows as a list")
        restart = child(step, "restart")
        if in_memory and "kill" in (text_of(restart), text_of(child(restart, "how"))):
            report.add(
                restart or step, "rows in memory are gone with the engine's process: a case with them cannot `kill` it"
            )
        if (in_memory or REAL_TIME in triggers) and isinstance(step, Entries) and step.get("backlog") is not None:
            message = "a real-time micro-batch reads whatever arrives while it runs: use one `add` per entry"
            report.add(step.key("backlog"), message)


def check_streams(case: Node, report: Report) -> None:
    declared = child(case, "streams")
    if not isinstance(declared, Entries):
        return
    names = [str(entry.key.value) for entry in declared.entries]
    read: set[str] = set()
    queries = [query for query, _ in queries_of(case)]
    for place, name in (one for query in queries for one in _streams_in(query)):
        read.add(name)
        if name not in names:
            report.add(place, unknown("stream", name, names))
    # An invalid query, or one that reads an undeclared stream, may well mean a stream that looks unused.
    all_known = all(map(report.is_valid, queries)) and read <= set(names)
    for entry in declared.entries:
        if all_known and report.is_valid(entry.key) and entry.key.value not in read:
            report.add(entry.key, f"unused stream {entry.key.value!r}: no query reads it")
    known = schemas(declared, report)
    _check_topics(case, declared, report)
    for entry in _arrivals(case):
        name = str(entry.key.value)
        if name not in names:
            report.add(entry.key, unknown("stream", name, names))
        elif name in known and report.is_valid(entry.value):
            for row in rows_of(entry.value):
                _check_row(row, known[name], report)
            _check_records(case, entry, child(declared, name), known[name], report)


def _streams_in(pipeline: Node | None) -> Iterator[tuple[SourceLocation, str]]:
    """The streams that a pipeline reads."""
    for operation in operations_in(pipeline):
        for stream in (child(operation, "from"), *items_of(child(operation, "with"))):
            if stream is not None and (name := text_of(stream)) is not None:
                yield stream, name


def _arrivals(case: Node) -> Iterator[Entry]:
    for step in items_of(child(case, "steps")):
        yield from entries_of(child(step, "add"))
        yield from entries_of(child(step, "restart", "add"))
        for entry in items_of(child(step, "backlog")):
            yield from entries_of(entry)


def _check_row(row: Node, schema: Schema, report: Report) -> None:
    names = [field.name for field in schema.fields]
    if isinstance(row, Entries):
        given = {entry.key.value: entry.key for entry in row.entries}
        for name in given.keys() - set(names):
            report.add(given[name], unknown("column", str(name), names))
        if missing := [name for name in names if name not in given]:
            what = "column" if len(missing) == 1 else "columns"
            report.add(row, f"this row lacks the {what} {', '.join(missing)}; write null for a missing value")
    check_values(row, [(field.name, field.type) for field in schema.fields], "its schema", report)


def check_values(row: Node, columns: Sequence[tuple[str, DataType | None]], whose: str, report: Report) -> None:
    """Report a wrong number of values in a row, and values that do not match the type of their column, if that is known."""
    if isinstance(row, Scalar):
        return
    if isinstance(row, Items) and len(row.items) != len(columns):
        has = f"this row has {counted(len(row.items), 'value')}"
        names = ", ".join(name or "?" for name, _ in columns)
        report.add(row, f"{has}, but {whose} has {counted(len(columns), 'column')}: {names}")
        return
    plain: Json = row.plain()
    for index, (name, type) in enumerate(columns):
        step = name if isinstance(row, Entries) else index
        if type is None or (isinstance(row, Entries) and step not in plain):
            continue
        try:
            canonical(plain[step], type)
        except NotAValue as wrong:
            report.add(inside(row, (step, *wrong.path)), f"column {name!r}: {wrong}")


def _check_topics(case: Node, declared: Entries, report: Report) -> None:
    """Restarts that change a topic where there is none."""
    topics = {str(one.key.value) for one in declared.entries if text_of(child(one.value, "source")) == KAFKA}
    for step in items_of(child(case, "steps")):
        for grown in entries_of(child(step, "restart", "change", "partitions")):
            if grown.key.value not in topics:
                report.add(grown.key, f"{grown.key.value!r} is not a stream with `source: kafka`")
        aged = child(step, "restart", "agedOut")
        if aged is not None and not topics:
            report.add(aged, "no stream has `source: kafka`, whose records could be gone")


def _partitions(case: Node, stream: str, declared: Node | None) -> int:
    """Of the topic of a stream, in the end."""
    found = [child(declared, "partitions")]
    found += [child(step, "restart", "change", "partitions", stream) for step in items_of(child(case, "steps"))]
    return max((one.value for one in found if isinstance(one, Scalar) and isinstance(one.value, int)), default=1)


def _check_records(case: Node, arrival: Entry, stream: Node | None, schema: Schema, report: Report) -> None:
    """Rows that cannot be records of the stream's topic, if it has one."""
    if text_of(child(stream, "source")) != KAFKA:
        return
    arriving, partitions = arrival.value, _partitions(case, str(arrival.key.value), stream)
    placed = items_of(child(arriving, "partitions"))
    if len(placed) > partitions:
        has = f"the topic has {counted(partitions, 'partition')}"
        message = f"{has}, these rows are in {len(placed)}; write `partitions: {len(placed)}`"
        report.add(placed[partitions], message)
    names = [field.name for field in schema.fields]
    column = text_of(child(stream, "timestamp"))
    if column not in names:
        return
    place = names.index(column)
    for row in rows_of(arriving):
        value = child(row, column) if isinstance(row, Entries) else next(iter(items_of(row)[place:]), None)
        try:
            micros = canonical(value.plain(), schema.fields[place].type) if value else None
        except NotAValue:  # reported where values are checked
            continue
        if not isinstance(micros, int) or micros < 0 or micros % 1000:
            report.add(value or row, "a record's timestamp is a whole number of milliseconds from 1970 on")
