"""What the rows and the streams of a case must agree on: streams that are declared and read, rows that arrive and are expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from conformance.core.case import TABLE_FORMATS, WRITTEN_SINKS
from conformance.core.data import Json
from conformance.core.operations import Opaque
from conformance.core.roles import Role
from conformance.core.spark_types import DataType, Schema
from conformance.core.values import NotAValue, canonical
from conformance.core.wording import counted, unknown
from conformance.language import source as nodes
from conformance.language.pipelines import kind_of, operations_in, parts_of, queries_of, settings_of
from conformance.language.query_checks import Columns
from conformance.language.shape import literal
from conformance.language.source import Entries, Items, Node, ProblemReport, child, entries_of, items_of, text_of
from conformance.language.steps import step_numbers, triggers_of
from conformance.language.streams import KAFKA, MEMORY, rows_of, schemas


def check_memory(case: Node, report: ProblemReport) -> None:
    """Report memory streams without a real-time trigger, and actions that they do not support."""
    streams = {str(entry.key.value): child(entry.value, "source") for entry in entries_of(case, "streams")}
    in_memory = {name: source for name, source in streams.items() if source and text_of(source) == MEMORY}
    in_real_time = "realTime" in triggers_of(case)
    for source in () if in_real_time else in_memory.values():
        report.add(source, "`source: memory` is for a case with `trigger: realTime`: add it")
    if in_real_time:
        report.forbid(case, "sink", "real-time mode has no `foreachBatch`, which `sink` is: remove it")
    for step in items_of(case, "steps"):
        for entry in entries_of(step, "add"):
            placed = child(entry.value, "partitions")
            if str(entry.key.value) in in_memory and placed is not None:
                report.add(placed, "a stream in memory has one partition: write its rows as a list")
        restart = child(step, "restart")
        for entry in entries_of(restart, "recreated"):
            if str(entry.key.value) in in_memory:
                report.add(entry.key, "a stream in memory has no source that a restart could delete: remove it")
        if in_memory and "kill" in (text_of(restart), text_of(restart, "how")):
            message = "rows in memory are gone with the engine's process: a case with them cannot `kill` it"
            report.add(restart or step, message)
        if in_memory or in_real_time:
            message = "a real-time micro-batch reads whatever arrives while it runs: use one `add` per entry"
            report.forbid(step, "backlog", message)


def check_written(case: Node, report: ProblemReport) -> None:
    """Report kill points and output modes that a sink of Spark's own does not support, and damage to the log of a sink without one."""
    sink = text_of(case, "sink")
    for step in items_of(case, "steps"):
        restart = child(step, "restart")
        for damage in entries_of(restart, "damage"):
            if text_of(damage.value) == "sinkLog" and (sink != "files" or damage.key.value != "gone"):
                message = "only the log of `sink: files` can be `gone`: write `{gone: sinkLog}` with that sink"
                report.add(damage.value, message)
        at = child(restart, "at")
        if sink in WRITTEN_SINKS and at is not None and text_of(at) not in ("rest", "emitted"):
            message = f"with `sink: {sink}`, a kill is at `rest` or `emitted`: only these points show from outside"
            report.add(at, message)
    for mode in settings_of(case, "outputMode"):
        if sink in WRITTEN_SINKS and text_of(mode) == "update":
            other = " or complete" if sink != "files" else ""
            report.add(mode, f"`sink: {sink}` takes no updates: use append{other}")


def check_streams(case: Node, report: ProblemReport) -> None:
    declared = child(case, "streams")
    if not isinstance(declared, Entries):
        return
    names = [str(entry.key.value) for entry in declared.entries]
    read: set[str] = set()
    queries = [query for query, _ in queries_of(case)]
    for stream in chain.from_iterable(map(_streams_of, chain.from_iterable(map(operations_in, queries)))):
        if (name := text_of(stream)) is not None:
            read.add(name)
            if name not in names:
                report.add(stream, unknown("stream", name, names))
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


def _arrivals(case: Node) -> Iterator[nodes.Entry]:
    for step in items_of(case, "steps"):
        restarted = (child(step, "restart", key) for key in ("add", "recreated"))
        for arriving in (child(step, "add"), *restarted, *items_of(step, "backlog")):
            yield from entries_of(arriving)


def _check_row(row: Node, schema: Schema, report: ProblemReport) -> None:
    names = [field.name for field in schema.fields]
    if isinstance(row, Entries):
        given = {entry.key.value: entry.key for entry in row.entries}
        for name in given.keys() - set(names):
            report.add(given[name], unknown("column", str(name), names))
        if missing := [name for name in names if name not in given]:
            what = "column" if len(missing) == 1 else "columns"
            report.add(row, f"this row lacks the {what} {', '.join(missing)}; write null for a missing value")
    check_values(row, [(field.name, field.type) for field in schema.fields], "its schema", report)


def check_values(row: Node, columns: Sequence[tuple[str, DataType | None]], whose: str, report: ProblemReport) -> None:
    """Report a wrong number of values in a row, and values that do not match the type of their column, if that is known."""
    if isinstance(row, nodes.Scalar):
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
            report.add(nodes.inside(row, (step, *wrong.path)), f"column {name!r}: {wrong}")


def _check_topics(case: Node, declared: Entries, report: ProblemReport) -> None:
    """Report restarts that change a topic or a table where there is none, and a case with both."""
    sources = {str(entry.key.value): child(entry.value, "source") for entry in declared.entries}
    topics = {name for name, source in sources.items() if text_of(source) == KAFKA}
    tables = [source for source in sources.values() if source is not None and text_of(source) in TABLE_FORMATS]
    for step in items_of(case, "steps"):
        for grown in entries_of(step, "restart", "change", "partitions"):
            if grown.key.value not in topics:
                report.add(grown.key, f"{grown.key.value!r} is not a stream with `source: kafka`")
        aged = child(step, "restart", "agedOut")
        if aged is not None and not topics and not tables:
            message = "no stream has `source: kafka`, `delta` or `iceberg`, whose records could be gone"
            report.add(aged, message)
        changed = child(step, "restart", "rewritten")
        if changed is not None and "delta" not in map(text_of, tables):
            report.add(changed, "no stream has `source: delta`, whose rows could be written again")
        for altered in (*entries_of(step, "alter"), *entries_of(step, "restart", "alter")):
            if text_of(sources.get(str(altered.key.value))) not in TABLE_FORMATS:
                report.add(altered.key, f"{altered.key.value!r} is not a stream with `source: delta` or `iceberg`")
    for table in tables if topics else ():
        report.add(table, "a case reads topics or tables, not both: split it")


def _check_records(
    case: Node, arrival: nodes.Entry, stream: Node | None, schema: Schema, report: ProblemReport
) -> None:
    """Report rows that cannot be records of the stream's topic, if it has one."""
    if text_of(stream, "source") != KAFKA:
        return
    grown = ("restart", "change", "partitions", str(arrival.key.value))
    given = [child(stream, "partitions"), *(child(step, *grown) for step in items_of(case, "steps"))]
    counts = (node.value for node in given if isinstance(node, nodes.Scalar))
    partitions = max((count for count in counts if isinstance(count, int)), default=1)
    placed = items_of(arrival.value, "partitions")
    if len(placed) > partitions:
        has = f"the topic has {counted(partitions, 'partition')}"
        message = f"{has}, these rows are in {len(placed)}; write `partitions: {len(placed)}`"
        report.add(placed[partitions], message)
    names = [field.name for field in schema.fields]
    column = text_of(stream, "timestamp")
    if column not in names:
        return
    place = names.index(column)
    for row in rows_of(arrival.value):
        value = child(row, column) if isinstance(row, Entries) else next(iter(items_of(row)[place:]), None)
        try:
            micros = canonical(value.plain(), schema.fields[place].type) if value else None
        except NotAValue:  # reported where values are checked
            continue
        if not isinstance(micros, int) or micros < 0 or micros % 1000:
            report.add(value or row, "a record's timestamp is a whole number of milliseconds from 1970 on")


@dataclass(frozen=True)
class _Expected:
    """An expectation of a step, in the steps or in ``differs``."""

    node: Node
    query: int
    """The number of the query that the step runs, from 0."""
    complete: bool


def check_expected_rows(case: Node, columns: Sequence[Columns | None], report: ProblemReport) -> None:
    """Report expected rows without the ``columns`` of their query's result, if known, and those that contradict their own batches."""
    first: dict[int, tuple[int, int]] = {}
    operators = [_most_operators(query) for query, _ in queries_of(case)]
    for expected in _expectations(case):
        known = columns[expected.query]
        for row in _rows(expected.node):
            if known is not None:
                _check_expected_row(row, known, report)
            elif isinstance(row, Items):
                # Where the columns are unknown, the rows must at least agree with each other.
                line, length = first.setdefault(expected.query, (row.line, len(row.items)))
                if len(row.items) != length:
                    has = f"this row has {counted(len(row.items), 'value')}"
                    report.add(row, f"{has}, but the row expected in line {line} has {length}")
        _check_rows_of_batches(expected, report)
        _check_counts_of_operators(expected, operators[expected.query], report)
        _check_state_of_the_last_batch(expected.node, report)


def _expectations(case: Node) -> Iterator[_Expected]:
    steps = items_of(case, "steps")
    query, mode, ran = 0, text_of(case, "outputMode"), []
    for step in steps:
        change = child(step, "restart", "change")
        query += child(change, "query") is not None
        mode = text_of(change, "outputMode") or mode
        ran.append((query, mode == "complete"))
        if (expect := child(step, "expect")) is not None:
            yield _Expected(expect, *ran[-1])
    numbered = step_numbers(steps)
    for differing in chain.from_iterable(entries_of(entry, "steps") for entry in items_of(case, "differs")):
        if (number := numbered(differing.key.value)) is not None:
            yield _Expected(differing.value, *ran[number - 1])


def _rows(expect: Node) -> Iterator[Node]:
    for place in (expect, *items_of(expect, "batches")):
        yield from items_of(place, "rows")


def _check_expected_row(row: Node, columns: Columns, report: ProblemReport) -> None:
    names = [column.name for column in columns]
    if isinstance(row, Entries) and all(names):
        for entry in row.entries:
            if str(entry.key.value).lower() not in {name.lower() for name in names}:
                report.add(entry.key, unknown("column", str(entry.key.value), names))
    if isinstance(row, Items) or len({name or "?" for name in names}) == len(names):
        check_values(row, [(column.name, column.type) for column in columns], "the query", report)


def _check_rows_of_batches(expected: _Expected, report: ProblemReport) -> None:
    """Report `rows` that are not those of all batches, in complete mode of the last batch."""
    rows, batches = child(expected.node, "rows"), child(expected.node, "batches")
    if not isinstance(rows, Items) or not isinstance(batches, Items) or not batches.items:
        return
    of_batches = [child(batch, "rows") for batch in (batches.items[-1:] if expected.complete else batches.items)]
    listed = [*chain.from_iterable(map(items_of, of_batches))]
    all_listed = all(isinstance(batch_rows, Items) for batch_rows in of_batches)
    where = "the last of `batches` has" if expected.complete else "its `batches` have"
    if len(listed) > len(rows.items) or (all_listed and len(listed) < len(rows.items)):
        report.add(rows, f"`rows` has {counted(len(rows.items), 'row')}, but {where} {len(listed)}: both cannot hold")
    elif all_listed and (other := _only_in(rows.items, listed)) is not None:
        report.add(other, f"`rows` has this row, but {where} other values: both cannot hold")


def _check_counts_of_operators(expected: _Expected, most: int | None, report: ProblemReport) -> None:
    """Report a list per operator that is longer than the query has operators."""
    for place in (expected.node, *items_of(expected.node, "batches")):
        for key in ("dropped", "state"):
            counts = child(place, key)
            if isinstance(counts, Items) and most is not None and len(counts.items) > most:
                has = "no stateful operator" if most == 0 else f"at most {counted(most, 'stateful operator')}"
                report.add(counts, f"`{key}` lists {counted(len(counts.items), 'operator')}, but the query has {has}")


def _check_state_of_the_last_batch(expected: Node, report: ProblemReport) -> None:
    """Report a state after the step that is not that after its last batch."""
    state, batches = child(expected, "state"), items_of(expected, "batches")
    last = child(batches[-1], "state") if batches else None
    if state is None or last is None or not (report.is_valid(state) and report.is_valid(last)):
        return
    after_step, other = state.plain(), last.plain()
    if isinstance(after_step, list) != isinstance(other, list):
        after_step, other = (sum(counts) if isinstance(counts, list) else counts for counts in (after_step, other))
    if after_step != other:
        shown = f"`state` is {literal(state)}, but after the last of `batches` it is {literal(last)}"
        report.add(state, f"{shown}: both cannot hold")


def _only_in(rows: tuple[Node, ...], others: list[Node]) -> Node | None:
    """Return a row with a number that no row of the others has in its place; texts may be times in another notation."""
    lists = [row.items for row in (*rows, *others) if isinstance(row, Items)]
    if len(lists) < len(rows) + len(others):
        return None
    for column in zip(*lists, strict=False):
        if not all(isinstance(node, nodes.Scalar) and type(node.value) in (int, float) for node in column):
            continue
        left = Counter(node.plain() for node in column[: len(rows)])
        left.subtract(node.plain() for node in column[len(rows) :])
        for row, node in zip(rows, column, strict=False):
            if left[node.plain()] > 0:
                return row
    return None


def _most_operators(query: Node | None) -> int | None:
    """Return how many stateful operators a query can have at most; None if SQL or code may bring any number."""
    kinds = [*filter(None, map(kind_of, operations_in(query)))]
    return None if any(issubclass(kind, Opaque) for kind in kinds) else sum(kind.may_keep_state for kind in kinds)


def _streams_of(operation: Node) -> Iterator[Node]:
    """Yield the streams that an operation reads."""
    for part, node in parts_of(operation, Role.STREAM, Role.STREAMS):
        yield from (node,) if part.role is Role.STREAM else items_of(node)
