"""Rows that are expected: as long as a query stays the same, all have as many columns."""

from __future__ import annotations

from conformance.language.node import Items, Node, child, entries_of, items_of
from conformance.language.problem import Report
from conformance.language.step_checks import step_number


def check_widths(case: Node, report: Report) -> None:
    steps = items_of(child(case, "steps"))
    first: dict[int, Items] = {}
    query_of = _query_of(steps)
    for number, step in enumerate(steps, 1):
        _check(child(step, "expect"), query_of[number], first, report)
    for entry in items_of(child(case, "differs")):
        for change in entries_of(child(entry, "steps")):
            changed = step_number(change.key.value, steps)
            if changed is not None:
                _check(change.value, query_of[changed], first, report)


def _query_of(steps: tuple[Node, ...]) -> dict[int, int]:
    """Number of a step → which of the case's queries it runs, from 0."""
    found: dict[int, int] = {}
    query = 0
    for number, step in enumerate(steps, 1):
        query += child(child(child(step, "restart"), "change"), "query") is not None
        found[number] = query
    return found


def _check(expect: Node | None, query: int, first: dict[int, Items], report: Report) -> None:
    rows = list(items_of(child(expect, "rows")))
    for batch in items_of(child(expect, "batches")):
        rows += items_of(child(batch, "rows"))
    for row in rows:
        if not isinstance(row, Items):
            continue
        model = first.setdefault(query, row)
        if len(row.items) != len(model.items):
            has = f"this row has {len(row.items)} value{'s' * (len(row.items) != 1)}"
            report.add(row, f"{has}, the one expected in line {model.line} has {len(model.items)}")
