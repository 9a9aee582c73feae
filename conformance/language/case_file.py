"""A Spark case: its top-level keys, how a document becomes a ``Case``, and what several places of it must agree on.

Streams are declared and read, rows that arrive and that are expected fit their columns, and a case that drives the clock of its query does
nothing that needs another.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import get_args

from conformance.core.case import TABLE_FORMATS, WRITTEN_SINKS, Case, Strength
from conformance.core.data import Json, read_data, text_digest
from conformance.core.operations import Opaque
from conformance.core.roles import Role
from conformance.core.spark_types import DataType, Schema
from conformance.core.values import NotAValue, canonical
from conformance.core.versions import VersionRange
from conformance.core.wording import counted, unknown
from conformance.language import pipelines
from conformance.language import source as nodes
from conformance.language import steps as of_steps
from conformance.language import version_differences as versions
from conformance.language.catalogue import DESCRIPTIONS, Catalogue, check_catalogue_ids
from conformance.language.permission import check_confs, needs_code
from conformance.language.pipelines import kind_of, operations_in, parts_of, queries_of, settings_of, with_lists
from conformance.language.query_checks import Columns, check_queries
from conformance.language.shape import ByKind, Choice, Converted, Key, ListOf, Record, Shape, Text, literal
from conformance.language.source import Entries, Items, Node, ProblemReport, child, entries_of, items_of, text_of
from conformance.language.steps import is_driven, step_numbers, triggers_of
from conformance.language.streams import KAFKA, MEMORY, STREAMS, rows_of, schemas, with_sources


def _ids(item: Shape, kind: str) -> ListOf:
    return ListOf(item, kind, at_least=1, distinct=True)


_REASONS = {name: Key(Text("a reason"), f"Why the result may change if {what}.") for name, what in DESCRIPTIONS.items()}
_NOT = Key(Record("`not`", _REASONS, at_least=1), "variant name → why it may change the result", required=True)
_VARIANTS = Record("`variants`", {"not": _NOT})

_TEST = r"T[0-9]{3}(\.[0-9]+)?"
_MIRRORED = Text("a statement (S21) or a Spark test (T044)", rf"^(S[0-9]{{2}}|{_TEST})$")
_MIRROR = ByKind(
    _MIRRORED.kind,
    scalar=Converted(_MIRRORED, lambda written: {"id": written}),
    entries=Record(
        "a mirror",
        {
            "test": Key(
                Text("a Spark test (T044)", rf"^{_TEST}$"), "the Spark test that is re-expressed in part", True, "id"
            ),
            "partly": Key(Text("what is lost"), "which of its assertions no case carries, and why", True),
        },
    ),
)

CASE = Record(
    "a case",
    {
        "title": Key(Text("a title"), "one sentence that states the conforming behaviour", required=True),
        "behaviour": Key(
            _ids(Text("the id of a behaviour, such as late-predicate", r"^\S+$"), "a list of behaviour ids"),
            "Ids of the behaviours it tests, from behaviours.yaml. Required in a suite.",
        ),
        "strength": Key(
            Choice("strength", get_args(Strength)),
            "`documented`: promised by one of `links`. `observed`: true today, but not documented.",
        ),
        "links": Key(
            _ids(versions.LINK, "a list of links"), "Tickets (SPARK-18124) or URLs that document the behaviour."
        ),
        "why": Key(Text("Markdown"), "The explanation, in Markdown, for the report."),
        "spark": Key(versions.RANGE, "The versions the case applies to, a PEP 440 range; every version if absent."),
        "mirrors": Key(
            _ids(_MIRROR, "a list of ids"),
            "What it re-expresses: founding statements (S21), Spark's own tests (T044, or `{test: T044, partly: what is lost}`).",
        ),
        "tags": Key(
            _ids(Text("a tag such as smoke", r"^[a-z0-9]+(-[a-z0-9]+)*$"), "a list of tags"),
            "Words for selecting cases.",
        ),
        "streams": Key(STREAMS, "stream name → DDL schema, or {schema: …, source: kafka}", required=True),
        "query": Key(pipelines.PIPELINE, "the pipeline under test", required=True),
        "outputMode": Key(of_steps.OUTPUT_MODE, "Spark's output mode; `append` if absent."),
        "trigger": Key(
            of_steps.FIRST_TRIGGER,
            "As fast as possible (`default`), `once`, `availableNow`, `realTime` (4.2+ in Python), or `{processingTime: 10 seconds}` "
            "(3.4+), by a clock that starts at 0 and that only `advance` moves.",
        ),
        "sink": Key(
            Text(
                f"{', '.join(WRITTEN_SINKS)} or module:function",
                f"^(?:{'|'.join(WRITTEN_SINKS)})$|{pipelines.FUNCTION.pattern}",
            ),
            "`files` (Parquet), `delta` or `iceberg`: the query writes there, and its rows are what a reader of it finds. "
            "`module:function`: your own `function(DataFrame, batch_id)`, as for `foreachBatch`, that writes each micro-batch, "
            "of which the rows that it reads are captured, or `function(DataFrame)` that starts queries of its own; needs `--allow-code`.",
        ),
        "conf": Key(of_steps.CONF, "Spark SQL confs of this case; numbers and booleans reach Spark as strings."),
        "steps": Key(of_steps.STEPS, "what happens, in order", required=True),
        "differs": Key(versions.DIFFERS, "Versions that behave differently, with the reason."),
        "variants": Key(
            Converted(_VARIANTS, lambda variants: variants["not"]),
            "Variants that may change the result, each with the reason: `{not: {name: reason}}`.",
        ),
        "upgrades": Key(
            versions.UPGRADES, "Pairs of versions where the second does not simply resume the checkpoint of the first."
        ),
    },
)


def case_of(node: Node | None, report: ProblemReport, id: str, catalogue: Catalogue | None) -> Case:
    """Read the case in a document, None if it could not be parsed; raise `InvalidCase` with every problem."""
    if node is not None:
        node = with_lists(node)
        CASE.check(node, report)
        check_streams(node, report)
        of_steps.check_steps(node, report)
        check_memory(node, report)
        check_written(node, report)
        check_clock(node, report)
        columns = check_queries(node, report)
        check_expected_rows(node, columns, report)
        check_confs(node, report)
        versions.check_differs(node, report)
        versions.check_upgrades(node, report)
        if catalogue is not None:
            check_catalogue_ids(node, report, catalogue)
            of_steps.check_errors(node, report)
    if node is None or report.problems:
        raise nodes.InvalidCase(report.problems)
    written: Json = node.plain()
    values = with_sources(CASE.value(written))
    if isinstance(values.get("trigger"), dict):
        values |= {**values["trigger"], "trigger": "processingTime"}
    numbers = {step["name"]: step["number"] for step in values["steps"] if "name" in step}
    for key in ("differs", "upgrades"):
        values[key] = versions.with_step_numbers(values.get(key, ()), numbers)
    values |= {"id": id, "path": report.path, "digest": digest(written), "lines": dict(lines_of(node))}
    values |= {"not_checked": [(line, reason) for line, _, reason in sorted(report.not_checked)]}
    case = Case.model_validate({**values, "row_files": frozenset(report.row_files), "needs_code": needs_code(node)})
    shared = catalogue.upgrades_of(id) if catalogue is not None else ()
    if not shared:
        return case
    # A refused checkpoint shows nothing else; then what the case says of versions comes first, what it says of any two last.
    of_versions = [entry for entry in case.upgrades if entry.from_ is not None or entry.to is not None]
    of_any = [entry for entry in case.upgrades if entry not in of_versions]
    refused = [entry for entry in shared if entry.error is not None]
    others = [entry for entry in shared if entry.error is None]
    return case.model_copy(update={"upgrades": (*refused, *of_versions, *others, *of_any)})


def digest(content: Json) -> str:
    """Return the digest of the content of a case; formatting, comments and the order of keys do not matter."""

    def with_text_keys(content: Json) -> Json:
        if isinstance(content, dict):
            return {str(key): with_text_keys(value) for key, value in content.items()}
        return [with_text_keys(item) for item in content] if isinstance(content, list) else content

    canonical = json.dumps(with_text_keys(content), sort_keys=True, ensure_ascii=False, default=str)
    return text_digest(canonical)


def lines_of(node: Node, above: str = "") -> Iterator[tuple[str, int]]:
    """Yield every top-level key, ``steps.3``, ``differs.1``, ``upgrades.1``, ``trace.1`` and the keys inside them: ``steps.3.expect``."""
    for entry in entries_of(node):
        path = f"{above}{entry.key.value}"
        yield path, entry.key.line
        if path in ("steps", "differs", "upgrades", "trace"):
            for number, item in enumerate(items_of(entry.value), 1):
                yield f"{path}.{number}", item.line
                yield from lines_of(item, f"{path}.{number}.")
        elif above and entry.key.value in ("expect", "steps"):
            yield from lines_of(entry.value, f"{path}.")


_TIMERS = {
    "applyInPandasWithState": ("timeout", "ProcessingTimeTimeout", "count_until_silent_for_ten_seconds"),
    "transformWithState": ("timeMode", "ProcessingTime", "count_until_watermark"),
}
"""An operation, the key and the value with which its timers are in processing time, and the function of the suite that sets some."""
_DRIVE = "write `trigger: {processingTime: 10 seconds}`, whose clock the steps `advance` move"
_POSSIBLE = VersionRange.parse(read_data("conformance.language", "driven_clock.yaml")["spark"])


def check_clock(case: Node, report: ProblemReport) -> None:
    """Report timers in processing time that no case drives, and what a case cannot do that drives the clock of its query."""
    steps = items_of(case, "steps")
    if not is_driven(case):
        for step in steps:
            report.forbid(step, "advance", f"`advance` moves the clock of a query that the case drives: {_DRIVE}")
        for operation in chain.from_iterable(operations_in(query) for query, _ in queries_of(case)):
            if (kind := kind_of(operation)) is not None and kind.name in _TIMERS:
                key, mode, function = _TIMERS[kind.name]
                timer = child(operation, kind.name, key)
                if timer and text_of(timer) == mode and text_of(operation, kind.name, "with") == function:
                    report.add(timer, f"when the timers of {function!r} fire is up to the clock: {_DRIVE}")
        return
    if any(version not in _POSSIBLE for version in versions.releases_in(case, report)):
        message = f'a case can drive the clock of its query on Spark {_POSSIBLE}: write `spark: "{_POSSIBLE}"`'
        report.add(child(case, "spark") or child(case, "trigger") or case, message)
    for stream in entries_of(case, "streams"):
        source = child(stream.value, "source")
        if source is not None and text_of(source) != "files":
            report.add(source, "a case that drives the clock of its query reads files: remove `source`")
    for step in steps:
        message = "no micro-batch runs in the step of a kill while the clock stands still: remove `at`"
        report.forbid(child(step, "restart"), "at", message)
        message = "a case drives the clock of its query with one trigger from beginning to end: remove `trigger`"
        report.forbid(child(step, "restart", "change"), "trigger", message)


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
