"""The features that a query uses, in the terms users would filter by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conformance.core.case import Case, Restart

_JOINS = {
    "inner": "inner join",
    "leftouter": "outer join",
    "rightouter": "outer join",
    "fullouter": "outer join",
    "leftsemi": "semi join",
}
_OPERATORS = {
    "dropDuplicates": "deduplication",
    "dropDuplicatesWithinWatermark": "deduplication",
    "distinct": "deduplication",
    "applyInPandasWithState": "arbitrary state",
    "transformWithState": "arbitrary state",
    "union": "union",
    "sql": "SQL",
}
_STATEFUL = ("groupBy", "join", "applyInPandasWithState", "transformWithState", "distinct")
_WINDOW = re.compile(r"(?<!_)\bwindow\s*\(")


def features(case: Case) -> tuple[str, ...]:
    """In a fixed order, each once."""
    return tuple(dict.fromkeys(_features(case)))


def _features(case: Case) -> Iterator[str]:
    yield f"{case.output_mode} mode"
    operations = [*case.operations()]
    text = repr([operation.arguments for operation in operations])
    if any(operation.name == "groupBy" for operation in operations):
        yield "window aggregation" if _WINDOW.search(text) else "aggregation"
    if "session_window" in text:
        yield "session windows"
    for operation in operations:
        if operation.name == "join":
            yield _JOINS.get(str(operation.arguments.get("how", "inner")).lower().replace("_", ""), "join")
    yield from (_OPERATORS[operation.name] for operation in operations if operation.name in _OPERATORS)
    stateful = [op for op in case.query.walk() if op.name in _STATEFUL or op.name.startswith("dropDuplicates")]
    if len(stateful) > 1:
        yield "chained operators"
    if sum(operation.name == "withWatermark" for operation in case.query.walk()) > 1:
        yield "several watermarks"
    if any("rocksdb" in str(value).lower() for value in case.conf.values()) or "rocksdb" in case.tags:
        yield "RocksDB"
    if any(isinstance(step.action, Restart) for step in case.steps):
        yield "restart"
    if case.trigger != "default":
        yield f"trigger {case.trigger}"
