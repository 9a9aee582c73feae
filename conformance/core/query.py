"""The operations of a query, each named after its DataFrame method."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = Any

STATE_FUNCTIONS = ("count_until_watermark", "count_until_watermark_by_datetime", "count_rows", "time_out_at_latest")
"""The functions that ``applyInPandasWithState`` may name, implemented in ``harness/driver/state_functions.py``."""

STATEFUL_PROCESSORS = (
    "count_until_watermark",
    "number_rows",
    "number_rows_an_hour_back",
    "number_rows_for_a_day",
    "number_rows_for_a_millisecond",
)
"""The processors that ``transformWithState`` may name, implemented in ``harness/driver/stateful_processors.py`` and, over rows, in
``row_processors.py``."""

PYTHON_STATE = frozenset({"applyInPandasWithState", "transformWithState"})
"""Operations whose state is managed by Python code."""

OPAQUE = frozenset({"sql", "call"})
"""Operations whose SQL or code is not analysed: they may keep state."""

STATEFUL = (
    PYTHON_STATE | OPAQUE | {"groupBy", "join", "distinct", "dropDuplicates", "dropDuplicatesWithinWatermark", "limit"}
)
"""Operations that keep state between micro-batches, or may."""

_DIRECTION = re.compile(r"\s+(?P<direction>asc|desc)(\s+nulls\s+(?P<nulls>first|last))?\s*$", re.IGNORECASE)


class SortOrder(NamedTuple):
    """An item of ``orderBy``: ``total DESC NULLS LAST``."""

    expression: str
    ascending: bool
    nulls_first: bool


def sort_order(text: str) -> SortOrder:
    """What an item of ``orderBy`` says; without a direction it is ascending, and null is the smallest value, as in Spark."""
    found = _DIRECTION.search(text)
    if found is None:
        return SortOrder(text, ascending=True, nulls_first=True)
    ascending = found["direction"].lower() == "asc"
    nulls_first = ascending if found["nulls"] is None else found["nulls"].lower() == "first"
    return SortOrder(text[: found.start()], ascending, nulls_first)


@dataclass(frozen=True)
class Operation:
    """One operation. ``name`` is its first key; ``arguments`` are all its keys, structured like the YAML."""

    name: str
    arguments: dict[str, Json]
    nested: tuple[Pipeline, ...] = ()
    """The other side of a ``join`` or ``union``, and the ``views`` of ``sql`` in the order of their names."""

    @property
    def may_keep_state(self) -> bool:
        return self.name in STATEFUL


@dataclass(frozen=True)
class Pipeline:
    """Operations in order; the first is ``from``."""

    operations: tuple[Operation, ...]

    def walk(self) -> Iterator[Operation]:
        """Every operation, including those of nested pipelines."""
        for operation in self.operations:
            yield operation
            for nested in operation.nested:
                yield from nested.walk()

    def streams(self) -> frozenset[str]:
        """The streams that it reads."""
        return frozenset(operation.arguments["from"] for operation in self.walk() if operation.name == "from")

    def wire(self) -> list[dict[str, Json]]:
        """Structured like the YAML, with nested pipelines inside their operations, as the driver reads it."""
        return [operation.arguments for operation in self.operations]
