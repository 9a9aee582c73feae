"""The operations of a query, each named after its DataFrame method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = Any

STATE_FUNCTIONS = ("count_until_watermark", "count_until_watermark_by_datetime", "count_rows", "time_out_at_latest")
"""The functions that ``applyInPandasWithState`` may name, implemented in ``harness/driver/state_functions.py``."""

STATEFUL_PROCESSORS = ("count_until_watermark", "number_rows", "number_rows_an_hour_back")
"""The processors that ``transformWithState`` may name, implemented in ``harness/driver/stateful_processors.py``."""

PYTHON_STATE = frozenset({"applyInPandasWithState", "transformWithState"})
"""Operations whose state is managed by Python code."""

OPAQUE = frozenset({"sql", "call"})
"""Operations whose SQL or code is not analysed: they may keep state."""

STATEFUL = PYTHON_STATE | OPAQUE | {"groupBy", "join", "distinct", "dropDuplicates", "dropDuplicatesWithinWatermark"}
"""Operations that keep state between micro-batches, or may."""


@dataclass(frozen=True)
class Operation:
    """One operation. ``name`` is its first key; ``arguments`` are all its keys, structured like the YAML."""

    name: str
    arguments: dict[str, Json]
    nested: Pipeline | None = None
    """The other side of a ``join`` or ``union``."""

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
            if operation.nested is not None:
                yield from operation.nested.walk()

    def streams(self) -> frozenset[str]:
        """The streams that it reads."""
        return frozenset(operation.arguments["from"] for operation in self.walk() if operation.name == "from")

    def wire(self) -> list[dict[str, Json]]:
        """Structured like the YAML, with nested pipelines inside their operations, as the driver reads it."""
        return [operation.arguments for operation in self.operations]
