"""Checks expected rows and state against the query: finds what no engine could ever answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.core.query import STATEFUL
from conformance.core.values import NotAValue, canonical
from conformance.core.wording import counted
from conformance.language.node import Entries, Items, Node, Scalar, child, entries_of, inside, items_of, text_of
from conformance.language.pipelines import nested_pipelines
from conformance.language.problem import Report
from conformance.language.query_columns import Columns
from conformance.language.shape import literal
from conformance.language.step_checks import step_number
from conformance.language.suggest import unknown


@dataclass(frozen=True)
class _Expected:
    """An expectation of a step, in the steps or in ``differs``."""

    node: Node
    query: int
    """The query of the case that the step runs, from 0."""
    complete: bool
    """Whether the step runs in complete mode."""


def check_expected_rows(case: Node, columns: Mapping[int, Columns | None], report: Report) -> None:
    """Expected rows must have the columns of their query, and must not contradict the rows of their own batches.

    Args:
        case: the document.
        columns: number of a query of the case → the columns of its result, None if unknown.
        report: where problems go.
    """
    first: dict[int, Items] = {}
    operators = [_most_operators(query) for query in _queries(case)]
    for expected in _expectations(case):
        known = columns.get(expected.query)
        for row in _rows(expected.node):
            if known is not None:
                _check_row(row, known, report)
            elif isinstance(row, Items):
                _check_like_the_first(row, first.setdefault(expected.query, row), report)
        _check_rows_of_batches(expected, report)
        _check_counts_of_operators(expected, operators[expected.query], report)
        _check_state_of_the_last_batch(expected.node, report)


def _queries(case: Node) -> Iterator[Node | None]:
    yield child(case, "query")
    for step in items_of(child(case, "steps")):
        changed = child(child(child(step, "restart"), "change"), "query")
        if changed is not None:
            yield changed


def _expectations(case: Node) -> Iterator[_Expected]:
    steps = items_of(child(case, "steps"))
    query, mode, found = 0, text_of(child(case, "outputMode")), []
    for step in steps:
        change = child(child(step, "restart"), "change")
        query += child(change, "query") is not None
        mode = text_of(child(change, "outputMode")) or mode
        found.append((query, mode == "complete"))
        if (expect := child(step, "expect")) is not None:
            yield _Expected(expect, *found[-1])
    for entry in items_of(child(case, "differs")):
        for changed in entries_of(child(entry, "steps")):
            number = step_number(changed.key.value, steps)
            if number is not None:
                yield _Expected(changed.value, *found[number - 1])


def _rows(expect: Node) -> Iterator[Node]:
    yield from items_of(child(expect, "rows"))
    for batch in items_of(child(expect, "batches")):
        yield from items_of(child(batch, "rows"))


def _check_row(row: Node, columns: Columns, report: Report) -> None:
    names = [column.name or "?" for column in columns]
    if not isinstance(row, Items | Entries):
        return
    plain: Any = row.plain()
    if isinstance(row, Items) and len(row.items) != len(columns):
        has = f"this row has {counted(len(row.items), 'value')}"
        report.add(row, f"{has}, but the query has {counted(len(columns), 'column')}: {', '.join(names)}")
        return
    if isinstance(row, Entries) and "?" not in names:
        for entry in row.entries:
            if str(entry.key.value).lower() not in {name.lower() for name in names}:
                report.add(entry.key, unknown("column", str(entry.key.value), names))
    if len(set(names)) < len(names) and isinstance(row, Entries):
        return
    for index, column in enumerate(columns):
        step = column.name if isinstance(plain, dict) else index
        if column.type is None or (isinstance(plain, dict) and step not in plain):
            continue
        try:
            canonical(plain[step], column.type)
        except NotAValue as wrong:
            report.add(inside(row, (step, *wrong.path)), f"column {column.name!r}: {wrong}")


def _check_like_the_first(row: Items, first: Items, report: Report) -> None:
    """Where the columns are unknown, the rows must at least agree with each other."""
    if len(row.items) != len(first.items):
        has = f"this row has {counted(len(row.items), 'value')}"
        report.add(row, f"{has}, but the row expected in line {first.line} has {len(first.items)}")


def _check_rows_of_batches(expected: _Expected, report: Report) -> None:
    """`rows` are those of all batches, in complete mode those of the last one."""
    rows, batches = child(expected.node, "rows"), child(expected.node, "batches")
    if not isinstance(rows, Items) or not isinstance(batches, Items) or not batches.items:
        return
    counted_batches = batches.items[-1:] if expected.complete else batches.items
    of_batches = [child(batch, "rows") for batch in counted_batches]
    listed = [row for one in of_batches for row in items_of(one)]
    all_listed = all(isinstance(one, Items) for one in of_batches)
    where = "the last of `batches` has" if expected.complete else "its `batches` have"
    if len(listed) > len(rows.items) or (all_listed and len(listed) < len(rows.items)):
        report.add(rows, f"`rows` has {counted(len(rows.items), 'row')}, but {where} {len(listed)}: both cannot hold")
    elif all_listed and (other := _only_in(rows.items, listed)) is not None:
        report.add(other, f"`rows` has this row, but {where} other values: both cannot hold")


def _check_counts_of_operators(expected: _Expected, most: int | None, report: Report) -> None:
    """A list per operator is not longer than the query has operators."""
    for place in (expected.node, *items_of(child(expected.node, "batches"))):
        for key in ("dropped", "state"):
            counts = child(place, key)
            if isinstance(counts, Items) and most is not None and len(counts.items) > most:
                has = "no stateful operator" if most == 0 else f"at most {counted(most, 'stateful operator')}"
                report.add(counts, f"`{key}` lists {counted(len(counts.items), 'operator')}, but the query has {has}")


def _check_state_of_the_last_batch(expected: Node, report: Report) -> None:
    """The state after a step is that after its last batch."""
    state, batches = child(expected, "state"), items_of(child(expected, "batches"))
    last = child(batches[-1], "state") if batches else None
    if state is None or last is None or not (report.is_valid(state) and report.is_valid(last)):
        return
    one, other = state.plain(), last.plain()
    if isinstance(one, list) and isinstance(other, int):
        one = sum(one)
    elif isinstance(one, int) and isinstance(other, list):
        other = sum(other)
    if one != other:
        report.add(
            state,
            f"`state` is {literal(state)}, but after the last of `batches` it is {literal(last)}: both cannot hold",
        )


def _only_in(rows: tuple[Node, ...], others: list[Node]) -> Node | None:
    """A row with a number that no row of the others has in its place; texts may be times in another notation."""
    lists = [one.items for one in (*rows, *others) if isinstance(one, Items)]
    if len(lists) < len(rows) + len(others):
        return None
    for index in range(min(map(len, lists), default=0)):
        column = [row[index] for row in lists]
        if not all(map(_is_number, column)):
            continue
        left = Counter(node.plain() for node in column[: len(rows)])
        left.subtract(node.plain() for node in column[len(rows) :])
        for row, node in zip(rows, column, strict=False):
            if left[node.plain()] > 0:
                return row
    return None


def _is_number(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _most_operators(query: Node | None) -> int | None:
    """How many stateful operators a query can have at most; None if SQL or code may bring any number."""
    most = 0
    for operation in items_of(query):
        name = next((str(entry.key.value) for entry in entries_of(operation)), "")
        if name in ("sql", "call"):
            return None
        most += name in STATEFUL
        for other in nested_pipelines(operation):
            nested = _most_operators(other)
            if nested is None:
                return None
            most += nested
    return most
