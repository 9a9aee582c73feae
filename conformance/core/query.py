"""The operations of a query: each is named after the DataFrame method it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = Any

STATE_FUNCTIONS = ("count_until_watermark", "count_until_watermark_by_datetime", "count_rows", "time_out_at_latest")
"""The functions that ``applyInPandasWithState`` may name; ``harness/driver/state_functions.py`` says what each does."""

STATEFUL_PROCESSORS = ("count_until_watermark", "number_rows", "number_rows_an_hour_back")
"""The processors that ``transformWithState`` may name; ``harness/driver/stateful_processors.py`` says what each does."""

STATEFUL = frozenset(
    {
        "groupBy",
        "join",
        "distinct",
        "dropDuplicates",
        "dropDuplicatesWithinWatermark",
        "applyInPandasWithState",
        "transformWithState",
        "sql",
        "call",
    }
)
"""Operations that hold rows from one micro-batch to the next, or may: what SQL and code do is not looked into."""

NOT_YET_RUNNABLE: tuple[str, ...] = ()
"""Operations that the language has and no runtime can carry out."""


@dataclass(frozen=True)
class Operation:
    """One operation. ``name`` is its first key; ``arguments`` are all its keys, in the shape of the YAML."""

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
        """Every operation, those of nested pipelines too."""
        for operation in self.operations:
            yield operation
            if operation.nested is not None:
                yield from operation.nested.walk()

    def streams(self) -> frozenset[str]:
        """The streams that are read."""
        return frozenset(operation.arguments["from"] for operation in self.walk() if operation.name == "from")

    def not_yet_runnable(self) -> Iterator[str]:
        return (operation.name for operation in self.walk() if operation.name in NOT_YET_RUNNABLE)

    def wire(self) -> list[dict[str, Json]]:
        """In the shape of the YAML, nested pipelines inside their operation: what the driver reads."""
        return [operation.arguments for operation in self.operations]
