"""The windows that emitted rows belong to, from the output columns of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.core.observation import Row
from conformance.core.spark_types import DataType
from conformance.core.values import NotAValue, canonical
from conformance.judging.finding import cell
from conformance.judging.rows import INSTANTS, OutputSchema
from reports.analysis.model_fates import Span

_SHOWN = 14


@dataclass(frozen=True)
class WindowColumns:
    """The position of the window in a row: one column with two fields, or two columns."""

    places: tuple[int, ...]
    types: tuple[DataType, ...]

    @classmethod
    def of(cls, schema: OutputSchema) -> WindowColumns | None:
        """The first window among the columns; None if there is none."""
        for at, type_ in enumerate(schema.types):
            if [field.name for field in type_.fields] == ["start", "end"]:
                return cls((at,), (type_,))
        names = [name.lower() for name in schema.names]
        for at, name in enumerate(names):
            other = name.removesuffix("start") + "end"
            if name.endswith("start") and other in names:
                places = (at, names.index(other))
                types = tuple(schema.types[place] for place in places)
                if all(type_.name in INSTANTS for type_ in types):
                    return cls(places, types)
        return None

    def span(self, row: Row) -> Span | None:
        """The window of a row; None if a part of it is null or not an instant."""
        if any(place >= len(row) for place in self.places):
            return None
        try:
            values = [canonical(row[place], type_) for place, type_ in zip(self.places, self.types, strict=True)]
        except NotAValue:
            return None
        parts = values[0] if len(values) == 1 else values
        if parts is None or any(not isinstance(part, int) for part in parts) or parts[0] > parts[1]:
            return None
        return Span(parts[0], parts[1])

    def rest(self, row: Row) -> str:
        """The row without its window, shortened."""
        text = " ".join(_values(row, self.places))
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _values(row: Sequence[object], without: Sequence[int]) -> Iterator[str]:
    return (cell(value) for at, value in enumerate(row) if at not in without)
