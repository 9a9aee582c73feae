"""Times as the case writes them: ``12:05``, or 100 for the hundredth second.

A page that says "the window 100 – 110" in its title must not say 00:01:40 in its picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from conformance.core.case import Case
from conformance.core.spark_types import DataType
from conformance.core.values import NotAValue, canonical, show
from reports.analysis.step_lines import Line
from reports.analysis.step_table import Block, StepTable

_WRITTEN = re.compile(r"\d\d?:\d\d|\d{4}-\d\d-\d\d")
_SHOWN = re.compile(r"(?<![\w:.+-])(?:\d{4}-\d\d-\d\d )?\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?!\w|:\d)")
_NOT_ROWS = ("name", "watermark", "event_time", "progress", "change")
_TIMESTAMP = DataType("timestamp")
_SECOND = 1_000_000
_LAST = 1_000_000_000 * _SECOND
"""In 2001. A number of more digits says less than a date; nobody writes one by hand."""


@dataclass(frozen=True)
class TimeNotation:
    """How a page writes the times of one case."""

    in_seconds: bool = False
    """Whether times are numbers of seconds since 1970, else times of day."""

    @classmethod
    def of(cls, case: Case | None) -> TimeNotation:
        """Seconds, if the streams have times and no value of a row is a date or a time of day."""
        if case is None or not any("timestamp" in schema.ddl.lower() for schema in case.streams.values()):
            return cls()
        said = _texts(step.model_dump() for step in case.steps)
        return cls(not any(map(_WRITTEN.search, said)))

    def show(self, micros: int) -> str:
        """An instant (µs since the epoch)."""
        if not self.in_seconds or abs(micros) >= _LAST:
            return show(micros)
        return f"{(Decimal(micros) / _SECOND).normalize():f}"

    def text(self, text: str) -> str:
        """A text of the report, with its times in this notation.

        No value of a case in seconds looks like a time of day, so whatever does is a time that the report wrote.
        """
        return _SHOWN.sub(self._instant, text) if self.in_seconds else text

    def table(self, table: StepTable | None) -> StepTable | None:
        """A step table with its times in this notation; what they are in full stays."""
        if table is None or not self.in_seconds:
            return table
        steps = (replace(step, blocks=tuple(map(self._block, step.blocks))) for step in table.steps)
        return replace(table, steps=tuple(steps))

    def _block(self, block: Block) -> Block:
        return replace(block, sides=tuple(tuple(map(self._line, side)) for side in block.sides))

    def _line(self, line: Line) -> Line:
        return replace(line, values=tuple(replace(one, text=self.text(one.text)) for one in line.values))

    def _instant(self, found: re.Match[str]) -> str:
        try:
            micros = canonical(found[0], _TIMESTAMP)
        except NotAValue:
            return found[0]
        return self.show(micros) if isinstance(micros, int) else found[0]


def _texts(value: object) -> Iterator[str]:
    """Every text in a step but those that are not in its rows."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if key not in _NOT_ROWS:
                yield from (*_texts(key), *_texts(one))
    elif isinstance(value, Iterable):
        for one in value:
            yield from _texts(one)
